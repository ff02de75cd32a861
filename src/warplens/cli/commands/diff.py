"""Compare two recordings: what became slower, what became faster, and what is noise."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warplens.cli.opening import opened
from warplens.cli.options.flags import FlagCommand
from warplens.cli.options.report_path import ReportPath
from warplens.cli.printing import differences, tables
from warplens.cli.printing.output import write_lines

if TYPE_CHECKING:
    from warplens.flows.differing import Difference
    from warplens.flows.gating import Verdict


@click.command(
    cls=FlagCommand,
    epilog="""\b
Examples:
  warplens diff before.warplens after.warplens
  warplens diff --fail-if 'step.p50 > +5%' before after
  warplens diff -f markdown -o comment.md before after
  warplens diff --before a1 --before a2 a3 b1 --after b2    two sets
""",
)
@click.argument("before", type=ReportPath())
@click.argument("after", type=ReportPath())
@click.option(
    "--before",
    "more_before",
    multiple=True,
    type=ReportPath(),
    metavar="REPORT",
    help="One more recording of the first side.",
)
@click.option(
    "--after",
    "more_after",
    multiple=True,
    type=ReportPath(),
    metavar="REPORT",
    help="One more recording of the second side.",
)
@click.option("--steps", metavar="RANGE", help="NVTX range of one step, if it is not recognised.")
@click.option(
    "--fail-if",
    "conditions",
    multiple=True,
    metavar="CONDITION",
    help="Exit with 1 if the condition holds and the change exceeds the noise: KIND[NAME].VALUE > LIMIT, "
    "e.g. 'step.p50 > +5%'. May be repeated.",
)
@click.option(
    "--filter-time", metavar="A/B", help="Only rows that overlap this time of each report, e.g. 1s/1s500ms."
)
@click.option(
    "--filter-nvtx",
    metavar="RANGE[@DOMAIN][/INDEX]",
    help="Only the time of an NVTX range; INDEX counts from 0, default: the first range.",
)
@click.option("--rules/--no-rules", default=True, help="Compare the findings of the rules, too.")
@click.option(
    "--rows", type=click.IntRange(0), default=10, show_default=True, help="Rows of each kind; 0: all."
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
@click.option("--force-overwrite", is_flag=True, help="Replace a file that exists.")
@click.option("-q", "--quiet", is_flag=True, help="Suppress notes about imported data.")
@click.pass_context
def command(
    ctx: click.Context,
    before: Path,
    after: Path,
    more_before: tuple[Path, ...],
    more_after: tuple[Path, ...],
    steps: str | None,
    conditions: tuple[str, ...],
    filter_time: str | None,
    filter_nvtx: str | None,
    rules: bool,
    rows: int,
    form: str,
    output: Path | None,
    force_overwrite: bool,
    quiet: bool,
) -> None:
    """Compare two recordings: what became slower, what became faster, and what is noise.

    The output starts with the figures of the run. The causes of the difference follow and add up to
    it, then a table of each kind. Times are per step if both recordings have steps, or else of the
    whole run. A change is reported if it exceeds three times the standard error of the repeats
    within the recordings.
    """
    from warplens.flows.differing import diff
    from warplens.flows.gating import Condition
    from warplens.report import Selection

    asked = [Condition.parse(text) for text in conditions]
    with ExitStack() as stack:
        sides = [
            [stack.enter_context(opened(path, quiet=quiet)) for path in paths]
            for paths in ((before, *more_before), (after, *more_after))
        ]
        difference = diff(
            *sides, selection=Selection.parse(filter_time, filter_nvtx), steps=steps, rules=rules
        )
    verdicts = [condition.judge(difference) for condition in asked]
    lines = _lines(difference, verdicts, form, rows=rows, width=0 if output else tables.terminal_width())
    if output is None:
        tables.show(lines)
    else:
        write_lines(output, lines, overwrite=force_overwrite)
    ctx.exit(1 if any(verdict.met or not verdict.judged for verdict in verdicts) else 0)


def _lines(
    difference: Difference, verdicts: Sequence[Verdict], form: str, rows: int, width: int
) -> Iterator[str]:
    if form == "json":
        return iter([json.dumps(differences.as_json(difference, verdicts), indent=2)])
    return (differences.as_text if form == "text" else differences.as_markdown)(
        difference, verdicts, rows, width
    )
