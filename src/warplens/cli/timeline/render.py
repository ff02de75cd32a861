"""Draws the terminal timeline."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from textwrap import wrap

from rich.cells import cell_len, set_cell_size

from warplens.cli.printing.tables import printable, shorten
from warplens.cli.printing.words import counted, size
from warplens.cli.timeline.axis import length, ticks
from warplens.cli.timeline.model import SAMPLES, Band, Bar, Crowd, Gauge, Level, Picture, Track
from warplens.cli.timeline.palette import color_of, foreground, on
from warplens.model.words import percent

_RESET, _DIM, _BOLD = "\x1b[0m", "\x1b[2m", "\x1b[1m"
_WIDEST_LABEL = 24
_BUSY = 0x76B900
_WAITS = 0xE6A04C
_LITTLE = 1 / 16  # of a column: a thread that slept for all the rest slept


@dataclass(frozen=True)
class Glyphs:
    """The characters of a picture; `heights` go from hardly busy to fully busy.

    `shade` waits, `dot` sleeps.
    """

    left: str
    right: str
    open: str
    fill: str
    single: str
    heights: str
    shade: str
    dot: str
    mark: str
    marks: str
    axis: str
    tick: str
    cut: str


_BANDS = {
    "states": "state: {full} running, {shade} waits for a CPU, {dot} blocked",
    "gil": "GIL: {full} holds it, {shade} waits for it",
}
UNICODE = Glyphs(
    "├",
    "┤",
    "▷",
    fill="─",
    single="│",
    heights="▁▂▃▄▅▆▇█",
    shade="▒",
    dot="·",
    mark="▼",
    marks="◆",
    axis="─",
    tick="┬",
    cut="…",
)
ASCII = Glyphs(
    "[",
    "]",
    ">",
    fill="-",
    single="|",
    heights="._:-=+*#",
    shade="%",
    dot="'",
    mark="v",
    marks="V",
    axis="-",
    tick="+",
    cut="~",
)


@dataclass(frozen=True)
class Style:
    """`width` characters per line, of which `gutter` are labels.

    `colors` is 0 (none), 256 or 2^24.
    """

    width: int
    ascii: bool = False
    colors: int = 0

    @property
    def gutter(self) -> int:
        """Width of the labels in characters, with the space after them."""
        return min(_WIDEST_LABEL, max(self.width // 5, 12))

    @property
    def columns(self) -> int:
        """Number of columns for time."""
        return self.width - self.gutter

    @property
    def glyphs(self) -> Glyphs:
        """The characters to draw with."""
        return ASCII if self.ascii else UNICODE


def render(picture: Picture, style: Style) -> Iterator[str]:
    """Yield the lines of a picture."""
    glyphs = style.glyphs
    column = length((picture.end - picture.begin) / picture.columns)
    shown = f"{length(picture.end - picture.begin)} shown, {column} per column"
    title = printable(picture.title)
    if cell_len(title) + 2 + cell_len(shown) <= style.width:
        yield f"{title}; {shown}"
    else:
        yield cut(title, style.width, glyphs)
        yield cut(shown, style.width, glyphs)
    yield from _axis(picture, style)
    for group in picture.groups:
        yield paint(cut(printable(group.label), style.width, glyphs), _BOLD, style)
        for row in group.rows:
            if isinstance(row, Track):
                yield from _track(row, picture.columns, style)
            elif isinstance(row, Band):
                yield _band(row, style)
            else:
                yield _busy(row, style) if isinstance(row, Level) else _crowd(row, style)
        for gauge in group.gauges:
            yield from _gauge(gauge, style)
    yield from _legend(picture, style)


def _axis(picture: Picture, style: Style) -> Iterator[str]:
    labels, line = [" "] * picture.columns, [style.glyphs.axis] * picture.columns
    for tick in ticks(picture.begin, picture.end, picture.columns):
        if tick.column + len(tick.label) <= picture.columns:
            labels[tick.column : tick.column + len(tick.label)] = tick.label
        line[tick.column] = style.glyphs.tick
    indent = " " * style.gutter
    yield paint((indent + "".join(labels)).rstrip(), _DIM, style)
    yield paint(indent + "".join(line), _DIM, style)


def _track(track: Track, columns: int, style: Style) -> Iterator[str]:
    name = printable(track.label)
    whole = f"{name} {track.id}".rstrip()
    indent = "    " if track.task else "  "
    room = style.gutter - 1 - len(indent)
    label = f"{indent}{whole if cell_len(whole) <= room else _shortened(name, room, style.glyphs)}"
    lines = [lane(bars, style) for bars in track.lanes]
    if track.marks:
        lines.append(_marks(track, columns, style))
    lines = lines or [""]  # a thread whose ranges are all in tasks
    labels = [label] + [""] * (len(lines) - 1)
    if track.deeper:
        note = f"   +{counted(track.deeper, 'level')}"
        if len(lines) > 1:
            labels[-1] = note
        else:
            lines.append("")
            labels.append(note)
    for number, (text, line) in enumerate(zip(labels, lines, strict=True)):
        head = set_cell_size(text, style.gutter)
        yield ((paint(head, _DIM, style) if number and text else head) + line).rstrip()


def _crowd(crowd: Crowd, style: Style) -> str:
    """One row for many tasks: how many had a range open, as a share of the most at once."""
    peak, tasks = crowd.peak, counted(crowd.tasks, "task")
    heights = style.glyphs.heights
    line = "".join(_level(share / peak if peak else 0, heights) if share else " " for share in crowd.open)
    text = f" {tasks}, up to ~{max(round(peak), 1)} at once "
    begin, end = len(line) - len(line.lstrip()), len(line.rstrip())
    if len(text) + 4 <= end - begin:
        middle = begin + (end - begin - len(text)) // 2
        line = line[:middle] + text + line[middle + len(text) :]
    head = set_cell_size(cut(f"    +{tasks}", style.gutter - 1, style.glyphs), style.gutter)
    return paint((head + line).rstrip(), _DIM, style)


def _busy(level: Level, style: Style) -> str:
    """One row for how busy something was, with the mean behind its name."""
    mean = sum(level.shares) / max(len(level.shares), 1)
    line = "".join(_level(share, style.glyphs.heights) if share else " " for share in level.shares)
    label = f"  {level.label} {percent(mean, 1)}"
    head = set_cell_size(cut(label, style.gutter - 1, style.glyphs), style.gutter)
    return (
        head + paint(line.rstrip(), foreground(_BUSY, style.colors) if style.colors else "", style)
    ).rstrip()


def _band(band: Band, style: Style) -> str:
    """One row for the states of a thread: the state that took most of each column.

    Of the first state also how much.
    """
    pieces: list[tuple[str, str]] = []
    for full, shade, dot in band.columns:
        if shade > full:
            pieces.append((style.glyphs.shade, foreground(_WAITS, style.colors) if style.colors else ""))
        elif full and (full >= _LITTLE or not dot):
            pieces.append(
                (_level(full, style.glyphs.heights), foreground(_BUSY, style.colors) if style.colors else "")
            )
        else:
            pieces.append((style.glyphs.dot, _DIM) if dot else (" ", ""))
    while pieces and pieces[-1][0] == " ":
        pieces.pop()
    line = "".join(
        paint("".join(text for text, _ in run), code, style)
        for code, run in ((c, list(r)) for c, r in groupby(pieces, lambda p: p[1]))
    )
    return (
        set_cell_size(cut(f"    {band.label}", style.gutter - 1, style.glyphs), style.gutter) + line
    ).rstrip()


def _gauge(gauge: Gauge, style: Style) -> Iterator[str]:
    """Two rows, for twice as many heights; the label's second row says what they mean."""
    heights = style.glyphs.heights
    upper, lower = "", ""
    for share in gauge.heights:
        level = 0 if share is None else min(int(share * 2 * len(heights)), 2 * len(heights) - 1) + 1
        lower += " " if not level else heights[min(level, len(heights)) - 1]
        upper += " " if level <= len(heights) else heights[level - len(heights) - 1]
    color = foreground(color_of(gauge.label, gauge.domain, None), style.colors) if style.colors else ""
    room = style.gutter - 3
    labels = (
        f"  {cut(printable(gauge.label), room, style.glyphs)}",
        f"  {cut(_span(gauge, room, style), room, style.glyphs)}",
    )
    for number, (label, line) in enumerate(zip(labels, (upper, lower), strict=True)):
        head = set_cell_size(label, style.gutter)
        yield ((paint(head, _DIM, style) if number else head) + paint(line.rstrip(), color, style)).rstrip()


def _span(gauge: Gauge, room: int, style: Style) -> str:
    """Say from what to what a counter's row goes, with its unit where there is room."""
    low, high, unit = gauge.low, gauge.high, printable(gauge.unit or "")
    if unit.lower() in ("b", "byte", "bytes") and low >= 0:
        first, last, unit = size(round(low)).removesuffix(" bytes") if low else "0", size(round(high)), ""
    else:
        first, last = _number(low), _number(high)
    texts = [f"{first}..{last} {unit}".rstrip(), f"{first}..{last}"]
    if not low:
        texts.insert(1, f"{'<=' if style.ascii else '≤'}{last} {unit}".rstrip())
    return next((text for text in texts if cell_len(text) <= room), texts[-1])


def _number(value: float) -> str:
    """Write a number with three digits: 0.25, 12, 1.5k, 2.31M."""
    for scale, suffix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= 0.9995 * scale:
            return f"{value / scale:.3g}{suffix}" if abs(value) < 1e15 else f"{value:.2e}"
    return f"{value:.3g}"


def _level(share: float, heights: str) -> str:
    return heights[min(int(share * len(heights)), len(heights) - 1)]


def lane(bars: list[Bar], style: Style) -> str:
    """Return one line of bars that are sorted and do not overlap."""
    pieces, at = [], 0
    for bar in bars:
        pieces.append(" " * (bar.first - at))
        pieces.append(_bar(bar, style))
        at = bar.last + 1
    return "".join(pieces)


def _bar(bar: Bar, style: Style) -> str:
    glyphs = style.glyphs
    name = printable(bar.name) or (f"({bar.domain})" if bar.domain else "?")
    color = color_of(bar.name, bar.domain, bar.color)
    if bar.many or (bar.width == 1 and bar.busy[0] < 0.5):
        heights = "".join(_level(share, glyphs.heights) for share in bar.busy)
        text = f" {name} x{bar.number} " if style.ascii else f" {name} ×{bar.number} "
        # The name replaces the middle of a run that is long enough to still show how busy it is on both sides.
        if bar.many and cell_len(text) + 4 <= bar.width:
            before = (bar.width - cell_len(text)) // 2
            heights = heights[:before] + text + heights[before + cell_len(text) :]
        return paint(heights, foreground(color, style.colors), style)
    if style.colors:
        edge = "▏" if not style.ascii else "|"
        text = set_cell_size(edge + cut(name, bar.width - 1, glyphs), bar.width) if bar.width > 1 else edge
        return paint(text, on(color, style.colors), style)
    if bar.width == 1:
        return glyphs.single
    end = glyphs.open if bar.unfinished else glyphs.right
    inner = bar.width - 2
    return glyphs.left + _fill(name, inner, glyphs) + end


def _fill(name: str, width: int, glyphs: Glyphs) -> str:
    text = cut(name, width, glyphs) if width > 1 else ""
    return text + glyphs.fill * (width - cell_len(text))


def _marks(track: Track, columns: int, style: Style) -> str:
    line = ""
    for place, mark in enumerate(track.marks):
        if cell_len(line) > mark.column:
            continue
        line += " " * (mark.column - cell_len(line))
        line += style.glyphs.mark if mark.number == 1 else style.glyphs.marks
        following = track.marks[place + 1].column if place + 1 < len(track.marks) else columns
        room = following - mark.column - 2
        if room >= 3:
            line += cut(printable(mark.name), room, style.glyphs)
    return line + " " * (columns - cell_len(line))


def _legend(picture: Picture, style: Style) -> Iterator[str]:
    glyphs = style.glyphs
    bars = [bar for group in picture.groups for track in group.tracks for lane in track.lanes for bar in lane]
    notes = []
    if any(bar.many or (bar.width == 1 and bar.busy[0] < 0.5) for bar in bars):
        notes.append(
            f"{glyphs.heights[0]}{glyphs.heights[3]}{glyphs.heights[-1]} many or small ranges: how "
            "busy the column was"
        )
    if picture.unfinished:
        notes.append(f"{glyphs.open + ' ' if not style.colors else 'some ranges are '}unfinished")
    if any(track.marks for group in picture.groups for track in group.tracks):
        notes.append(f"{glyphs.mark} mark, {glyphs.marks} several")
    if any(track.deeper for group in picture.groups for track in group.tracks):
        notes.append("--depth N shows deeper levels")
    if any(isinstance(row, Crowd) for group in picture.groups for row in group.rows):
        notes.append("+N tasks: tasks with an open range; --tasks N shows more")
    if any(isinstance(row, Level) for group in picture.groups for row in group.rows):
        notes.append("busy: time in which the GPU did anything")
    bands = {row.kind for group in picture.groups for row in group.rows if isinstance(row, Band)}
    notes += [
        _BANDS[kind].format(full=glyphs.heights[-1], shade=glyphs.shade, dot=glyphs.dot)
        for kind in sorted(bands, reverse=True)
    ]
    if any(track.label == SAMPLES for group in picture.groups for track in group.tracks):
        notes.append("samples: the function they saw most, in (brackets) off the CPU")
    if picture.folded:
        notes.append(f"{counted(picture.folded, 'thread')} with thread state only: --cpu N shows more")
    if any(not gauge.summed for group in picture.groups for gauge in group.gauges):
        notes.append("counters: the highest value in the column")
    if any(gauge.summed for group in picture.groups for gauge in group.gauges):
        notes.append("delta counters: the sum of the column")
    if picture.hidden_gauges:
        notes.append(f"{counted(picture.hidden_gauges, 'counter')} not shown: --counters N")
    if picture.launches:
        notes.append(
            f"the longest launch; {counted(picture.launches, 'other launch')} that recorded: "
            "--inside NAME, --range"
        )
    if picture.hidden:
        alike = f" ({shorten(printable(picture.alike), 80)})" if picture.alike else ""
        notes.append(f"{counted(picture.hidden, 'less busy track')} not shown{alike}: --tracks N")
    line = ""
    for note in notes:
        if line and cell_len(line) + 3 + cell_len(note) > style.width:
            yield from (paint(part, _DIM, style) for part in wrap(line, style.width))
            line = ""
        line += (" · " if not style.ascii else "; ") * bool(line) + note
    yield from (paint(part, _DIM, style) for part in wrap(line, style.width))


def cut(text: str, width: int, glyphs: Glyphs) -> str:
    """Return a text in at most `width` cells, with a sign where it was cut."""
    if cell_len(text) <= width:
        return text
    return set_cell_size(text, max(width - 1, 0)).rstrip() + glyphs.cut if width > 0 else ""


def _shortened(name: str, width: int, glyphs: Glyphs) -> str:
    """Cut a name, but not the number it ends with: that is what tells tasks and workers apart."""
    number = name[len(name.rstrip("0123456789")) :]
    if number and cell_len(name) > width > len(number) + 2:
        return cut(name, width - len(number), glyphs) + number
    return cut(name, width, glyphs)


def paint(text: str, code: str, style: Style) -> str:
    """Return a text in a colour, if there are any."""
    return f"{code}{text}{_RESET}" if style.colors and text else text
