"""Prints where the time of a run went, in a few lines: functions, imports, start-up, waiting.

Of other programs, their CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.cli.printing.tables import printable, shorten
from warplens.cli.printing.words import counted, duration
from warplens.model.words import percent

if TYPE_CHECKING:
    from warplens.analysis.cpu.pieces import Piece
    from warplens.analysis.cpu.whereabouts import Whereabouts
    from warplens.report import Report

_PROGRAMS = 5
_TEXT = 6  # tenths of a line that what was done may take, where its place has no room
_LEAST_NS = 100_000_000  # of CPU time, in all: below it nobody asks which program took it


def lines(times: Whereabouts, several: bool, width: int) -> Iterator[str]:
    """Yield a heading and a line for each piece, `width` columns at most.

    `several`: other processes recorded, too.
    """
    other = f" of process {times.pid}" if several else ""
    yield f"{duration(times.whole)} of the main thread{other}:"
    for piece in times.pieces:
        yield _line(piece, times.whole, width)


def _line(piece: Piece, whole: int, width: int) -> str:
    share = "" if piece.kind in ("part", "waited") else percent(piece.ns / whole)
    head = f"{duration(piece.ns):>8} {share:>5}  {'  ' if piece.kind == 'part' else ''}"
    text, place = printable(piece.text), printable(piece.place)
    room = width - len(head)
    text = shorten(text, max(room - len(place) - 2, room * _TEXT // 10)) if place else shorten(text, room)
    room -= len(text) + 2
    return (head + text + (f"  {_place(place, room)}" if place else "")).rstrip()


def _place(place: str, room: int) -> str:
    """Shorten `function  file:line, in package`: the package goes first, then the function.

    The line leads there without them.
    """
    function, _, line = place.rpartition("  ")
    file = line.partition(", in ")[0]
    whole = [place, f"{function}  {file}" if function else file, line, file]
    return next((text for text in whole if len(text) <= room), shorten(place if not function else file, room))


def programs(report: Report, low: int, high: int, width: int) -> Iterator[str]:
    """Yield the programs that took most CPU time, for runs without Python.

    Nothing if that is next to nothing.
    """
    sums: dict[str, list[int]] = {}
    for row in report.table("processes", ["process", "name", "user_time", "system_time"]).to_pylist():
        if low <= row["process"] <= high and row["user_time"] is not None:
            spent = sums.setdefault(row["name"] or "?", [0, 0])
            spent[0] += row["user_time"] + row["system_time"]
            spent[1] += 1
    whole = sum(spent for spent, _ in sums.values())
    if whole < _LEAST_NS:
        return
    yield f"{duration(whole)} of CPU time, by program:"
    for name, (time, count) in sorted(sums.items(), key=lambda item: -item[1][0])[:_PROGRAMS]:
        if time >= 0.02 * whole:
            head = f"{duration(time):>8} {percent(time / whole):>5}  "
            number = f"  {counted(count, 'process')}" if count > 1 else ""
            yield head + shorten(printable(name) + number, width - len(head))
