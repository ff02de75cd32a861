"""Divides the time of a thread in some stretches.

The words are the same in the next recording: no line numbers, no counters.

`analysis.cpu.culprits` says what filled each moment. Here the time of functions is parted again: running time by
function of the program, and waits by their cause.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.analysis.comparison.comparable import unnumbered
from warplens.analysis.cpu.culprits import CPU, FUNCTION, GC, GIL, IMPORT, NATIVE, OP, RANGE, UNKNOWN, pieces
from warplens.analysis.cpu.pieces import WAITS
from warplens.analysis.dictionaries import codes
from warplens.analysis.distinct import distinct
from warplens.analysis.intervals import Cover
from warplens.arrays import BoolArray, Int32Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

WAITING = "waiting"
_LINE = re.compile(r":\d+\)")
_PLACE = re.compile(r"^(?P<function>.* \((?P<file>[^()]*)\))(?:, in (?P<package>\S+))?$")
# The modules or packages in which Python waits, for each kind of wait: those of `pieces`.
_WAITS = {text: {part.partition("/")[0].removesuffix(".py") for part in files} for files, text in WAITS}
_OTHERWISE = "in a sleep, a file or a lock"


class CauseTime(NamedTuple):
    """Time of one cause: `kind`, `name`; `detail`: what in it; ns.

    `variance` of that (ns²), where samples saw it, else 0.
    """

    kind: str
    name: str
    detail: str
    ns: int
    variance: float


def host_time(report: Report, stretches: pa.Table) -> Iterator[CauseTime]:
    """Yield the parts of the time of stretches; they add up to it.

    Columns thread, start, end (ns). A cause may come again.
    """
    cut = _Pieces.of(report, stretches)
    length = cut.end - cut.start
    starved = np.flatnonzero(cut.is_a(CPU))
    if len(starved):
        yield from _starved(report, cut, starved)
    asleep = np.zeros(len(length), np.int64)
    sampled = np.flatnonzero(cut.is_a(FUNCTION, NATIVE))
    for own in np.unique(cut.thread[sampled]).tolist():
        mine = sampled[cut.thread[sampled] == own]
        asleep[mine] = _asleep(report, own).within(cut.start[mine], cut.end[mine])
    awake = length - asleep
    awake[starved] = 0
    # A piece is seen by the ticks in it: its begin or end is off by a tick.
    off = np.minimum(length, _tick(report)) if len(sampled) else length
    ran, waited = cut.sums(awake), cut.sums(asleep)
    variance = [cut.sums(off * off * (part > 0)) for part in (awake, asleep)]
    for place, (kind, name) in enumerate(cut.texts):
        if ran[place]:
            yield CauseTime(
                *_words(kind, name),
                int(ran[place]),
                variance[0][place] if kind in (FUNCTION, NATIVE) else 0.0,
            )
        if waited[place]:
            yield CauseTime(WAITING, *_wait(name), int(waited[place]), variance[1][place])


def _starved(report: Report, cut: _Pieces, which: Int64Array) -> Iterator[CauseTime]:
    """Yield time without a free CPU, with what the thread was doing as the detail."""
    asked = stretches_of(cut.thread[which], cut.start[which], cut.end[which])
    inside = _Pieces.of(report, asked, starved=False)
    for (kind, name), ns in zip(inside.texts, inside.sums(inside.end - inside.start), strict=True):
        if ns:
            place = " ".join(_words(kind, name)[1:]).strip() or kind
            yield CauseTime(CPU, "", "" if kind == UNKNOWN else f"most in {place}", ns=int(ns), variance=0.0)


@dataclass(frozen=True)
class _Pieces:
    """Pieces of time as arrays of one length.

    `code`: position in `texts`, which has kind and name.
    """

    start: Int64Array
    end: Int64Array
    thread: Int64Array
    code: Int32Array
    texts: list[tuple[str, str]]

    @classmethod
    def of(cls, report: Report, stretches: pa.Table, *, starved: bool = True) -> _Pieces:
        cut = pieces(report, stretches, starved=starved)
        (kind, kinds), (name, names) = (codes(cut.column(text).combine_chunks()) for text in ("kind", "name"))
        start, end, stretch = (
            np.asarray(cut.column(text).to_numpy(), np.int64) for text in ("start", "end", "stretch")
        )
        thread = np.asarray(stretches.column("thread").to_numpy(), np.int64)[stretch]
        used, code = distinct(kind.astype(np.int64) * len(names) + name, len(kinds) * len(names))
        listed = [texts.to_pylist() for texts in (kinds, names)]
        texts = [
            (listed[0][number // len(names)], listed[1][number % len(names)]) for number in used.tolist()
        ]
        return cls(start, end, thread, code, texts)

    def is_a(self, *kinds: str) -> BoolArray:
        """Return which pieces are of one of the kinds."""
        return np.array([kind in kinds for kind, _ in self.texts], bool)[self.code]

    def sums(self, weight: Int64Array) -> list[float]:
        """Return the sum of a weight of each piece, for each of `texts`."""
        return [float(sum_) for sum_ in np.bincount(self.code, weight.astype(np.float64), len(self.texts))]


def _tick(report: Report) -> int:
    (row,) = report.sql('SELECT median(weight // greatest("count", 1)) AS ns FROM samples').to_pylist()
    return int(row["ns"] or 0)


def _asleep(report: Report, thread: int) -> Cover:
    """Return the times in which a thread waited, by the scheduler or else by samples."""
    if report.tables["thread_states"]:
        text = f"""SELECT "start", "end" FROM thread_states WHERE thread = {thread} AND state = 'blocked'"""
        rows = report.sql(text)
        if rows.num_rows:
            return _cover(rows)
    return _cover(
        report.sql(
            f"""SELECT "start", "end" + weight // greatest("count", 1) AS "end" FROM samples
                WHERE thread = {thread} AND kind = 'python' AND NOT on_cpu"""
        )
    )


def _cover(rows: pa.Table) -> Cover:
    return Cover(
        *(np.asarray(pc.fill_null(rows.column(name), 0).to_numpy(), np.int64) for name in ("start", "end"))
    )


def _words(kind: str, name: str) -> tuple[str, str, str]:
    """Return kind, name and detail of what filled some time."""
    return (kind, *_NAMES[kind](name)) if kind in _NAMES else (kind, name, "")


def _function(name: str) -> tuple[str, str]:
    match = _PLACE.match(_LINE.sub(")", name))
    return (
        (name, "")
        if match is None
        else (match["function"], f"in {match['package']}" if match["package"] else "")
    )


def _wait(name: str) -> tuple[str, str]:
    """Return the cause of a function's waits, and the place."""
    function, detail = _function(name)
    match = _PLACE.match(function)
    module = detail.removeprefix("in ") or ("" if match is None else match["file"].removesuffix(".py"))
    kind = next((text for text, modules in _WAITS.items() if module.partition(".")[0] in modules), _OTHERWISE)
    return kind, f"{function}{', ' + detail if detail else ''}"


_NAMES: dict[str, Callable[[str], tuple[str, str]]] = {
    FUNCTION: _function,
    IMPORT: lambda name: (name.partition(".")[0], name),
    GC: lambda name: ("", name),
    GIL: lambda _: ("", ""),
    RANGE: lambda name: (unnumbered(name), ""),
    OP: lambda name: (unnumbered(name), ""),
    UNKNOWN: lambda _: ("", ""),
}


def stretches_of(thread: int | Int64Array, start: Int64Array, end: Int64Array) -> pa.Table:
    """Return stretches of one thread, or of one each, as `host_time` takes them."""
    threads = np.broadcast_to(np.asarray(thread, np.int64), start.shape)
    return pa.table({"thread": pa.array(threads), "start": pa.array(start), "end": pa.array(end)})
