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
    help="Show this time of the report, e.g. 1s/1s500ms; either may be left out.",
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
    help="Levels of nesting per thread.",
)
@click.option(
    "--process", "processes", multiple=True, metavar="PID|NAME", help="Only this process; may be repeated."
)
@click.option(
    "--thread",
    "threads",
    multiple=True,
    metavar="TID|NAME",
    help="Only threads with this id, or this in their name.",
)
@click.option(
    "--tracks",
    "most",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum number of threads, the busiest first. Default: 24, and three of each group of similar ones.",
)
@click.option(
    "--tasks",
    type=click.IntRange(0),
    default=6,
    show_default=True,
    metavar="N",
    help="Maximum number of tasks of a thread with separate rows.",
)
@click.option(
    "--counters",
    type=click.IntRange(0),
    default=8,
    show_default=True,
    metavar="N",
    help="Maximum number of counters of a process; half as many of a GPU.",
)
@click.option(
    "--rows",
    metavar="NAME[,…]",
    help="Of the CPU side only these: states, samples, python, imports, gc, gil, osrt; all (default) or none.",
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
    help="Show the inside of launches with this in their name; without --range, of the longest.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour the ranges.",
)
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters alone.")
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
    """Draw a report's timeline in the terminal: processes, threads, tasks, nested ranges, marks and counters; the CPU side, CUDA, GPUs.

    A column shows the name that took most of its time; for ranges smaller than a column it shows how busy it was.
    Tasks (asyncio, trio, generators) have separate rows under their thread: the busiest, and one row for all others.
    Below a thread is what it did on the CPU: its states, the function that samples saw most, calls of Python, imports, the garbage
    collector, the GIL, and calls of the C library. A row is there where there is something to show.
    Each GPU that a process used has a row for how busy it was, one for each stream and each kind of copy, its memory and its metrics.
    Kernels that time themselves (warplens.intrakernel) have a row for each of the warps that ran longest, by SM, block (b) and warp (w):
    those that --inside names, else of the launch that is alone in the time shown, or of the longest where the report has nothing else.
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
