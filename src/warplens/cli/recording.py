"""A recording from request to finished report: the flow of `profile`.

It also runs if no package but warplens is installed.
"""

from __future__ import annotations

import os
import re
import socket
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from warplens.cli import prepared_child
from warplens.cli.checks.kernel import Event, Kernel
from warplens.cli.finish_report import finish_report
from warplens.cli.options import capture_arguments, cpu_arguments, cuda_arguments, gpu_arguments
from warplens.cli.options.nsys_options import (
    ALIASES,
    BUILT_TRACES,
    HARDWARE,
    LATER_TRACES,
    LIBRARY_TRACES,
    Later,
)
from warplens.cli.options.presets import PRESETS
from warplens.cli.printing.messages import complain, tell
from warplens.cli.printing.words import short_path, signal_name
from warplens.disk.full import is_full
from warplens.errors import CaptureError, UsageError
from warplens.handover import pending
from warplens.handover.naming import MANIFESTS
from warplens.handover.output_name import expand
from warplens.handover.wording import COMMAND_LINE
from warplens.recording.agent.library import load_agent
from warplens.recording.facts import process_name
from warplens.recording.finishing.converting import Converting
from warplens.recording.finishing.expendable import run_expendable
from warplens.recording.launch import job as jobs
from warplens.recording.launch.launcher import Outcome, Recording
from warplens.recording.launch.program import find_program
from warplens.recording.launch.unrecorded import run_unrecorded
from warplens.recording.options.capture import DEFAULTS, CaptureOptions, Wait
from warplens.recording.options.cpu import CPU_TRACES, CpuOptions
from warplens.recording.options.cpu_settings import cpu_settings
from warplens.recording.options.gpu import GpuMetrics
from warplens.recording.session.control import Attendant
from warplens.recording.spool.place import Place, take_place

# Every name of an option -> its long name, and whether it is a flag.
OPTIONS = {
    "-o": ("--output", False),
    "-f": ("--force-overwrite", True),
    "-t": ("--trace", False),
    "-e": ("--env-var", False),
    "-q": ("--quiet", True),
    "-h": ("--help", True),
    "--stats": ("--stats", True),
    "--wait": ("--wait", False),
    "--keep-raw": ("--keep-raw", True),
    "--spool-dir": ("--spool-dir", False),
}
Kind = Literal["profile", "launch"]
UNASKED = (
    "cuda",
    "nvtx",
    "torch",
    "gc",
    "import",
)  # of -t; `DEFAULTS.trace` is of a recording that a program makes of itself
OPTIONS |= (
    {long: (long, flag) for long, flag in list(OPTIONS.values())}
    | capture_arguments.NAMES
    | {name: (name, True) for name in PRESETS}
)


@dataclass(frozen=True, slots=True)
class Request:
    """One `profile` or `launch` command line; `trace` None is the default.

    `later` are options of nsys without effect yet, with their values; `capture` those of `capture_arguments`, by their long names.
    """

    program: Sequence[str]
    output: str | None = None
    force: bool = False
    trace: str | None = None
    variables: Sequence[str] = ()
    wait: Wait = DEFAULTS.wait
    keep_raw: bool = False
    spool_dir: Path | None = None
    quiet: bool = False
    later: Sequence[tuple[Later, str]] = ()
    capture: Mapping[str, str] = field(default_factory=dict)
    kind: Kind = "profile"


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that was made: its report, the program's exit status, whether the report is finished."""

    report: Path
    exit_status: int
    finished: bool


def record(request: Request, then: Callable[[Path], None] | None = None) -> Recorded:
    """Run the program and write the report; WarplensError when the program cannot run.

    On a full disk it runs unrecorded.

    Returns the program's exit status even if the report fails; prints why, and `finished` tells. Where the packages
    that write reports are missing, the recording stays in the report for another machine to finish. `then` is called with the
    finished report, where the memory that this takes is not the launcher's.
    """
    if not request.program:
        raise UsageError(f"There is no program to run.\nFor example: warplens {request.kind} python train.py")
    traces, later_traces = chosen_traces(",".join(UNASKED) if request.trace is None else request.trace)
    options = replace(
        capture_arguments.capture_options(request.capture),
        cpu=_possible(request, traces),
        start_later=request.kind == "launch" or request.capture.get("--start-later") == "true",
        trace=traces,
        environment=variables(request.variables),
        wait=request.wait,
        spool_dir=request.spool_dir,
        keep_raw=request.keep_raw,
    )
    if not options.gpu_metrics.chosen and jobs.is_later_local_rank() and "%" not in (request.output or ""):
        options = replace(
            options, gpu_metrics=GpuMetrics("none")
        )  # the first rank of each host samples its GPUs into their one report
    _say_what_is_later(request, later_traces)
    for said in (
        gpu_arguments.slower_than_asked(request.capture),
        cpu_arguments.instead_of_asked(request.capture),
    ):
        if said:
            tell(f"warplens: {said}")

    agent = load_agent()
    early = agent.clock_sample()
    find_program(request.program[0], {**os.environ, **dict(options.environment)})
    attendant = Attendant(
        replace(options, session=_session_name(options.session)), f"{request.kind}-{os.getpid()}", tell
    )
    try:
        job = jobs.job_id()
        place = take_place(
            request.output,
            force=request.force,
            job=job,
            spool_dir=options.spool_dir,
            keep_raw=options.keep_raw,
            part=pending.own_id(),
            wording=COMMAND_LINE,
        )
        attendant.describe(place.report, place.note.path, tuple(request.program))
        recording = Recording(
            request.program,
            options,
            place.spool.path,
            agent=agent,
            early=early,
            job=job,
            waiting=lambda pids: _say_waiting(request, pids),
            attend=attendant.attend,
            converting=_converting(place, request, options),
        )
        _note_beginning(recording, place, attendant, request=request)
    except BaseException as error:
        attendant.close("the program was not started.")
        if is_full(error):
            return _unrecorded(error, request, options)
        raise
    try:
        outcome = recording.run()
    except BaseException as error:
        attendant.close("the program was not started.")
        full = is_full(error) and not recording.begun
        if full or isinstance(error, CaptureError):
            place.give_up()
        if full:
            return _unrecorded(error, request, options)
        raise
    finished = False
    try:
        recording.release()
        if not recording.facts.saved:
            # the report will not have them
            for row in recording.facts.diagnostics:
                tell(f"warplens: {row['severity']}: {row['message']}")
        if outcome.over_by not in (None, "end") and not request.quiet:
            _say_over(request, outcome)
        finished, died = _finish(place.note, then, recording, quiet=request.quiet)
        if died is not None:
            _say_died(place.note, died)
    except KeyboardInterrupt:
        path = short_path(place.report)
        tell(f"\nwarplens: interrupted. Nothing is lost: `warplens info {path}` finishes the report.")
        raise
    finally:
        said = (
            "the report is finished."
            if finished
            else "the report is not finished; the next command that opens it tries again."
        )
        attendant.close(said, finished=finished)
        exit_status = recording.rest() if outcome.exit_status is None else outcome.exit_status
    return Recorded(place.report, exit_status, finished)


def _possible(request: Request, traces: Sequence[str]) -> CpuOptions:
    """Return what is recorded of the CPU side.

    A default that the kernel refuses is left out without a message: `doctor` says so.

    It is recorded in processes of Python alone, unless `-t` or an option names what all processes have.
    """
    cpu = cpu_arguments.cpu_options(request.capture, cpu_arguments.UNASKED)
    if request.trace is not None and any(name in CPU_TRACES for name in traces):
        return replace(cpu, python_only=False)
    if not cpu.python_only:
        return replace(cpu, python_only=not (cpu.sample or cpu.states or cpu.python_sample))
    kernel = Kernel()
    samples = kernel.open_event(Event.CLOCK, cpu.native_hz, with_kernel=False) == 0
    return replace(
        cpu,
        sample=samples,
        states=samples and kernel.open_event(Event.SWITCHES, cpu.native_hz, with_kernel=False) == 0,
    )


def _converting(place: Place, request: Request, options: CaptureOptions) -> Converting | None:
    """Return what writes the report during the run.

    Of a flight recorder, nobody knows yet what will be in it.
    """
    if options.convert == "end" or options.keep_last is not None:
        return None
    return Converting(place.note.path, place.spool.path, quiet=request.quiet)


def _unrecorded(error: BaseException, request: Request, options: CaptureOptions) -> Recorded:
    tell(f"warplens: NOTHING IS RECORDED: {str(error).splitlines()[0]}")
    return Recorded(Path(), run_unrecorded(tuple(request.program), options), finished=False)


def _session_name(template: str | None) -> str | None:
    if template is None or "%" not in template:
        return template
    wording = replace(COMMAND_LINE, output="--session-new")
    return expand(template, number=1, host=socket.gethostname(), environment=os.environ, wording=wording)


def _note_beginning(recording: Recording, place: Place, attendant: Attendant, request: Request) -> None:
    place.warn(recording.facts)
    if not recording.options.trace and not cpu_settings(recording.options).flags:
        recording.facts.note(
            "warning",
            "nothing-traced",
            "None of the sources that -t names can be recorded yet, so the report is empty.",
        )
    if attendant.problem:
        recording.facts.note("info", "no-session", " ".join(attendant.problem.split()))
    elif recording.options.start_later and not request.quiet:
        tell(
            f"warplens: session {attendant.name} records nothing yet.\n  Begin from another "
            "terminal: warplens start"
        )


def chosen_traces(text: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the sources of `-t` that are built, and the names of those that are not.

    UsageError for names that mean nothing.
    """
    given = (name.strip().lower() for name in text.split(",") if name.strip())
    names = list(dict.fromkeys(ALIASES.get(name, name) for name in given))
    unknown = [
        name for name in names if name not in LATER_TRACES and name not in BUILT_TRACES and name != "none"
    ]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], [*BUILT_TRACES, *LATER_TRACES], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(
            f"-t: unknown source {unknown[0]!r}.{hint}\nChoose from: {', '.join(BUILT_TRACES)}, or none."
        )
    if "nvtx" not in names and any(name in LIBRARY_TRACES for name in names):
        names.append("nvtx")  # the libraries' own ranges are NVTX
    if HARDWARE in names and "cuda" not in names:
        names.append("cuda")  # as nsys does where the hardware cannot
    return tuple(name for name in names if name in BUILT_TRACES), [
        name for name in names if name in LATER_TRACES
    ]


def variables(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """Return the pairs of `-e A=B,C=D`; UsageError for what is no pair."""
    pairs = []
    for text in texts:
        # a comma separates only where a name and "=" follow: values may hold commas
        for item in re.split(r",(?=[A-Za-z_]\w*=)", text):
            name, equals, value = item.partition("=")
            if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise UsageError(f"-e {text}: write NAME=VALUE, or several as NAME=VALUE,NAME=VALUE.")
            pairs.append((name, value))
    return tuple(pairs)


def _finish(
    note: pending.Pending, then: Callable[[Path], None] | None, recording: Recording, *, quiet: bool
) -> tuple[bool, str | None]:
    """Let a child make the report. Return whether there is one, and how the child ended if it died."""
    converting = recording.converting
    if then is None and (converting is None or not converting.is_on):
        made = prepared_child.finish(note, quiet=quiet)
        if made is not None:
            return made
    return run_expendable(
        lambda: finish_report(note, then or _nothing, converting, quiet=quiet), recording.aside
    )


def _nothing(report: Path) -> None:
    pass


def _say_died(note: pending.Pending, how: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        sys.stderr.write("\r\x1b[K\x1b[?25h")  # the progress bar had no time to leave
    path = short_path(note.report)
    if not note.path.exists() and (note.report / MANIFESTS / f"{note.id}.json").exists():
        complain(
            f"{path} is finished, but the process that sums it up ended ({how}): open it with "
            f"`warplens info {path}`."
        )
    else:
        spool = short_path(Path(note.spool))
        then = f"All is in {spool}: `warplens info {path}` finishes it."
        complain(f"{path} is not finished: the process that writes it ended ({how}). {then}")


def _say_what_is_later(request: Request, traces: list[str]) -> None:
    names = [later.name for later, value in request.later if value.lower() not in later.silent]
    names = list(dict.fromkeys([*names, *cuda_arguments.not_yet(request.capture)]))
    if HARDWARE in traces:
        tell(f"warplens: --trace {HARDWARE} is not built yet: CUDA is recorded as with --trace cuda.")
    if others := [name for name in traces if name != HARDWARE]:
        names.append(f"--trace {','.join(others)}")
    if names:
        verbs = ("is", "was") if len(names) == 1 else ("are", "were")
        tell(f"warplens: {', '.join(names)} {verbs[0]} not built yet and {verbs[1]} ignored.")


def _say_waiting(request: Request, pids: list[int]) -> None:
    if not request.quiet:
        names = ", ".join(f"{process_name(pid)} ({pid})" for pid in pids[:3]) + (
            ", …" if len(pids) > 3 else ""
        )
        program = Path(request.program[0]).name
        tell(
            f"warplens: {program} has ended; waiting for its child processes: {names}.\n  Ctrl-C "
            "twice to finish now."
        )


def _say_over(request: Request, outcome: Outcome) -> None:
    name = Path(request.program[0]).name
    if outcome.killed_by:
        alive = f", and has not ended yet ({outcome.still_running[0]})" if outcome.exit_status is None else ""
        tell(f"warplens: the recording is over; {name} got {signal_name(outcome.killed_by)}{alive}.")
    elif outcome.exit_status is None:
        tell(
            "warplens: the recording is over, and its report is being written.\n"
            f"  {name} ({outcome.still_running[0]}) continues, and warplens waits for its exit code; "
            "--kill sigterm ends it."
        )
    elif outcome.killed_all_by:
        tell(
            f"warplens: the recording is over; child processes of {name} got "
            f"{signal_name(outcome.killed_all_by)}."
        )
    elif outcome.still_running:
        tell(f"warplens: the recording is over; child processes of {name} continue.")
