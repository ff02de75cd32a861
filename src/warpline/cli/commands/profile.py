"""Run a program, record it, and write the report.

The program keeps its terminal, input and output, gets every signal it would get without warpline, and its exit code is
returned.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from warpline.capture import job as jobs
from warpline.capture.agent import load_agent
from warpline.capture.facts import host_name, process_name
from warpline.capture.launch import Outcome, Recording
from warpline.capture.options import DEFAULTS, CaptureOptions
from warpline.capture.program import find_program
from warpline.capture.spool_dir import choose_spool
from warpline.cli.arguments import split
from warpline.cli.destination import destination, remove_empty
from warpline.cli.nsys_options import BUILT_TRACES, LATER_TRACES, Later
from warpline.cli.telling import tell
from warpline.errors import CaptureError, UsageError, WarplineError
from warpline.report import pending


def _flag(*names: str, help: str) -> click.Option:
    return click.Option(list(names), type=bool, is_flag=False, default=False, metavar="[true|false]", help=help)


_OPTIONS = (
    click.Option(
        ["-o", "--output"],
        metavar="NAME",
        help="Name of the report, written to NAME.warpline. Knows %p (process id), %h (host), %n (first free number), "
        "%q{VAR} (environment variable), %%.  [default: report%n]",
    ),
    _flag("-f", "--force-overwrite", help="Overwrite an existing report."),
    click.Option(
        ["-t", "--trace"],
        metavar="LIST",
        default=",".join(DEFAULTS.trace),
        show_default=True,
        help=f"What to record, separated by commas: {', '.join(BUILT_TRACES)}, none. Other names that nsys knows are accepted.",
    ),
    click.Option(
        ["-s", "--sample"],
        metavar="MODE",
        default="none",
        help="CPU sampling: process-tree, system-wide, cpu or none. Not built yet.",
    ),
    click.Option(["-e", "--env-var"], multiple=True, metavar="A=B[,C=D]", help="Add variables to the program's environment."),
    _flag("--stats", help="Print the stats at the end."),
    click.Option(
        ["--wait"],
        type=click.Choice(["primary", "all"]),
        default=DEFAULTS.wait,
        show_default=True,
        help="Finish when the program has ended, or when all processes that it started have.",
    ),
    _flag("--keep-raw", help="Keep the raw spool in the report."),
    click.Option(
        ["--spool-dir"], type=click.Path(path_type=Path), metavar="DIR", help="Record into DIR, a directory on a disk of this node."
    ),
    _flag("-q", "--quiet", help="Print errors only."),
)
_FLAGS = frozenset(("--force-overwrite", "--stats", "--keep-raw", "--quiet"))
_HELP = """\b
Run PROGRAM, record it, and write a report.

Options end where PROGRAM begins; what follows belongs to the program. The options of `nsys profile` are accepted; those
that are not built yet are named once and ignored.
"""
_EXAMPLES = """\b
Examples:
  warpline profile python train.py
  warpline profile -o run -f --stats python train.py --epochs 3
  warpline profile -o rank%q{RANK} -e OMP_NUM_THREADS=4 ./a.out
  srun warpline profile -o job python train.py       all ranks in one report
"""


class _Profile(click.Command):
    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # shell completion
            return super().parse_args(ctx, args)
        names = {name: (option.opts[-1], option.opts[-1] in _FLAGS) for option in _OPTIONS for name in option.opts}
        names.update(dict.fromkeys(("-h", "--help"), ("--help", True)))
        try:
            arguments = split(args, names)
        except click.UsageError as error:
            error.ctx = ctx  # so that the hint names this command
            raise
        if "--help=true" in arguments.options:
            return super().parse_args(ctx, ["--help"])
        ctx.meta["later"] = arguments.later
        return super().parse_args(ctx, [*arguments.options, "--", *arguments.command])


def _profile(
    output: str | None,
    force_overwrite: bool,
    trace: str,
    sample: str,
    env_var: tuple[str, ...],
    stats: bool,
    wait: str,
    keep_raw: bool,
    spool_dir: Path | None,
    quiet: bool,
    program: tuple[str, ...],
) -> None:
    ctx = click.get_current_context()
    if not program:
        raise UsageError("There is no program to run.\nFor example: warpline profile python train.py")
    traces, later = _traces(trace)
    options = replace(
        DEFAULTS,
        trace=traces,
        environment=_variables(env_var),
        wait="primary" if wait == "primary" else "all",
        spool_dir=spool_dir,
        keep_raw=keep_raw,
    )
    _say_what_is_later(ctx.meta["later"], sample, later, options)

    note, outcome = _record(program, options, output, force=force_overwrite, quiet=quiet)
    # the program is through: only now comes what takes time to load
    from warpline.cli.finishing import finish_and_summarise

    finish_and_summarise(note, outcome, quiet=quiet)
    if stats:
        _run_stats(ctx, note.report)
    ctx.exit(outcome.exit_status)


def _record(
    program: Sequence[str], options: CaptureOptions, output: str | None, *, force: bool, quiet: bool
) -> tuple[pending.Pending, Outcome]:
    agent = load_agent()
    early = agent.clock_sample()
    find_program(program[0], {**os.environ, **dict(options.environment)})
    job = jobs.job_id()
    me = os.getpid()
    with destination(output, force=force, job=job) as (report, created):
        name = pending.part_id(host_name(), me, pending.start_ticks(me))
        spool = choose_spool(report, name, explicit=options.spool_dir)
        try:
            note = pending.begin(report, spool.path, job=job, keep_raw=options.keep_raw)
        except WarplineError:
            spool.path.rmdir()
            raise
    recording = Recording(program, options, spool.path, agent, early, job, waiting=lambda pids: _say_waiting(program[0], pids, quiet))
    if not options.trace:
        recording.note("warning", "nothing-traced", "None of the sources that -t names can be recorded yet, so there is nothing to show.")
    if spool.warning:
        recording.note("warning", "spool-place", f"{spool.warning[0].upper()}{spool.warning[1:]} ({spool.path}).")
    try:
        return note, recording.run()
    except CaptureError:
        recording.remove()
        note.path.unlink(missing_ok=True)
        if created:
            remove_empty(report)
        raise


def _traces(text: str) -> tuple[tuple[str, ...], list[str]]:
    names = list(dict.fromkeys(name.strip().lower() for name in text.split(",") if name.strip()))
    built = tuple(name for name in names if name in BUILT_TRACES)
    unknown = [name for name in names if name not in LATER_TRACES and name not in BUILT_TRACES and name != "none"]
    if unknown:
        import difflib

        near = difflib.get_close_matches(unknown[0], [*BUILT_TRACES, *LATER_TRACES], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(
            f"-t: there is nothing to trace called {unknown[0]!r}.{hint}\nRecorded now: {', '.join(BUILT_TRACES)}. Nothing: none."
        )
    return built, [name for name in names if name in LATER_TRACES]


def _variables(texts: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = []
    for text in texts:
        # a comma separates only where a name and "=" follow: values may hold commas
        for item in re.split(r",(?=[A-Za-z_]\w*=)", text):
            name, equals, value = item.partition("=")
            if not equals or not re.fullmatch(r"[A-Za-z_]\w*", name):
                raise UsageError(f"-e {text}: write NAME=VALUE, or several as NAME=VALUE,NAME=VALUE.")
            pairs.append((name, value))
    return tuple(pairs)


def _say_what_is_later(options: list[tuple[Later, str]], sample: str, traces: list[str], capture: CaptureOptions) -> None:
    names = [later.name for later, value in options if value.lower() not in later.silent]
    if sample != "none":
        names.insert(0, "--sample")
    names = list(dict.fromkeys(names))
    if traces:
        names.append(f"--trace {','.join(traces)}")
    if names:
        verb = "is" if len(names) == 1 else "are"
        was = "was" if len(names) == 1 else "were"
        tell(f"warpline: {', '.join(names)} {verb} not built yet and {was} ignored.")


def _say_waiting(program: str, pids: list[int], quiet: bool) -> None:
    if not quiet:
        names = ", ".join(f"{process_name(pid)} ({pid})" for pid in pids[:3]) + (", …" if len(pids) > 3 else "")
        tell(f"warpline: {program} has ended; waiting for what it left running: {names}. Ctrl-C twice to finish now.")


def _run_stats(ctx: click.Context, report: Path) -> None:
    root = ctx.find_root().command
    stats: Any = root.get_command(ctx, "stats") if isinstance(root, click.Group) else None
    if stats is None:
        raise UsageError("There is no command `stats` here.")
    stats.main([str(report)], prog_name="warpline stats", standalone_mode=False)


command: click.Command = _Profile(
    "profile",
    params=[*_OPTIONS, click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]…")],
    callback=_profile,
    help=_HELP,
    short_help="Run a program, record it, and write the report.",
    epilog=_EXAMPLES,
    options_metavar="[OPTIONS]",
    add_help_option=True,
    context_settings={"allow_interspersed_args": False},
)
