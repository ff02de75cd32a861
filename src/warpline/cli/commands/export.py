"""Write a report in the format of another tool."""

from __future__ import annotations

import os
from pathlib import Path

import click

from warpline import catalog
from warpline.cli.flags import FlagCommand
from warpline.cli.opening import opened as open_report
from warpline.cli.opening import window_option
from warpline.cli.report_path import ReportPath
from warpline.cli.words import short_path, size
from warpline.errors import UsageError
from warpline.handover.naming import SUFFIX

FAMILY = "exporters.formats"


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warpline export run.warpline        run.perfetto-trace, for ui.perfetto.dev
  warpline export -t chrome -o trace.json run.warpline
""",
)
@click.argument("report", type=ReportPath())
@click.option(
    "-t",
    "--type",
    "kind",
    default="perfetto",
    show_default=True,
    metavar="FORMAT",
    help=f"One of {', '.join(unit.id for unit in catalog.units(FAMILY))}.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Where to; default: beside the report.")
@window_option
@click.option("-f", "--force-overwrite", is_flag=True, help="Replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="Do not say what the format cannot hold, nor what was imported.")
def command(report: Path, kind: str, output: Path | None, window: int | None, force_overwrite: bool, quiet: bool) -> None:
    """Write a report in the format of another tool, and say what the format cannot hold."""
    unit = catalog.find(FAMILY, kind)
    out = output or _beside(report.resolve(), str(unit.constant("SUFFIX")))
    if out.exists() and not force_overwrite:
        raise UsageError(f"{short_path(out)} exists; -f replaces it.")

    partial = out.with_name(f".{out.name}.{os.getpid()}.partial")
    with open_report(report, window=window, quiet=quiet) as opened:
        try:
            unit.load().write(opened, partial)
            partial.replace(out)
        except OSError as error:
            raise UsageError(f"cannot write {out}: {error.strerror or error}.") from error
        finally:
            partial.unlink(missing_ok=True)
    click.echo(f"{short_path(out)} ({size(out.stat().st_size)})")
    if not quiet:
        for loss in unit.constant("LOSES"):
            click.echo(f"  not in it: {loss}", err=True)


def _beside(report: Path, suffix: str) -> Path:
    name = report.stem if report.is_file() else report.name.removesuffix(SUFFIX)
    return report.with_name(name + suffix)
