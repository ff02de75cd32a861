"""Draw samples as a flame graph in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from warplens.cli.flame.options import selection_options
from warplens.cli.opening import opened as open_report
from warplens.cli.options.report_path import ReportPath
from warplens.cli.printing import tables
from warplens.cli.printing.colors import colored, has_unicode, palette


@click.command(
    epilog="""\b
Examples:
  warplens flame run.warplens
  warplens flame --filter-nvtx step run      time inside the ranges `step`
  warplens flame --reverse --thread main run from functions to their callers
  warplens flame --tree --by line --min 5 run
  warplens flame --wall --per-thread run     including waiting threads
  warplens flame --kind tasks --wall run     what asyncio tasks await
  warplens flame --baseline before.warplens after.warplens
  warplens flame --exceptions run            cost of handling exceptions
"""
)
@click.argument("report", type=ReportPath())
@click.option(
    "--by",
    type=click.Choice(["function", "line", "module"]),
    default="function",
    show_default=True,
    help="Group frames by function, by line, or by library or file.",
)
@click.option("--reverse", is_flag=True, help="Draw from the innermost functions outwards to their callers.")
@click.option("--tree", "as_tree", is_flag=True, help="Print an indented tree, with the shares as numbers.")
@click.option(
    "--kind",
    type=click.Choice(["python", "native", "osrt", "tasks"]),
    help="Samples to draw (default: native, if any), or OS calls, or asyncio tasks.",
)
@click.option(
    "--wall",
    is_flag=True,
    help="Include Python samples of waiting threads, except threads that only wait at one place; with "
    "tasks, include waiting ones.",
)
@click.option(
    "--baseline",
    type=ReportPath(),
    metavar="REPORT",
    help="Colour by the change against this report: red grew, blue shrank.",
)
@click.option("--per-thread", is_flag=True, help="One graph for each thread.")
@selection_options
@click.option(
    "--depth",
    type=click.IntRange(1, 1000),
    default=40,
    show_default=True,
    metavar="N",
    help="Maximum number of levels.",
)
@click.option(
    "--min",
    "least",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Minimum share of a line of --tree, in percent.",
)
@click.option(
    "--top",
    type=click.IntRange(0),
    default=5,
    show_default=True,
    metavar="N",
    help="Number of hottest functions listed below the graph.",
)
@click.option(
    "--width",
    type=click.IntRange(40, 1000),
    metavar="N",
    help="Characters per line; default: the terminal's, else 80.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour the bars.",
)
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
def command(
    report: Path,
    by: str,
    reverse: bool,
    as_tree: bool,
    kind: str | None,
    wall: bool,
    baseline: Path | None,
    per_thread: bool,
    processes: tuple[str, ...],
    threads: tuple[str, ...],
    filter_time: str | None,
    filter_nvtx: str | None,
    window: int | None,
    exceptions: bool,
    depth: int,
    least: float,
    top: int,
    width: int | None,
    color: str,
    plain: bool,
) -> None:
    """Draw samples as a flame graph in the terminal.

    Each bar is as wide as its share of the time, callees below their callers. Its colour is that of
    its file or library. Without --wall, only running threads count.

    With --baseline, the graph is differential: a bar is as wide as its share in REPORT, and prints
    the change of that share in percent of all samples.

    With --kind osrt, each C library call that has a stack counts with its duration: the graph shows
    where threads waited. With --kind tasks, the roots are asyncio tasks; an awaited task is drawn
    below the task that awaits it.
    """
    from warplens.cli.flame import difference, picture
    from warplens.cli.flame.load import Wish, load
    from warplens.cli.timeline.render import Style
    from warplens.report import Selection

    style = Style(
        width or (tables.terminal_width() or 80),
        ascii=plain or not has_unicode(),
        colors=palette() if colored(color) else 0,
    )
    selection = Selection.parse(filter_time, filter_nvtx)
    with open_report(report, window=window) as opened:
        wish = Wish(
            by,
            reverse,
            wall,
            kind=kind,
            processes=processes,
            threads=threads,
            per_thread=per_thread,
            exceptions=exceptions,
        )
        flame = load(opened, selection, wish)
        before = None
        if baseline is not None:
            with open_report(baseline) as other:
                before = load(other, selection, wish)
            flame = difference.against(flame, before, by)
        lines = flame.title.splitlines()
        if as_tree:
            lines += picture.indented(flame, by, style, depth=depth, least=least / 100)
        else:
            lines += picture.graph(flame, by, style, depth=depth)
            if top and before is not None:
                lines += picture.changed(difference.most_changed(flame, before, by), style, top)
            elif top:
                lines += picture.hottest(flame, by, style, number=top)
    tables.show(iter(lines))
