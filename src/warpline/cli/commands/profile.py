"""Run a program, record it, and write the report.

The program keeps its terminal, input and output, gets every signal it would get without warpline, and its exit code is
returned.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from warpline.capture.options import DEFAULTS
from warpline.cli.arguments import split
from warpline.cli.nsys_options import BUILT_TRACES
from warpline.cli.recording import OPTIONS, Request, record
from warpline.cli.telling import drop_output
from warpline.errors import UsageError


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
        arguments = split(args, OPTIONS)
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
    request = Request(
        program,
        output=output,
        force=force_overwrite,
        trace=trace,
        sample=sample,
        variables=env_var,
        wait="primary" if wait == "primary" else "all",
        keep_raw=keep_raw,
        spool_dir=spool_dir,
        quiet=quiet,
        later=ctx.meta["later"],
    )
    recorded = record(request)
    if stats and recorded.finished:
        _run_stats(ctx, recorded.report)
    ctx.exit(recorded.exit_status)


def _run_stats(ctx: click.Context, report: Path) -> None:
    root = ctx.find_root().command
    stats: Any = root.get_command(ctx, "stats") if isinstance(root, click.Group) else None
    if stats is None:
        raise UsageError("There is no command `stats` here.")
    try:
        try:
            with stats.make_context("warpline stats", [str(report)]) as inner:
                stats.invoke(inner)
        except click.exceptions.Exit:
            pass  # without data; stats has said so
        sys.stdout.flush()
    except BrokenPipeError:  # e.g. `| head`: what counts is how the program ended
        drop_output()


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
