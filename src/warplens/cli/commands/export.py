"""Write a report in the format of another tool."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens import catalog
from warplens.catalog import Unit
from warplens.cli.opening import opened as open_report
from warplens.cli.opening import window_option
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.report_path import ReportPath
from warplens.cli.options.unit_help import help_option
from warplens.cli.options.unit_options import unit_options
from warplens.cli.printing.words import short_path, size
from warplens.disk.replacing import replacing
from warplens.errors import UsageError
from warplens.handover.naming import SUFFIX

if TYPE_CHECKING:
    from warplens.report import Report

FAMILY = "exporters.formats"
_PAGE = "html"  # joins stats, rules and plots, so it is no exporter but a flow


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warplens export run.warplens        run.perfetto-trace, for ui.perfetto.dev
  warplens export -t chrome -o trace.json run.warplens
  warplens export -t html run         run.html: findings, plots and tables
  warplens export -t speedscope:wall --filter-nvtx step run
""",
)
@click.argument("report", type=ReportPath())
@click.option(
    "-t",
    "--type",
    "kind",
    default="perfetto",
    show_default=True,
    metavar="FORMAT[:ARGUMENT…]",
    help=f"One of {', '.join([*(unit.id for unit in catalog.units(FAMILY)), _PAGE])}; arguments: see --help-formats.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Output file; default: beside the report.",
)
@click.option(
    "--filter-time", metavar="A/B", help="Only rows that overlap this time of the report, e.g. 1s/1s500ms."
)
@click.option(
    "--filter-nvtx",
    metavar="RANGE[@DOMAIN][/INDEX]",
    help="Only the time of an NVTX range; INDEX counts from 0, default: the first range. Profiles: time "
    "of threads inside all ranges of that name.",
)
@window_option
@click.option("-f", "--force-overwrite", is_flag=True, help="Replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress notes about lost or imported data.")
@help_option("--help-formats", FAMILY, "formats")
def command(
    report: Path,
    kind: str,
    output: Path | None,
    filter_time: str | None,
    filter_nvtx: str | None,
    window: int | None,
    force_overwrite: bool,
    quiet: bool,
) -> None:
    """Write a report in the format of another tool, and list what that format cannot hold."""
    name, *arguments = kind.split(":")
    if name == _PAGE:
        from warplens.flows import html_report as page

        if arguments:
            raise UsageError(f"{_PAGE} has no argument {arguments[0]!r}; it takes none.")
        unit, options, suffix, loses = None, {}, page.SUFFIX, page.LOSES
    else:
        unit = catalog.find(FAMILY, name)
        options, suffix, loses = (
            unit_options(unit, arguments),
            str(unit.constant("SUFFIX")),
            unit.constant("LOSES"),
        )
    out = output or _beside(report.resolve(), suffix)
    if out.is_file() and not force_overwrite:
        raise UsageError(f"{short_path(out)} exists; -f replaces it.")

    from warplens.exporters.losses import losses

    with open_report(report, window=window, quiet=quiet) as opened:
        for path, own in _files(unit, opened, out, suffix=suffix, options=options):
            if path != out and path.is_file() and not force_overwrite:
                raise UsageError(f"{short_path(path)} exists; -f replaces it.")
            try:
                with replacing(path) as partial:
                    _write(unit, opened, partial, options=own, time=filter_time, nvtx=filter_nvtx)
                    written = partial.stat().st_size
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror or error}.") from error
            click.echo(f"{short_path(path)} ({size(written)})", err=not path.is_file())
        for loss in [] if quiet else losses(opened, loses):
            click.echo(f"  not in it: {loss}", err=True)


def _files(
    unit: Unit | None, report: Report, out: Path, suffix: str, options: dict[str, Any]
) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the files to write with their options.

    Of formats that hold one rank a file for each, `run.rank0.pt.trace.json`.
    """
    several = getattr(unit.load(), "files", None) if unit is not None else None
    parts: dict[str, dict[str, Any]] = several(report, **options) if several is not None else {}
    if not parts or not (out.is_file() or not out.exists()):  # a pipe takes one
        yield out, options
        return
    stem, end = (
        (out.name.removesuffix(suffix), suffix) if out.name.endswith(suffix) else (out.stem, out.suffix)
    )
    for name, more in parts.items():
        yield out.with_name(f"{stem}.{name}{end}"), {**options, **more}


def _write(
    unit: Unit | None, report: Report, out: Path, options: dict[str, Any], time: str | None, nvtx: str | None
) -> None:
    """Write the selection.

    Profiles choose it themselves, other formats get that part of the report. `unit`: None for the
    page.
    """
    from warplens.report import Selection

    selection = Selection.parse(time, nvtx)
    if unit is None:
        from warplens.flows import html_report

        html_report.write(report, out, selection)
        return
    if any(option.name == "selection" for option in unit.options):
        unit.load().write(report, out, selection=selection, **options)
        return
    span = selection.window(report)
    if span is None:
        unit.load().write(report, out, **options)
        return
    with report.between(*span) as part:
        unit.load().write(part, out, **options)


def _beside(report: Path, suffix: str) -> Path:
    name = report.stem if report.is_file() else report.name.removesuffix(SUFFIX)
    return report.with_name(name + suffix)
