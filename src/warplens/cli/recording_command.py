"""The commands that run a program and record it: `profile` and `launch`.

Their options, and their common parts.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click

from warplens.cli.options import presets
from warplens.cli.options.arguments import split
from warplens.cli.options.capture_click import click_options, flag, given
from warplens.cli.options.headings import under_headings
from warplens.cli.options.nsys_options import BUILT_TRACES
from warplens.cli.printing.messages import complain, drop_output
from warplens.cli.recording import OPTIONS, UNASKED, Kind, Request, record
from warplens.errors import UsageError, WarplensError
from warplens.recording.options.capture import DEFAULTS

_OPTIONS = (
    *(click.Option([argument.long], is_flag=True, help=argument.help) for argument in presets.ARGUMENTS),
    click.Option(
        ["-o", "--output"],
        metavar="NAME",
        help="Name of the report, written to NAME.warplens. Knows %p (process id), %h (host), %n (first free number), "
        "%q{VAR} (environment variable), %%.  [default: report%n]",
    ),
    flag("-f", "--force-overwrite", help="Overwrite an existing report."),
    click.Option(
        ["-t", "--trace"],
        metavar="LIST",
        help=f"What to record, separated by commas: {', '.join(BUILT_TRACES)}, none. Other names that nsys knows are accepted.  "
        f"[default: {','.join(UNASKED)}]",
    ),
    click.Option(
        ["-e", "--env-var"],
        multiple=True,
        metavar="A=B[,C=D]",
        help="Add variables to the program's environment.",
    ),
    flag("--stats", help="Print the stats at the end."),
    click.Option(
        ["--wait"],
        type=click.Choice(["primary", "all"]),
        default=DEFAULTS.wait,
        show_default=True,
        help="Finish when the program has ended (primary), or also all processes that it started (all).",
    ),
    flag("--keep-raw", help="Keep the raw spool in the report."),
    click.Option(
        ["--spool-dir"],
        type=click.Path(path_type=Path),
        metavar="DIR",
        help="Record into DIR, a directory on a disk of this node.",
    ),
    flag("-q", "--quiet", help="Print errors only."),
    *click_options(),
)


def recording_command(
    name: Kind, *, help: str, short_help: str, epilog: str, without: frozenset[str] = frozenset()
) -> click.Command:
    """Return the command `name` with all of `OPTIONS` but those with long names in `without`."""
    own = {option: meaning for option, meaning in OPTIONS.items() if meaning[0] not in without}
    return _Recording(
        name,
        own,
        params=[
            *(option for option in _OPTIONS if option.opts[-1] not in without),
            click.Argument(["program"], nargs=-1, type=click.UNPROCESSED, metavar="[--] PROGRAM [ARGS]…"),
        ],
        callback=partial(_record, name),
        help=help,
        short_help=short_help,
        epilog=epilog,
        options_metavar="[OPTIONS]",
        add_help_option=True,
        context_settings={"allow_interspersed_args": False},
    )


class _Recording(click.Command):
    def __init__(self, name: str, own: Mapping[str, tuple[str, bool]], **extra: Any) -> None:
        super().__init__(name, **extra)
        self._own = own

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the options under headings."""
        for heading, options in under_headings(
            [option for option in self.get_params(ctx) if isinstance(option, click.Option)]
        ):
            with formatter.section(heading):
                formatter.write_dl(
                    [record for option in options if (record := option.get_help_record(ctx)) is not None]
                )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if ctx.resilient_parsing:  # shell completion
            return super().parse_args(ctx, args)
        arguments = split(args, self._own, str(self.name))
        if "--help=true" in arguments.options:
            return super().parse_args(ctx, ["--help"])
        ctx.meta["later"] = arguments.later
        return super().parse_args(ctx, [*arguments.options, "--", *arguments.command])


def _record(
    kind: Kind,
    output: str | None,
    force_overwrite: bool,
    trace: str | None,
    env_var: tuple[str, ...],
    stats: bool,
    wait: str,
    keep_raw: bool,
    spool_dir: Path | None,
    quiet: bool,
    program: tuple[str, ...],
    **capture: Any,
) -> None:
    ctx = click.get_current_context()
    request = Request(
        program,
        output=output,
        force=force_overwrite,
        trace=trace,
        variables=env_var,
        wait="primary" if wait == "primary" else "all",
        keep_raw=keep_raw,
        spool_dir=spool_dir,
        quiet=quiet,
        later=ctx.meta["later"],
        capture=given(capture),
        kind=kind,
    )
    recorded = record(request, partial(_run_stats, ctx)) if stats else record(request)
    ctx.exit(recorded.exit_status)


def _run_stats(ctx: click.Context, report: Path) -> None:
    root = ctx.find_root().command
    stats: Any = root.get_command(ctx, "stats") if isinstance(root, click.Group) else None
    if stats is None:
        raise UsageError("There is no command `stats` in this installation.")
    try:
        try:
            with stats.make_context("warplens stats", [str(report)]) as inner:
                stats.invoke(inner)
        except click.exceptions.Exit:
            pass  # without data; stats has said so
        except WarplensError as error:
            complain(str(error))
        sys.stdout.flush()
    except BrokenPipeError:  # e.g. `| head`: what counts is how the program ended
        drop_output()
    except OSError as error:
        complain(f"The stats cannot be written: {error.strerror or error}.")
        drop_output()
