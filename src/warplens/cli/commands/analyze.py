"""Name what costs time, why, and how to fix it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens import catalog
from warplens.cli.light import give_back_early
from warplens.cli.opening import opened as open_report
from warplens.cli.opening import window_option
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.report_path import ReportPath
from warplens.cli.options.unit_help import help_option
from warplens.cli.options.unit_options import unit_options
from warplens.cli.printing import findings, tables
from warplens.cli.printing.output import write_lines
from warplens.errors import UsageError

if TYPE_CHECKING:
    from warplens.rules.judging import Judgement

FAMILY = "rules.checks"
_DETAILS = 3
_SERIOUS = ("high", "medium", "low")


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warplens analyze run.warplens
  warplens analyze -r gpu_gaps:gap=1 run.warplens    one rule, its gap 1 ms
  warplens analyze --filter-nvtx step/3 run          the fourth `step` only
  warplens analyze -f json -o findings.json run      for programs
  warplens analyze --fail-on high run                exit code 1 for CI
""",
)
@click.argument("report", type=ReportPath())
@click.option(
    "-r",
    "--rule",
    "names",
    multiple=True,
    metavar="NAME[:ARGUMENT…][,…]",
    help="Rules to run; all by default (see --help-rules).",
)
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(("text", "json", "markdown")),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file.")
@click.option(
    "--details",
    metavar="N|all",
    help=f"Number of findings to explain below the table.  [default: {_DETAILS}; all with -r]",
)
@click.option(
    "--why-not",
    is_flag=True,
    help="For each rule that could not judge, print the missing data. Always on with -r.",
)
@click.option(
    "--rows",
    type=click.IntRange(0),
    default=3,
    show_default=True,
    help="Rows of evidence per finding; -f json has all.",
)
@click.option(
    "--filter-time", metavar="A/B", help="Only rows that overlap this time of the report, e.g. 1s/1s500ms."
)
@click.option(
    "--filter-nvtx",
    metavar="RANGE[@DOMAIN][/INDEX]",
    help="Only the time of an NVTX range; INDEX counts from 0, default: the first range.",
)
@window_option
@click.option(
    "--fail-on",
    type=click.Choice(_SERIOUS),
    metavar="high|medium|low",
    help="Exit with 1 if a finding has at least this severity.",
)
@click.option("--force-overwrite", is_flag=True, help="Replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress notes about imported data.")
@help_option("--help-rules", FAMILY, "rules")
@click.pass_context
def command(
    ctx: click.Context,
    report: Path,
    names: tuple[str, ...],
    form: str,
    output: Path | None,
    details: str | None,
    why_not: bool,
    rows: int,
    filter_time: str | None,
    filter_nvtx: str | None,
    window: int | None,
    fail_on: str | None,
    force_overwrite: bool,
    quiet: bool,
) -> None:
    """Name what costs time, why, and how to fix it.

    A table of all findings comes first, then the most important ones in detail. Costs are upper
    bounds of the saving. One line counts the rules that cannot judge because the report lacks their
    data.
    """
    give_back_early()
    asked = [item.split(":") for name in names for item in name.split(",") if item]
    units = [catalog.find(FAMILY, name) for name, *_ in asked]
    options = {unit.id: unit_options(unit, words[1:]) for unit, words in zip(units, asked, strict=True)}
    from warplens.report import Selection
    from warplens.rules.judging import judge

    with open_report(report, window=window, quiet=quiet) as opened:
        judgement = judge(
            opened,
            Selection.parse(filter_time, filter_nvtx),
            [unit.id for unit in units] or None,
            options=options,
        )
    shown = _number(details) if details is not None else None if names else _DETAILS
    lines = _lines(
        judgement,
        form,
        rows,
        width=0 if output else tables.terminal_width(),
        details=shown,
        reasons=why_not or bool(names),
    )
    if output is None:
        tables.show(lines)
    else:
        write_lines(output, lines, overwrite=force_overwrite)
        if not quiet:
            click.echo(f"{output}", err=True)
    limit = _SERIOUS.index(fail_on) if fail_on else -1
    ctx.exit(1 if any(finding.severity in _SERIOUS[: limit + 1] for finding in judgement.findings) else 0)


def _number(text: str) -> int | None:
    """How many findings are explained; None: all."""
    if text.lower() == "all":
        return None
    if not (text.isascii() and text.isdecimal()):
        raise UsageError(f"--details {text}: write a number of findings, or all.")
    return int(text)


def _lines(
    judgement: Judgement, form: str, rows: int, width: int, details: int | None, *, reasons: bool
) -> Iterator[str]:
    if form == "json":
        return iter([json.dumps(judgement.as_json(), indent=2, default=_plain)])
    if form == "markdown":
        return findings.as_markdown(judgement, rows, width)
    return findings.as_text(judgement, rows, width, details=details, reasons=reasons)


def _plain(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else str(value)
