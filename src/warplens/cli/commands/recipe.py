"""Answer a question over many ranks: sums, stragglers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens import catalog
from warplens.catalog import Unit
from warplens.cli.finishing import progress_bar
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.report_path import ReportPath
from warplens.cli.options.unit_help import help_option
from warplens.cli.options.unit_options import unit_options
from warplens.cli.printing.messages import tell
from warplens.cli.printing.rank_answers import AnswerOutput
from warplens.cli.printing.words import counted
from warplens.errors import UsageError
from warplens.handover.naming import SUFFIX, is_report

if TYPE_CHECKING:
    from warplens.recipes.base import Answer, BrokenPart, Place
    from warplens.recipes.engine import Pool

FAMILY = "recipes.questions"
_STATS = "stats.tables"
_ROWS = 20
_URL = r"[A-Za-z][A-Za-z0-9+.-]+://"


class RankPath(ReportPath):
    """A report as other commands take it, or its URL in object storage."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return a URL as it is, and of others the path of the report."""
        return value if re.match(_URL, str(value)) else super().convert(value, param, ctx)


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warplens recipe cuda_gpu_kern_sum rank0 rank1 rank2 rank3
  warplens recipe nvtx_sum -f csv -o sums ranks/    writes sums_over_ranks.csv
  warplens recipe nvtx_sum:column=Instances ranks/
  warplens recipe cuda_gpu_kern_sum today/ --against yesterday/
  warplens recipe straggler s3://bucket/job/ranks/
  warplens recipe straggler -f json trace.parquet
  warplens recipe gpu_time_util_map -f html -o map ranks/    writes map.html
""",
)
@click.argument("name", metavar="NAME[:ARGUMENT…]")
@click.argument("paths", nargs=-1, type=RankPath(), metavar="REPORTS…")
@click.option(
    "--input",
    "more",
    multiple=True,
    type=RankPath(),
    metavar="REPORT",
    help="One more report, or a folder of reports.",
)
@click.option(
    "--against",
    multiple=True,
    type=RankPath(),
    metavar="REPORT",
    help="A report, or a folder of reports, of an earlier job: print what changed, by rank.",
)
@click.option(
    "-f",
    "--format",
    "form",
    default="table",
    show_default=True,
    metavar="FORMAT",
    help="table, csv, tsv, json, markdown, html (one page) or parquet (with -o).",
)
@click.option(
    "-o",
    "--output",
    metavar="NAME",
    help="Write each table to a file NAME_TABLE.csv …; json and html: to one file.",
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
    paths: tuple[Place, ...],
    more: tuple[Place, ...],
    against: tuple[Place, ...],
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
    output_of = AnswerOutput.of(
        form, output, rows=rows, unit=timeunit, overwrite=force_overwrite, quiet=quiet
    )
    reports = expanded((*paths, *more))
    from warplens.recipes.engine import run

    pool = _pool(jobs, dask, dask_scheduler_file)

    def answered(paths: list[Place]) -> tuple[Answer, list[BrokenPart]]:
        with progress_bar(quiet) as bar:
            return run(
                unit.id,
                paths,
                pool,
                options=options,
                progress=lambda done, count: bar(f"{done:,} of {counted(count, 'report')}", done / count),
            )

    answer, broken = answered(reports)
    if against:
        from warplens.recipes.differing import compared

        before, more_broken = answered(expanded(against))
        answer, broken = compared(before, answer), [*broken, *more_broken]
    for text in [] if quiet else left_out(broken):
        tell(f"warplens: left out: {text}")
    output_of.give(unit, answer, reports, broken=broken)
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


def expanded(paths: tuple[Place, ...]) -> list[Place]:
    """Return the reports that are meant: a folder that is none stands for those in it, by number, then name.

    UsageError if there is none.
    """
    reports: list[Place] = []
    for path in paths:
        if isinstance(path, str):
            from warplens.recipes.remote import listed

            reports += sorted(listed(path), key=lambda url: _natural(Path(url)))
            continue
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
        reasons.setdefault(
            one.error.replace(str(one.path), "…").replace(Path(one.path).name, "…"), []
        ).append(one.error)
    for errors in reasons.values():
        yield errors[0] + (f" (and {len(errors) - 1} more like it)" if len(errors) > 1 else "")


def _natural(path: Path) -> list[tuple[int, str]]:
    """Sort `rank10` behind `rank9`."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", path.name) if part
    ]
