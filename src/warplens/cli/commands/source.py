"""Show source lines with the share of the samples in each: a heat map."""

from __future__ import annotations

from pathlib import Path

import click

from warplens.cli import tables
from warplens.cli.colors import colored, has_unicode, palette
from warplens.cli.flame.options import selection_options
from warplens.cli.opening import opened as open_report
from warplens.cli.report_path import ReportPath


@click.command(
    epilog="""\b
Examples:
  warplens source run.warplens                 the hottest files
  warplens source run.warplens train.py --all  one file, every line of it
  warplens source --filter-nvtx step run       what the ranges `step` ran
"""
)
@click.argument("report", type=ReportPath())
@click.argument("file", required=False)
@click.option("--all", "whole", is_flag=True, help="Every line of the file, not only those around the hot ones.")
@click.option("--files", type=click.IntRange(1), default=3, show_default=True, metavar="N", help="How many files, without FILE.")
@click.option("--context", type=click.IntRange(0), default=2, show_default=True, metavar="N", help="Lines around a hot one.")
@click.option(
    "--min", "least", type=click.FloatRange(0, 100), default=1.0, show_default=True, metavar="PERCENT", help="A hot line has so much."
)
@click.option("--wall", is_flag=True, help="Samples of threads that waited, too.")
@selection_options
@click.option("--width", type=click.IntRange(40, 1000), metavar="N", help="Characters per line; default: the terminal's, else 100.")
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True, help="Colour the lines.")
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters alone.")
def command(
    report: Path,
    file: str | None,
    whole: bool,
    files: int,
    context: int,
    least: float,
    wall: bool,
    processes: tuple[str, ...],
    threads: tuple[str, ...],
    filter_time: str | None,
    filter_nvtx: str | None,
    window: int | None,
    width: int | None,
    color: str,
    plain: bool,
) -> None:
    """Show the lines of Python files with the share of the samples in each.

    The hotter a line, the redder it is. Total is the share of samples in which the line was active, itself or in what it called;
    Self that of samples which ended in it. FILE is a path or the end of one; without it, the hottest files are shown, those of the
    program itself first. The text of the lines is read from the file on this machine, where it is there.
    """
    from warplens.cli.flame.load import Wish, load
    from warplens.cli.flame.source import hot_files, shown
    from warplens.cli.timeline.render import Style
    from warplens.query import Selection

    style = Style(width or (tables.terminal_width() or 100), ascii=plain or not has_unicode(), colors=palette() if colored(color) else 0)
    with open_report(report, window=window) as opened:
        wish = Wish("line", False, wall, "python", processes, threads)
        flame = load(opened, Selection.parse(filter_time, filter_nvtx), wish)
        lines = [flame.title]
        recorded = opened.path.stat().st_mtime
        for hot in hot_files(flame, file, files):
            lines += ["", *shown(hot, style, whole=whole, context=context, least=least / 100, recorded=recorded)]
    tables.show(iter(lines))
