"""Puts the share of the samples beside the lines of a source file."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

import numpy as np

from warplens.cli.flame.load import Flame
from warplens.cli.tables import printable
from warplens.cli.timeline.palette import on
from warplens.cli.timeline.render import Style, cut, paint
from warplens.errors import MissingData, UsageError
from warplens.query.frames import is_library
from warplens.query.stacks import flat

_LARGEST = 4 << 20  # bytes: a longer file is not read
_HEAT = (0xFFF2B0, 0xF8C080, 0xF08860, 0xE05050)  # up to a quarter, a half, three quarters, all of the samples
_BOLD, _DIM = "\x1b[1m", "\x1b[2m"


@dataclass(frozen=True)
class Line:
    """A line by the share of samples, 0 to 1, in which it was active (`total`) and which ended in it (`own`)."""

    function: str
    total: float
    own: float
    instructions: str = ""  # that those which ended here were in; empty: not asked for


@dataclass
class HotFile:
    """A source file with its lines that were seen, by number."""

    path: str
    own: float = 0.0
    lines: dict[int, Line] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The share of samples in which the file's hottest line was active."""
        return max(line.total for line in self.lines.values())


def hot_files(flame: Flame, wanted: str | None, most: int, instructions: Mapping[tuple[str, int], object] | None = None) -> list[HotFile]:
    """Return the hottest `most` files, those of the program itself first, or those whose path is or ends in `wanted`.

    `instructions`: what to say of them, by file and line. Raises UsageError, and MissingData where no sample has a line.
    """
    tree = flat(flame.tree)
    found: dict[str, HotFile] = {}
    for node in range(len(tree)):
        frame = flame.frames.frame(int(tree.example[node]))
        if frame.file is None or not frame.line:
            continue
        hot = found.setdefault(frame.file, HotFile(frame.file))
        total, own = float(tree.total[node] / flame.weight), float(tree.own[node] / flame.weight)
        before = hot.lines.get(frame.line)
        if before is not None:  # several code objects in a line, as of comprehensions: both may be in one sample
            total, own = min(max(total, before.total + own), 1.0), own + before.own
        words = str((instructions or {}).get((frame.file, frame.line), ""))
        hot.lines[frame.line] = Line(frame.function, total, own, words)
        hot.own += float(tree.own[node] / flame.weight)

    def rank(hot: HotFile) -> tuple[bool, float, str]:
        library = is_library(hot.path)
        return library, -(hot.own if library else hot.total), hot.path

    if not found:
        raise MissingData(
            f"{flame.title.partition(':')[0]} does not say which lines its samples were in; warplens flame has its functions."
        )
    files = sorted(found.values(), key=rank)
    if wanted is None:
        return [hot for hot in files if hot.own >= 0.01][:most] or files[:1]
    parts = PurePath(wanted).parts
    named = [hot for hot in files if PurePath(hot.path).parts[-len(parts) :] == parts]
    if not named:
        seen = ", ".join(PurePath(hot.path).name for hot in files[:8])
        raise UsageError(f"no sample was in a file {wanted}; the hottest files are {seen}.")
    return named[:most]


def read_source(path: str) -> list[str] | None:
    """Return the lines of a Python file of this machine; None where it is not there, or is nothing that a report should make us read."""
    if not path.endswith((".py", ".pyw")) or not Path(path).is_absolute():
        return None
    try:
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8", errors="replace") as file:  # a pipe would wait
            facts = os.fstat(file.fileno())
            return file.read().splitlines() if stat.S_ISREG(facts.st_mode) and facts.st_size <= _LARGEST else None
    except (OSError, ValueError):
        return None


def shown(hot: HotFile, style: Style, *, whole: bool, context: int, least: float, recorded: float) -> Iterator[str]:
    """Yield a file's lines with their shares: all of them, or those with a share of at least `least` and `context` lines around."""
    source = read_source(hot.path)
    yield paint(printable(hot.path), _BOLD, style)
    yield f"{hot.total:.1%} of the samples came by, {hot.own:.1%} ended here"
    if told := note(hot, source, recorded):
        yield paint(told, _DIM, style)
    last = max([len(source or ()), *hot.lines])
    hottest = {number for number, line in hot.lines.items() if line.total >= least}
    wanted = range(1, last + 1) if whole else sorted({n for hit in hottest for n in around(hit, context, last, source)})
    yield paint("  Total    Self   Line", _DIM, style)
    before = 0
    digits = len(str(last))
    for number in wanted:
        if before and number != before + 1:
            yield paint(" " * 18 + ("..." if style.ascii else "⋮"), _DIM, style)
        before = number
        yield _row(number, hot.lines.get(number), source, digits, style)
        if (line := hot.lines.get(number)) and line.instructions:
            yield paint(cut(f"{' ' * 17}{' ' * digits}  {printable(line.instructions)}", style.width, style.glyphs), _DIM, style)
    if not hottest:
        yield paint(f"no line has {least:.1%} of the samples: --min PERCENT", _DIM, style)


def note(hot: HotFile, source: list[str] | None, recorded: float) -> str:
    """Return what is to be known about the text of the lines: that it is not there, or newer than the recording; else nothing."""
    if source is None:
        return "the file is not on this machine: lines are shown by their functions"
    if Path(hot.path).stat().st_mtime > recorded:
        return "the file changed after the recording: lines may have moved"
    return ""


def around(number: int, context: int, last: int, source: list[str] | None) -> range:
    """Return the lines around one: only itself where there is no text of the others."""
    if source is None:
        return range(number, number + 1)
    return range(max(number - context, 1), min(number + context, last) + 1)


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
