"""Print tables: where the time went, summed by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens import catalog
from warplens.catalog import Unit
from warplens.cli.light import give_back_early
from warplens.cli.opening import opened as open_report
from warplens.cli.opening import window_option
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.report_path import ReportPath
from warplens.cli.options.unit_help import help_option
from warplens.cli.options.unit_options import unit_options
from warplens.cli.printing import tables
from warplens.cli.printing.output import write_lines
from warplens.cli.printing.words import counted
from warplens.errors import MissingData, UsageError
from warplens.handover.naming import SUFFIX

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

FAMILY = "stats.tables"
_ROWS, _ROWS_UNASKED = 40, 10  # of a table on the terminal: a screen; of each of those that come unasked
_TABLES = 5  # that come unasked
# Of these, the ones that say most come first.
_TELLING = (
    "nvtx_sum",
    "cuda_gpu_kern_sum",
    "cpu_hotspots",
    "thread_state_sum",
    "gpu_utilization",
    "osrt_sum",
    "import_sum",
    "gil_sum",
)
_BY = (
    "device",
    "stream",
    "process",
    "rank",
    "launch",
    "sm",
    "warp",
    "role",
    "tag",
)  # the last ones: inside kernels


@dataclass(frozen=True)
class Job:
    """One stat in one format to one place.

    The place is `-`, or a base name before the stat's name and the suffix.
    """

    stat: Unit
    options: dict[str, Any]
    form: str
    output: str
    arguments: str = ""

    def file(self, report: Path) -> Path | None:
        """Where the text goes; None for the standard output."""
        if self.output == "-":
            return None
        base = str(report).removesuffix(SUFFIX) if self.output == "." else self.output
        return Path(f"{base}_{self.stat.id}{self.arguments}{tables.SUFFIXES[self.form]}")


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warplens stats run.warplens
  warplens stats -r nvtx_pushpop_sum --timeunit ms run.warplens
  warplens stats -f csv -o sums run.warplens      writes sums_nvtx_sum.csv
  warplens stats --filter-nvtx step@train/3 run   the fourth `step` only
  warplens stats --window 2 run                   one window of the capture
  warplens stats -r nvtx_pushpop_trace --filter-time 1s/1s500ms run
  warplens stats -r cuda_gpu_kern_sum:base run    kernels by function name
  warplens stats --by rank -r temporal_breakdown,comm_comp_overlap run
  warplens stats --by role -r intrakernel_sum run         by role of warps
""",
)
@click.argument("report", type=ReportPath())
@click.option(
    "-r",
    "--report",
    "names",
    multiple=True,
    metavar="NAME[:ARGUMENT…][,…]",
    help="Tables to print (see --help-reports).",
)
@click.option(
    "-f",
    "--format",
    "forms",
    multiple=True,
    metavar="FORMAT[,…]",
    help="table (default), csv, spreadsheet (csv without formulas), tsv, json, markdown or html.",
)
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    metavar="-|NAME[,…]",
    help="Standard output, or files NAME_TABLE.csv …; `.`: beside the report.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help=f"Print every table that the report has data for, not only the first {_TABLES}.",
)
@click.option(
    "--native",
    is_flag=True,
    help="For a Python program, also list native functions and single modules.",
)
@click.option(
    "--by",
    type=click.Choice(_BY),
    help="Group rows by this, in tables with the argument :by=.",
)
@click.option(
    "--rows",
    type=click.IntRange(0),
    metavar="N",
    help=f"Maximum number of rows per table on standard output; 0: all. Default: {_ROWS} with -r, else {_ROWS_UNASKED}. "
    "Other formats and files have all rows.",
)
@click.option(
    "--timeunit",
    metavar="UNIT",
    help="ns, us, ms or s; also nsec, usec, msec, sec. Default: ns with -r, else the unit that fits "
    "each table.",
)
@click.option(
    "--filter-time", metavar="A/B", help="Only rows that overlap this time of the report, e.g. 1s/1s500ms."
)
@click.option(
    "--filter-nvtx",
    metavar="RANGE[@DOMAIN][/INDEX]",
    help="Only rows that overlap the time of an NVTX range; INDEX counts from 0, default: the first "
    "range. For the CPU side: time of threads in their own ranges, without INDEX in all of that "
    "name.",
)
@window_option
@click.option("--force-overwrite", is_flag=True, help="Replace files that exist.")
@click.option("--force-export", is_flag=True, hidden=True)
@click.option("-q", "--quiet", is_flag=True, help="Print no titles, notes or messages.")
@help_option("--help-reports", FAMILY, "tables")
@click.pass_context
def command(
    ctx: click.Context,
    report: Path,
    names: tuple[str, ...],
    forms: tuple[str, ...],
    outputs: tuple[str, ...],
    everything: bool,
    native: bool,
    by: str | None,
    rows: int | None,
    timeunit: str | None,
    filter_time: str | None,
    filter_nvtx: str | None,
    window: int | None,
    force_overwrite: bool,
    force_export: bool,
    quiet: bool,
) -> None:
    """Print tables: where the time went, summed by name.

    The lists of -r, -f and -o belong together, element by element; a shorter list repeats its last
    element.
    """
    give_back_early()
    unit = None if timeunit is None else tables.time_unit(timeunit)
    todo = apart(jobs(_listed(names), _listed(forms), _listed(outputs)), by)
    from warplens.report import Selection

    selection = Selection.parse(filter_time, filter_nvtx)
    most = rows if rows is not None else _ROWS if names else _ROWS_UNASKED
    few = not (names or forms or outputs or everything or by)
    if few:
        todo.sort(key=lambda job: _TELLING.index(job.stat.id) if job.stat.id in _TELLING else len(_TELLING))
    printed = 0
    left: list[str] = []
    skipped: list[str] = []
    with open_report(report, window=window, quiet=quiet) as opened:
        if few and not native and _has_python(opened):
            todo = [_in_python(job) for job in todo]
        for job in todo:
            try:
                if few and printed == _TABLES:
                    job.stat.load().table(opened, selection, **job.options)
                    left.append(job.stat.id)
                    continue
                _run(
                    job,
                    opened,
                    selection,
                    unit=unit,
                    rows=most,
                    overwrite=force_overwrite,
                    quiet=quiet,
                    first=not printed,
                    named=bool(names),
                    few=few,
                )
                printed += 1
            except MissingData as missing:
                skipped.append(
                    f"SKIPPED: {opened.path.name + ' ' if str(missing).startswith('does not') else ''}{missing}"
                )
    if left and not quiet:
        click.echo(f"\nMore tables: -r {','.join(left)} (--all prints every one)")
    if not names:  # of the tables that come unasked, only those with data are worth a word
        skipped = [] if printed else _nothing(skipped, opened.path.name)
    for line in [] if quiet else skipped:
        click.echo(line, err=True)
    ctx.exit(0 if printed else 1)


def _has_python(report: Report) -> bool:
    """Say whether stacks of Python were sampled."""
    return (
        bool(report.tables["samples"])
        and "python" in report.table("samples", ["kind"])["kind"].unique().to_pylist()
    )


def _in_python(job: Job) -> Job:
    """Return the job that answers in terms of Python: lines of the program first, imports by package."""
    if job.stat.id == "cpu_hotspots":
        return replace(job, stat=catalog.find(FAMILY, "python_hotspots"), options={"by": "line"})
    return replace(job, options={"by": "package"}) if job.stat.id == "import_sum" else job


def _page(job: Job, table: pa.Table, report: Report) -> Iterator[str]:
    from warplens.flows.html.stat_page import stat_page

    return iter(stat_page(job.stat, table, title=report.path.name).splitlines())


def _nothing(skipped: list[str], name: str) -> list[str]:
    """What to say where no table has data: one line for a whole report, else each reason once."""
    # What follows `data`: nothing, or ` in the selected part`; advice comes behind a semicolon.
    places = {line.partition(" data")[2].partition(";")[0].removesuffix(".") for line in skipped}
    if len(places) == 1 and all(" does not contain " in line for line in skipped):
        return [f"SKIPPED: {name} does not contain NVTX, CUDA, CPU or GPU metrics data{places.pop()}."]
    return list(dict.fromkeys(skipped))


def unasked() -> list[Unit]:
    """Return the default stats: those that nsys prints in its order, then ours by name."""
    places = {unit: unit.constant("DEFAULT") for unit in catalog.units(FAMILY)}
    return sorted(
        (unit for unit, place in places.items() if place is not False),
        key=lambda unit: places[unit] or len(places),
    )


def jobs(names: list[str], forms: list[str], outputs: list[str]) -> list[Job]:
    """Put stats, formats and outputs together; a shorter list repeats its last element.

    UsageError for unknown ones.
    """
    chosen = names or [unit.id for unit in unasked()]
    shapes, places = [tables.format_name(form, pages=True) for form in forms] or ["table"], outputs or ["-"]
    result = []
    for index in range(max(len(chosen), len(shapes), len(places))):
        name, form, place = (items[min(index, len(items) - 1)] for items in (chosen, shapes, places))
        if place.startswith("@"):
            raise UsageError(
                f"-o {place}: piping to a command is not supported; write `warplens stats … | "
                f"{place[1:] or 'COMMAND'}`."
            )
        stat, *arguments = name.split(":")
        unit = catalog.find(FAMILY, stat)
        result.append(
            Job(
                unit,
                unit_options(unit, arguments),
                form,
                output=place,
                arguments="".join(f"_{text}" for text in arguments),
            )
        )
    return result


def apart(todo: list[Job], by: str | None) -> list[Job]:
    """Hand `--by` to the stats whose BY has it; their own `:by=` comes first.

    UsageError if none takes it.
    """
    known = {job.stat: job.stat.constant("BY") or () for job in todo}
    if by is not None and not any(by in values for values in known.values()):
        others = ", ".join(unit.id for unit in catalog.units(FAMILY) if by in (unit.constant("BY") or ()))
        raise UsageError(f"none of these tables can be grouped by {by}; with -r, these are: {others}.")
    return [replace(job, options={"by": by, **job.options}) if by in known[job.stat] else job for job in todo]


def _listed(values: tuple[str, ...]) -> list[str]:
    return [item for value in values for item in value.split(",") if item]


def _run(
    job: Job,
    report: Report,
    selection: Selection,
    unit: str | None,
    rows: int,
    *,
    overwrite: bool,
    quiet: bool,
    first: bool,
    named: bool,
    few: bool,
) -> None:
    """Compute and write one table, at most `rows` of it for reading (0: all). `few`: without columns that say nothing.

    MissingData if the report has no data for it.
    """
    from warplens.stats import base
    from warplens.storage.memory import give_back

    give_back()  # of the table before
    table = job.stat.load().table(report, selection, **job.options)
    notes, title = base.notes(table), base.title(table) or job.stat.summary.rstrip(".")
    file = job.file(report.path)
    hidden = max(table.num_rows - rows, 0) if rows and file is None and job.form == "table" else 0
    if hidden > 1:  # to say that there is one more takes a line, too
        table = table.slice(0, rows)
    for_reading = job.form in ("table", "markdown")
    width = tables.terminal_width() if file is None else 0
    if few:
        table = tables.telling(table)
        unit = unit or tables.fitting_unit(table)
    shown, gone = tables.fitted(tables.in_unit(table, unit or "ns"), width if job.form == "table" else 0)
    lines = (
        _page(job, table, report) if job.form == tables.PAGE else tables.FORMATS[job.form](shown, width=width)
    )
    if file is not None:
        write_lines(file, lines, overwrite=overwrite)
        if not quiet:
            click.echo(f"{job.stat.id}: {file}", err=True)
    else:
        if not first:
            click.echo()
        if for_reading and not quiet:
            click.echo(f" ** {title} ({job.stat.id}):\n")
        tables.show(lines)
        if hidden > 1:  # part of the table, so it is there with -q, too
            more = (
                "--rows 0 shows all, -f csv writes them"
                if named
                else f"-r {job.stat.id} --rows 0 shows all, -f csv writes them"
            )
            click.echo(f"… and {counted(hidden, 'more row')}; {more}")
        if gone:
            notes = [
                *notes,
                f"no room here for {', '.join(name.partition(' (')[0] for name in gone)}; -f csv has all.",
            ]
    for note in [] if quiet else notes:
        click.echo(
            f"\nNote: {note}" if for_reading and file is None else f"{job.stat.id}: {note}",
            err=not (for_reading and file is None),
        )
