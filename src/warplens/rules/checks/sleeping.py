"""Sleeps and writes to disk on a thread that has work to do.

## What it looks for
Sleeps, and calls that wait for a disk (fsync and similar), in one function for more than 5 % of the
judged time. The calls of the C library (`-t osrt`) show them directly. With Python samples, the
rule reads the source line in which the thread stopped; the source must be on this machine. The busy
handler of a database, which sleeps and tries again, is recognised by its library or by the calling
line.

Sleeps do not count on threads that do nothing else, except on the main thread. Waiting for events,
threads and processes does not count either. A thread that sleeps between two checks counts as
waiting if other threads of the run work during its sleeps.

## Why it costs time
The thread does nothing until the sleep ends, even if the awaited result is ready long before.

## What to do
Wait for the result itself: an event, a condition, a future, `select`. A busy database: use one
writing connection, shorter transactions, SQLite's `journal_mode=WAL`. Many fsyncs: use one for many
writes, in a separate thread.

## When it does not apply
If the program is meant to wait, such as between two measurements or before it polls a service
again. If data must be on the disk before the next step begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import OwnCode, nearest
from warplens.analysis.cpu.source_lines import read_source
from warplens.analysis.cpu.thread_time import own_code
from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import EVIDENCE, Evidence, Finding, most
from warplens.rules.carriers import others_at_work
from warplens.rules.hosts import ceiling, edges, leading, numbers, rows
from warplens.rules.machine import loads
from warplens.rules.python_time import called, python_time
from warplens.rules.stacks import StackPlaces, is_waiting

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/library/threading.html#event-objects"
SLEEP, DISK, BASE = "sleeps", "waits for a disk", "waits for a database"
_CALLS = (
    "\"group\" = 'sleep' OR regexp_full_match(name::VARCHAR, "
    "'fsync|fdatasync|msync|sync|syncfs|sync_file_range')"
)
_LINES = (
    (re.compile(r"\b(u|nano)?sleep\s*\("), SLEEP),
    (re.compile(r"\b(fsync|fdatasync|msync)\s*\("), DISK),
    (re.compile(r"\.(execute|executemany|executescript|commit)\s*\("), BASE),
)
_LIBRARY = re.compile(r"sqlite|libpq|duckdb|lmdb|libdb-")
_OTHERS = 0.8  # of the time that a thread sleeps: others that work for so long are what it waits for
_WORK = 0.1  # of the time that a thread sleeps: one that runs for less has nothing else to do
_FIXES = {
    SLEEP: "Wait for the result itself (an event, a condition, a future), or sleep in a thread that "
    "has nothing else to do.",
    DISK: "Sync once for many writes, or in a separate thread.",
    BASE: "Shorter transactions, one connection that writes, WAL mode of SQLite: while one writes, "
    "the others sleep and try again.",
}


@dataclass
class _Still:
    """When threads stood still, and the longest of the rows that say so."""

    start: Int64Array
    end: Int64Array
    lost: float
    rows: tuple[Evidence, ...]
    threads: frozenset[int]

    def and_also(self, other: _Still) -> _Still:
        """Return both."""
        return _Still(
            np.concatenate((self.start, other.start)),
            np.concatenate((self.end, other.end)),
            self.lost + other.lost,
            rows=most((*self.rows, *other.rows)),
            threads=self.threads | other.threads,
        )


def check(report: Report, selection: Selection, *, least: float = 5) -> list[Finding]:
    """Return a finding for each function that sleeps or waits for a disk.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the judged time that it must take.
    """
    begin, end = edges(report, selection)
    lead = set(leading(report, selection).values())
    places: dict[tuple[str, str], _Still] = {}
    recorded = _recorded if _traced(report) else _sampled
    ran = _ran(report, selection)
    for name, kind, thread, still in recorded(report, selection):
        if kind == SLEEP and _waits_for_work(report, thread, still):
            continue
        # a thread that waits for a disk or a database has work; one that sleeps may have none
        if kind != SLEEP or thread in lead or ran.get(thread, 0) >= _WORK * still.lost:
            before = places.get((name, kind))
            places[name, kind] = still if before is None else before.and_also(still)
    findings = []
    for (name, kind), still in places.items():
        cover = Cover(still.start, still.end)
        # a sample stands for more time than it slept: what the scheduler says counts
        bound = min(ceiling(report, selection, cover), round(still.lost))
        if bound * 100 >= least * (end - begin):
            findings.append(
                replace(_finding(name, kind, still, bound=bound, exact=recorded is _recorded), claim=cover)
            )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _waits_for_work(report: Report, thread: int, still: _Still) -> bool:
    """Return whether other threads of the run worked while this one slept: it looks again and again whether they are done."""
    cover = Cover(still.start, still.end)
    return cover.total > 0 and others_at_work(report, thread, cover) >= _OTHERS * cover.total


def _traced(report: Report) -> bool:
    return any(manifest.sources.get("osrt", {}).get("on") for manifest in report.manifests) or bool(
        report.tables["osrt"]
    )


def _ran(report: Report, selection: Selection) -> dict[int, float]:
    """Return for how long threads ran, ns, as far as it is known."""
    if report.tables["thread_states"]:
        return {load.thread: load.running for load in loads(report, selection)}
    try:
        return {time.thread: float(time.ran.sum()) for time in python_time(report, selection)[1]}
    except MissingData:
        return {}


_Stood = tuple[str, str, int, _Still]  # function, kind, thread, what is known


def _recorded(report: Report, selection: Selection) -> Iterator[_Stood]:
    """Yield where threads slept, by their calls of the C library."""
    calls = rows(report, selection, "id, process, thread, name, stack", table="osrt", where=_CALLS)
    stacks, bases = StackPlaces(report), _Bases(own_code(report).frames)
    groups: dict[tuple[str, str, int], list[Int64Array]] = {}
    for (stack, name, thread), alike in _alike(calls):
        place = stacks.place(stack if stack >= 0 else None)
        if not place.waits and not place.internal:
            kind = DISK if "sync" in name else BASE if bases.is_in(stack) else SLEEP
            groups.setdefault((place.function or name, kind, thread), []).append(alike)
    start, end = numbers(calls, "start"), numbers(calls, "end")
    for (name, kind, thread), parts in groups.items():
        which = np.concatenate(parts)
        yield name, kind, thread, _still_of(calls, start, end, which=which, thread=thread)


def _alike(calls: pa.Table) -> Iterator[tuple[tuple[int, str, int], Int64Array]]:
    """Yield the rows of each stack, name and thread that go together; stack -1: none."""
    name = calls.column("name").combine_chunks().dictionary_encode()
    names, code = name.dictionary.to_pylist(), name.indices.to_numpy()
    stack, thread = numbers(calls, "stack"), numbers(calls, "thread")
    order = np.lexsort((thread, code, stack))
    keys = [column[order] for column in (stack, code, thread)]
    # A new group begins where any of the three keys changes.
    edges_ = np.flatnonzero(np.any([np.diff(key) != 0 for key in keys], axis=0)) + 1
    for some in np.split(order, edges_) if len(order) else ():
        first = int(some[0])
        yield (int(stack[first]), str(names[code[first]]), int(thread[first])), some


def _still_of(calls: pa.Table, start: Int64Array, end: Int64Array, which: Int64Array, thread: int) -> _Still:
    """Return what rows of the C library's calls in one thread say."""
    begin, finish = start[which], end[which]
    longest = which[np.lexsort((begin, begin - finish))[:EVIDENCE]]
    shown = calls.take(pa.array(np.sort(longest))).to_pylist()
    evidence = [
        Evidence(
            table="osrt",
            id=row["id"],
            start=row["start"],
            end=row["end"],
            text=row["name"],
            process=row["process"],
            thread=row["thread"],
        )
        for row in shown
    ]
    return _Still(
        begin, finish, float((finish - begin).sum()), rows=most(evidence), threads=frozenset((thread,))
    )


def _sampled(report: Report, selection: Selection) -> Iterator[_Stood]:
    """Yield where threads stood still in a line that says so."""
    code, threads = python_time(report, selection)
    lines = _Lines(code)
    for time in threads:
        groups: dict[tuple[str, str], list[tuple[int, Evidence]]] = {}
        positions, which = np.unique(time.stack, return_inverse=True)
        kinds = [lines.kind(position) for position in positions.tolist()]
        for row in np.flatnonzero(
            (time.waited > 0) & np.array([kind is not None for kind in kinds], bool)[which]
        ).tolist():
            kind, position = kinds[which[row]], int(positions[which[row]])
            at = int(code.own[position]) if code.own[position] >= 0 else int(code.python[position])
            frame = code.frames.frame(at)
            line = f"{(frame.file or '').rpartition('/')[2]}:{frame.line}"
            evidence = Evidence(
                table="samples",
                id=time.samples["id"][row].as_py(),
                start=int(time.since[row]),
                end=int(time.until[row]),
                text=line,
                process=time.process,
                thread=time.thread,
            )
            place = called(frame.function, frame.file or ""), str(kind)
            groups.setdefault(place, []).append((row, evidence))
        for (name, kind), stood in groups.items():
            still = _Still(
                np.array([one.start for _, one in stood], np.int64),
                np.array([one.end for _, one in stood], np.int64),
                float(time.waited[[row for row, _ in stood]].sum()),
                rows=most(one for _, one in stood),
                threads=frozenset((time.thread,)),
            )
            yield name, kind, time.thread, still


class _Bases:
    """Which stacks are in the library of a database, whose busy handler sleeps."""

    def __init__(self, frames: FrameTable) -> None:
        self._frames = frames
        modules, module = frames.texts("module")
        inside = np.array([_LIBRARY.search(name) is not None for name in modules] + [False], bool)[module]
        self._nearest = nearest(frames.parent, inside)

    def is_in(self, stack: int) -> bool:
        """Return whether a stack is; -1: there is none."""
        return bool(self._nearest[self._frames.positions(pa.array([stack], pa.int64()))[0]] >= 0)


class _Lines:
    """What the source lines of frames wait for; each file is read once."""

    def __init__(self, code: OwnCode) -> None:
        self._code = code
        self._files: dict[str, list[str] | None] = {}

    def kind(self, position: int) -> str | None:
        """Return what the innermost line of Python in a stack waits for.

        None where it says nothing of it.
        """
        at = int(self._code.python[position])
        if at < 0 or self._code.importing[position]:
            return None
        frame = self._code.frames.frame(at)
        if not frame.file or not frame.line or is_waiting(frame.file):
            return None
        if frame.file not in self._files:
            self._files[frame.file] = read_source(frame.file)
        text = self._files[frame.file]
        line = text[frame.line - 1] if text is not None and frame.line <= len(text) else ""
        return next((kind for pattern, kind in _LINES if pattern.search(line)), None)


def _finding(name: str, kind: str, still: _Still, bound: int, exact: bool) -> Finding:
    lasted = still.end - still.start
    cause = f"{counted(len(still.threads), 'thread')} stood still there" + (
        f", {duration(int(lasted.max()))} at the longest." if exact else "."
    )
    if exact:
        cause += f" It did so {counted(len(lasted), 'time')}, {duration(int(lasted.sum()))} in all threads."
    else:
        cause += " Samples say so; `-t osrt` records each of the calls."
    return Finding(
        rule="sleeping",
        subject=f"{name} {kind}",
        title=f"{name} {kind} for {duration(bound)}",
        cause=cause,
        fix=_FIXES[kind],
        evidence=still.rows,
        occurrences=len(lasted),
        bound=bound,
        confidence="high" if exact else "medium",
        link="https://www.sqlite.org/wal.html" if kind == BASE else "",
    )
