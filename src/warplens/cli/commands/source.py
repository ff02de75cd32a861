"""Show source lines with the share of the samples in each: a heat map, as text or as a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warplens.cli.flame.options import selection_options
from warplens.cli.opening import opened as open_report
from warplens.cli.options.report_path import ReportPath
from warplens.cli.printing import tables
from warplens.cli.printing.colors import colored, has_unicode, palette
from warplens.cli.printing.output import write_lines
from warplens.cli.printing.words import short_path
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.analysis.cpu.opcodes import Instructions
    from warplens.cli.flame.load import Flame, Wish
    from warplens.report import Report, Selection

_AS_TEXT, _ON_A_PAGE = 3, 30  # files


@click.command(
    epilog="""\b
Examples:
  warplens source run.warplens                 the hottest files
  warplens source run.warplens train.py --all  one file, every line of it
  warplens source --filter-nvtx step run       time inside the ranges `step`
  warplens source -f html -o lines.html run    an HTML page
"""
)
@click.argument("report", type=ReportPath())
@click.argument("file", required=False)
@click.option(
    "--all", "whole", is_flag=True, help="Show every line of the file, not only those around hot lines."
)
@click.option(
    "--files",
    type=click.IntRange(1),
    metavar="N",
    help="Number of files, without FILE; default: 3, on a page 30.",
)
@click.option(
    "--context",
    type=click.IntRange(0),
    metavar="N",
    help="Lines around a hot one; default: 2, on a page 5 in libraries and every line of other files.",
)
@click.option(
    "--min",
    "least",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    metavar="PERCENT",
    help="Minimum share of a hot line, in percent.",
)
@click.option("--opcodes", is_flag=True, help="List the instructions in which each line's samples ended.")
@click.option("--wall", is_flag=True, help="Include samples of waiting threads.")
@selection_options
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(("text", "html")),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE", help="Write to a file.")
@click.option("--force-overwrite", is_flag=True, help="Replace a file that exists.")
@click.option(
    "--width",
    type=click.IntRange(40, 1000),
    metavar="N",
    help="Characters per line; default: the terminal's, else 100.",
)
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colour the lines.",
)
@click.option("--ascii", "plain", is_flag=True, help="Draw with ASCII characters only.")
def command(
    report: Path,
    file: str | None,
    whole: bool,
    files: int | None,
    context: int | None,
    least: float,
    opcodes: bool,
    wall: bool,
    processes: tuple[str, ...],
    threads: tuple[str, ...],
    filter_time: str | None,
    filter_nvtx: str | None,
    window: int | None,
    exceptions: bool,
    form: str,
    output: Path | None,
    force_overwrite: bool,
    width: int | None,
    color: str,
    plain: bool,
) -> None:
    """Show the lines of Python files with the share of the samples in each.

    The hotter a line, the redder it is. Total is the share of samples with the line anywhere in
    their stack, Self the share of samples that ended in it. FILE is a path or the end of one.
    Without FILE, the hottest files are shown, those of the program first. The text of the lines
    comes from the file on this machine, if it exists.

    --opcodes needs a recording with --python-sampling-opcodes=true. It lists the interpreter's
    instructions in which a line's samples ended. "Specialised" counts samples in a form that
    CPython chose for the observed types; "general" counts samples in an instruction that has such
    forms but used none.

    An HTML page (-f html) has every line with samples, and each line has a link (#L10). The page is
    one file without scripts.
    """
    from warplens.analysis.cpu.source_lines import chosen, hot_files
    from warplens.cli.flame.load import Wish, load
    from warplens.cli.flame.source import shown
    from warplens.cli.flame.source_page import source_page
    from warplens.cli.timeline.render import Style
    from warplens.report import Selection

    style = Style(
        width or (tables.terminal_width() or 100),
        ascii=plain or not has_unicode(),
        colors=palette() if output is None and colored(color) else 0,
    )
    with open_report(report, window=window) as opened:
        wish = Wish(
            "line", False, wall, kind="python", processes=processes, threads=threads, exceptions=exceptions
        )
        selection = Selection.parse(filter_time, filter_nvtx)
        flame = load(opened, selection, wish)
        instructions = _instructions(opened, selection, wish, flame=flame) if opcodes else None
        hot = hot_files(flame.frames, flame.tree, flame.weight, instructions=instructions)
        recorded = opened.path.stat().st_mtime
        if form == "html":
            lines = list(
                source_page(
                    flame,
                    chosen(hot, file, files or _ON_A_PAGE),
                    whole=whole,
                    context=context,
                    recorded=recorded,
                )
            )
        else:
            lines, around = [flame.title], 2 if context is None else context
            for one in chosen(hot, file, files or _AS_TEXT):
                lines += [
                    "",
                    *shown(one, style, whole=whole, context=around, least=least / 100, recorded=recorded),
                ]
    if output is None:
        tables.show(iter(lines))
    else:
        write_lines(output, lines, overwrite=force_overwrite)
        click.echo(short_path(output), err=True)


def _instructions(
    report: Report, selection: Selection, wish: Wish, flame: Flame
) -> Mapping[tuple[str, int], Instructions]:
    """Return the instructions of each line. Raises MissingData if none were recorded."""
    from warplens.analysis.cpu.opcodes import PER, by_line
    from warplens.analysis.cpu.samples import sampled
    from warplens.cli.flame.load import wanted_threads

    rows, _ = wanted_threads(
        report, sampled(report, selection, wall=wish.wall, exceptions=wish.exceptions, per=PER), wish
    )
    lines = by_line(flame.frames, rows)
    if not lines:
        raise MissingData(
            f"{report.path.name} has no instructions with its samples; record with "
            "--python-sampling-opcodes=true, "
            "which needs CPython 3.11 or later."
        )
    return lines
