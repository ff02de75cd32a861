"""Answer a question over many ranks: sums, stragglers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens import catalog
from warplens.catalog import Unit
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.report_path import ReportPath
from warplens.cli.options.unit_help import help_option
from warplens.cli.options.unit_options import unit_options
from warplens.cli.printing import tables
from warplens.cli.printing.messages import tell
from warplens.cli.printing.output import write_lines
from warplens.cli.printing.words import counted
from warplens.errors import UsageError
from warplens.handover.naming import SUFFIX, is_report

if TYPE_CHECKING:
    from warplens.recipes.base import Answer, BrokenPart
    from warplens.recipes.engine import Pool

FAMILY = "recipes.questions"
_STATS = "stats.tables"
_ROWS = 20


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warplens recipe cuda_gpu_kern_sum rank0 rank1 rank2 rank3
  warplens recipe nvtx_sum -f csv -o sums ranks/    writes sums_over_ranks.csv
  warplens recipe nvtx_sum:column=Instances ranks/
  warplens recipe straggler -f json trace.parquet
""",
)
@click.argument("name", metavar="NAME[:ARGUMENT…]")
@click.argument("paths", nargs=-1, type=ReportPath(), metavar="REPORTS…")
@click.option(
    "--input",
    "more",
    multiple=True,
    type=ReportPath(),
    metavar="REPORT",
    help="One more report, or a folder of reports.",
)
@click.option(
    "-f",
    "--format",
    "form",
    default="table",
    show_default=True,
    metavar="FORMAT",
    help="table, csv, tsv, json or markdown.",
)
@click.option(
    "-o", "--output", metavar="NAME", help="Write each table to a file NAME_TABLE.csv …; json: to NAME.json."
)
@click.option(
    "-j", "--jobs", type=click.IntRange(1), metavar="N", help="Number of processes; default: one per CPU."
)
@click.option(
    "--dask",
    metavar="ADDRESS",
    help="Compute on a Dask cluster: tcp://HOST:PORT, or local:N for N processes.",
)
@click.option(
    "--dask-scheduler-file",
    metavar="FILE",
    help="File with the scheduler's address, written by `dask scheduler`.",
)
@click.option(
    "--rows",
    type=click.IntRange(0),
    default=_ROWS,
    show_default=True,
    help="Maximum number of printed rows per table; 0: all.",
)
@click.option("--timeunit", default="ns", metavar="UNIT", help="ns (default), us, ms or s.")
@click.option("--force-overwrite", is_flag=True, help="Replace files that exist.")
@click.option("-q", "--quiet", is_flag=True, help="Print no verdict and no messages.")
@help_option("--help-recipes", FAMILY, "recipes")
@click.pass_context
def command(
    ctx: click.Context,
    name: str,
    paths: tuple[Path, ...],
    more: tuple[Path, ...],
    form: str,
    output: str | None,
    jobs: int | None,
    dask: str | None,
    dask_scheduler_file: str | None,
    rows: int,
    timeunit: str,
    force_overwrite: bool,
    quiet: bool,
) -> None:
    """Answer a question over many ranks: sums, stragglers.

    NAME is a recipe (--help-recipes), or a table of `warplens stats` that is compared over all
    reports. A folder stands for the reports in it. Unreadable reports are named and left out.
    """
    unit, options = recipe_of(name)
    unit_of_time, shape = tables.time_unit(timeunit), tables.format_name(form)
    reports = expanded((*paths, *more))
    from warplens.recipes.engine import run

    answer, broken = run(unit.id, reports, _pool(jobs, dask, dask_scheduler_file), options=options)
    for text in [] if quiet else left_out(broken):
        tell(f"warplens: left out: {text}")
    if shape == "json":
        lines = [json.dumps(as_json(answer, broken=[str(one.path) for one in broken]), indent=2)]
        if output is None:
            tables.show(lines)
        else:
            write_lines(Path(f"{output}.json"), iter(lines), overwrite=force_overwrite)
        return
    if not quiet and (output is not None or shape in ("table", "markdown")):
        for line in answer.lines:
            click.echo(line)
    written = {**answer.tables, **answer.details} if output is not None else answer.tables
    for title, table in written.items():
        table = tables.in_unit(table, unit_of_time)
        if output is not None:
            write_lines(
                Path(f"{output}_{title}{tables.SUFFIXES[shape]}"),
                tables.FORMATS[shape](table, width=0),
                overwrite=force_overwrite,
            )
        else:
            _print(title, table, shape, rows=rows if shape == "table" else 0)
    if answer.details and output is None and not quiet and shape == "table":
        click.echo(f"\nAlso with -f csv -o NAME: {', '.join(answer.details)}")
    ctx.exit(0)


def _pool(jobs: int | None, dask: str | None, scheduler_file: str | None) -> Pool:
    if dask is None and scheduler_file is None:
        from warplens.recipes.process_pool import ProcessPool

        return ProcessPool(jobs)
    if jobs is not None or (dask is not None and scheduler_file is not None):
        raise UsageError("use only one of --jobs, --dask and --dask-scheduler-file.")
    from warplens.cli.light import with_all_packages
    from warplens.recipes.dask_pool import DaskPool

    with_all_packages()

    return DaskPool(dask, scheduler_file=scheduler_file)


def recipe_of(name: str) -> tuple[Unit, dict[str, Any]]:
    """Return the recipe that `name` means, and its options. UsageError for an unknown one."""
    first, *arguments = name.split(":")
    stats = {unit.id: unit for unit in catalog.units(_STATS)}
    recipes = {unit.id: unit for unit in catalog.units(FAMILY)}
    unit = catalog.named("recipe", first, {**stats, **recipes})
    if unit.family.name == _STATS:
        return recipes["sums"], {"stat": unit.id, **unit_options(recipes["sums"], arguments)}
    return unit, unit_options(unit, arguments)


def expanded(paths: tuple[Path, ...]) -> list[Path]:
    """Return the reports that are meant: a folder that is none stands for those in it, by number, then name.

    UsageError if there is none.
    """
    reports: list[Path] = []
    for path in paths:
        inside = (
            sorted(path.glob(f"*{SUFFIX}"), key=_natural) if path.is_dir() and not is_report(path) else []
        )
        reports += inside or [path]
    if not reports:
        raise UsageError("name the reports, or a folder of reports: `warplens recipe NAME REPORTS…`.")
    return reports


def left_out(broken: list[BrokenPart]) -> Iterator[str]:
    """Yield a line for each reason why reports are not in the answer."""
    reasons: dict[str, list[str]] = {}
    for one in broken:
        reasons.setdefault(one.error.replace(str(one.path), "…").replace(one.path.name, "…"), []).append(
            one.error
        )
    for errors in reasons.values():
        yield errors[0] + (f" (and {len(errors) - 1} more like it)" if len(errors) > 1 else "")


def as_json(answer: Answer, broken: list[str]) -> dict[str, Any]:
    """Return an answer as JSON takes it: its facts, then each table as a list of rows."""
    return {
        **answer.facts,
        "verdict": list(answer.lines),
        "tables": {name: table.to_pylist() for name, table in {**answer.tables, **answer.details}.items()},
        "left_out": broken,
    }


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort `rank10` behind `rank9`."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name) if part
    ]


def _print(title: str, table: Any, shape: str, rows: int) -> None:
    width = tables.terminal_width()
    hidden = max(table.num_rows - rows, 0) if rows else 0
    shown, gone = tables.fitted(table.slice(0, rows) if hidden else table, width if shape == "table" else 0)
    click.echo(f"\n ** {title.replace('_', ' ')}:\n")
    lines: Iterator[str] = tables.FORMATS[shape](shown, width=width)
    tables.show(lines)
    if hidden:
        click.echo(f"… and {counted(hidden, 'more row')}; --rows 0 shows all")
    if gone:
        click.echo(f"no room here for {', '.join(gone)}; -f csv has all.")
