"""A recording from request to finished report: what `profile` does, also where no package but warpline is installed."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from warpline.capture import job as jobs
from warpline.capture.agent import load_agent
from warpline.capture.facts import process_name
from warpline.capture.launch import Outcome, Recording
from warpline.capture.options import DEFAULTS, Wait
from warpline.capture.place import take_place
from warpline.capture.program import find_program
from warpline.cli.nsys_options import BUILT_TRACES, LATER_TRACES, Later
from warpline.cli.telling import tell
from warpline.cli.words import short_path
from warpline.errors import CaptureError, UsageError
from warpline.handover import pending
from warpline.handover.wording import COMMAND_LINE

# Every name of an option -> its long name, and whether it is a flag.
OPTIONS = {
    "-o": ("--output", False),
    "-f": ("--force-overwrite", True),
    "-t": ("--trace", False),
    "-s": ("--sample", False),
    "-e": ("--env-var", False),
    "-q": ("--quiet", True),
    "-h": ("--help", True),
    "--stats": ("--stats", True),
    "--wait": ("--wait", False),
    "--keep-raw": ("--keep-raw", True),
    "--spool-dir": ("--spool-dir", False),
}
OPTIONS |= {long: (long, flag) for long, flag in list(OPTIONS.values())}


@dataclass(frozen=True, slots=True)
class Request:
    """One `profile` command line; `trace` None is the default; `later` are options of nsys without effect yet, with their values."""

    program: Sequence[str]
    output: str | None = None
    force: bool = False
    trace: str | None = None
    sample: str = "none"
    variables: Sequence[str] = ()
    wait: Wait = DEFAULTS.wait
    keep_raw: bool = False
    spool_dir: Path | None = None
    quiet: bool = False
    later: Sequence[tuple[Later, str]] = ()


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recording that was made: its report, the program's exit status, and whether the report could be finished here."""

    report: Path
    exit_status: int
    finished: bool


def record(request: Request) -> Recorded:
    """Run the program and write the report; WarplineError when the program cannot run or the report not be written.

    Where the packages that write reports are missing, the recording stays in the report for another machine to finish.
    """
    if not request.program:
        raise UsageError("There is no program to run.\nFor example: warpline profile python train.py")
    traces, later_traces = chosen_traces(",".join(DEFAULTS.trace) if request.trace is None else request.trace)
    options = replace(
        DEFAULTS,
        trace=traces,
        environment=variables(request.variables),
        wait=request.wait,
        spool_dir=request.spool_dir,
        keep_raw=request.keep_raw,
    )
    _say_what_is_later(request, later_traces)

    agent = load_agent()
    early = agent.clock_sample()
    find_program(request.program[0], {**os.environ, **dict(options.environment)})
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
    recording = Recording(request.program, options, place.spool.path, agent, early, job, waiting=lambda pids: _say_waiting(request, pids))
    place.warn(recording.facts)
    if not options.trace:
        recording.facts.note(
            "warning", "nothing-traced", "None of the sources that -t names can be recorded yet, so there is nothing to show."
        )
    try:
        outcome = recording.run()
    except CaptureError:
        place.give_up()
        raise
    if not recording.facts.saved:
        # the report will not have them
        for row in recording.facts.diagnostics:
            tell(f"warpline: {row['severity']}: {row['message']}")
    finished = _finish(place.note, outcome, quiet=request.quiet)
    return Recorded(place.report, outcome.exit_status, finished)


def leave_for_later(note: pending.Pending, error: ModuleNotFoundError) -> str:
    """Leave a recording to a machine that can finish it, the spool in the report, so that one directory can be carried away; say so."""
    inside = note.report / "spool" / note.id
    if Path(note.spool) != inside:
        shutil.move(note.spool, inside)
    path = short_path(note.report)
    return (
        f"warpline: recorded into {path}, but {error.name} is not installed here, so the report is not finished.\n"
        f"  Copy {path} to where warpline is installed with its dependencies; any command that opens it finishes it."
    )


def chosen_traces(text: str) -> tuple[tuple[str, ...], list[str]]:
    """Return the sources of `-t` that are built, and the names of those that are not; UsageError for names that mean nothing."""
    names = list(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in LATER_TRACES and name not in BUILT_TRACES and name != "none"]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], [*BUILT_TRACES, *LATER_TRACES], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(
            f"-t: there is nothing to trace called {unknown[0]!r}.{hint}\nRecorded now: {', '.join(BUILT_TRACES)}. Nothing: none."
        )
    return tuple(name for name in names if name in BUILT_TRACES), [name for name in names if name in LATER_TRACES]


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


def _finish(note: pending.Pending, outcome: Outcome, *, quiet: bool) -> bool:
    try:
        # the program is through: only now comes what takes time to load
        from warpline.cli.finishing import finish_and_summarise
    except ModuleNotFoundError as error:
        tell(leave_for_later(note, error))
        return False
    finish_and_summarise(note, outcome, quiet=quiet)
    return True


def _say_what_is_later(request: Request, traces: list[str]) -> None:
    names = [later.name for later, value in request.later if value.lower() not in later.silent]
    if request.sample != "none":
        names.insert(0, "--sample")
    names = list(dict.fromkeys(names))
    if traces:
        names.append(f"--trace {','.join(traces)}")
    if names:
        verbs = ("is", "was") if len(names) == 1 else ("are", "were")
        tell(f"warpline: {', '.join(names)} {verbs[0]} not built yet and {verbs[1]} ignored.")


def _say_waiting(request: Request, pids: list[int]) -> None:
    if not request.quiet:
        names = ", ".join(f"{process_name(pid)} ({pid})" for pid in pids[:3]) + (", …" if len(pids) > 3 else "")
        tell(f"warpline: {request.program[0]} has ended; waiting for what it left running: {names}. Ctrl-C twice to finish now.")
