"""Draw a report's timeline in the terminal."""

from __future__ import annotations

from pathlib import Path

import click

from warplens.cli.opening import opened as open_report
from warplens.cli.opening import window_option
from warplens.cli.options.report_path import ReportPath
from warplens.cli.printing import tables
from warplens.cli.printing.colors import colored, has_unicode, palette
from warplens.errors import UsageError

_TRACKS = 24


@click.command(
    epilog="""\b
Examples:
  warplens timeline run.warplens
  warplens timeline run.warplens --range 1s/1s200ms --depth 3
  warplens timeline run.warplens --inside gemm
  warplens timeline run.warplens --thread loader --color always | less -R
"""
)
@click.argument("report", type=ReportPath())
@click.option(
    "--range",
    "span",
    metavar="A/B",
    help="Show this time of the report, e.g. 1s/1s500ms; A or B may be left out.",
)
@window_option
@click.option(
    "--width",
    type=click.IntRange(40, 1000),
    metavar="N",
    help="Characters per line; default: the terminal's, else 80.",
)
@click.option(
    "--depth",
    type=click.IntRange(1, 1000),
    default=8,
    show_default=True,
    metavar="N",
    help="Maximum number of nesting levels per thread.",
)
@click.option(
    "--process", "processes", multiple=True, metavar="PID|NAME", help="Only this process; may be repeated."
)
@click.option(
    "--thread",
    "threads",
    multiple=True,
    metavar="TID|NAME",
    help="Only threads with this id, or with this text in their name.",
)
@click.option(
    "--tracks",
    "most",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of threads, the busiest first. Default: 24 in total, and 3 of each group of "
    "similar threads.",
)
@click.option(
    "--tasks",
    type=click.IntRange(0),
    default=6,
    show_default=True,
    metavar="N",
    help="Maximum number of separate task rows per thread.",
)
@click.option(
    "--counters",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    metavar="N",
    help="Maximum number of counters per process; half as many per GPU.",
)
@click.option(
    "--rows",
    metavar="NAME[,…]",
    help="Rows of the CPU side: states, samples, python, imports, gc, gil, osrt; all (default) or none.",
)
@click.option(
    "--cpu",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    metavar="N",
    help="Maximum number of threads drawn with CPU detail beyond thread state.",
)
@click.option(
    "--inside",
    metavar="NAME",
    help="Show the inside of launches with this text in their name; without --range, only the longest.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour the ranges.",
)
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
def command(
    report: Path,
    span: str | None,
    window: int | None,
    width: int | None,
    depth: int,
    processes: tuple[str, ...],
    threads: tuple[str, ...],
    most: int | None,
    tasks: int,
    counters: int,
    rows: str | None,
    cpu: int,
    inside: str | None,
    color: str,
    plain: bool,
) -> None:
    """Draw a report's timeline in the terminal: processes, threads, tasks, ranges, counters and GPUs.

    A column shows the name that took most of its time. If ranges are narrower than a column, it
    shows how busy the column was. A row is shown only if it has content.

    Below each thread are its nested ranges and marks, then its tasks (asyncio, trio, generators):
    the busiest in separate rows, all others in one. Then comes the CPU side: thread states, the
    function with most samples, Python calls, imports, garbage collector, GIL, and C library calls.

    Each GPU that a process used has rows for how busy it was, for its streams, for copies by
    direction, and for its memory and metrics.

    Kernels that time themselves (warplens.intrakernel) have a row for each of their longest-running
    warps, by SM, block (b) and warp (w). --inside chooses the launch. By default it is the only
    launch in the shown time; if the report has nothing else, it is the longest.
    """
    from warplens.cli.timeline.cpu import wanted_rows
    from warplens.cli.timeline.inside import window_of
    from warplens.cli.timeline.load import Wish, load
    from warplens.cli.timeline.render import Style, render
    from warplens.report import Selection

    size = width or (tables.terminal_width() or 80)
    plain = plain or not has_unicode()
    style = Style(size, ascii=plain, colors=palette() if colored(color) else 0)
    with open_report(report, window=window) as opened:
        whole = opened.span
        wanted = Selection.parse(span).window(opened) or (
            window_of(opened, inside) if inside is not None else whole
        )
        begin, end = max(wanted[0], whole[0]), min(wanted[1], whole[1])
        if begin >= end:
            length = (opened.end - opened.origin) / 1e9
            where = (
                f"the report is {length:.6g} s long"
                if window is None
                else f"window {window} is at another time"
            )
            raise (
                UsageError(f"--range {span}: nothing there; {where}.")
                if span
                else UsageError(f"{report} is empty: nothing was recorded.")
            )
        picture = load(
            opened,
            (begin, end),
            style.columns,
            wish=Wish(
                depth,
                processes,
                threads,
                tracks=most or _TRACKS,
                fold=most is None,
                tasks=tasks,
                counters=counters,
                rows=wanted_rows(rows),
                cpu=cpu,
                inside=inside,
            ),
        )
    tables.show(render(picture, style))
