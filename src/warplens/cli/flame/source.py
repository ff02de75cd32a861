"""Draws the share of the samples beside the lines of a source file."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warplens.analysis.cpu.source_lines import HotFile, Line, around, note, read_source
from warplens.cli.printing.tables import printable
from warplens.cli.timeline.palette import on
from warplens.cli.timeline.render import Style, cut, paint
from warplens.model.words import percent

_HEAT = (
    0xFFF2B0,
    0xF8C080,
    0xF08860,
    0xE05050,
)  # up to a quarter, a half, three quarters, all of the samples
_BOLD, _DIM = "\x1b[1m", "\x1b[2m"


def shown(
    hot: HotFile, style: Style, *, whole: bool, context: int, least: float, recorded: float
) -> Iterator[str]:
    """Yield a file's lines with their shares.

    All of them, or those with a share of at least `least` and `context` lines around.
    """
    source = read_source(hot.path)
    yield paint(printable(hot.path), _BOLD, style)
    yield f"{percent(hot.total, 1)} of the samples came by, {percent(hot.own, 1)} ended here"
    if told := note(hot, source, recorded):
        yield paint(told, _DIM, style)
    last = max([len(source or ()), *hot.lines])
    hottest = {number for number, line in hot.lines.items() if line.total >= least}
    wanted = (
        range(1, last + 1)
        if whole
        else sorted({n for hit in hottest for n in around(hit, context, last, source=source)})
    )
    yield paint("  Total    Self   Line", _DIM, style)
    before = 0
    digits = len(str(last))
    for number in wanted:
        if before and number != before + 1:
            yield paint(" " * 18 + ("..." if style.ascii else "⋮"), _DIM, style)
        before = number
        yield _row(number, hot.lines.get(number), source, digits=digits, style=style)
        if (line := hot.lines.get(number)) and line.instructions:
            yield paint(
                cut(f"{' ' * 17}{' ' * digits}  {printable(line.instructions)}", style.width, style.glyphs),
                _DIM,
                style,
            )
    if not hottest:
        yield paint(f"no line has {percent(least, 1)} of the samples: --min PERCENT", _DIM, style)


def _row(number: int, line: Line | None, source: list[str] | None, digits: int, style: Style) -> str:
    shares = f"{line.total * 100:5.1f} % {line.own * 100:5.1f} %" if line is not None else " " * 15
    if source is None:
        text = f"in {line.function}" if line is not None else ""
    else:
        text = source[number - 1].expandtabs(4) if number <= len(source) else ""
    row = cut(f"{shares}  {number:>{digits}}  {printable(text)}", style.width, style.glyphs)
    if line is None or not style.colors or line.total < 0.01:
        return row
    step = min(int(np.ceil(line.total * len(_HEAT))), len(_HEAT)) - 1
    return paint(row, on(_HEAT[step], style.colors), style)
