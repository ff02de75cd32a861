"""Sleeps and writes to disk on a thread that has work to do.

## What it looks for
Sleeps, and calls that wait until a disk has what was written (fsync and the like), in one function
for more than 5 % of the time that is looked at. With the calls of the C library (`-t osrt`) these
are known; from samples of Python it is seen that a thread stood still, and the line that it stood
in says in what: then the source must be on this machine. The busy handler of a database, which
sleeps and tries again, is known from its library, or from the line that calls it. Sleeps of threads
that do nothing else do not count, other than of the main one, nor does waiting for events, threads
and processes, also where it sleeps between two looks: then other threads of the run work meanwhile.

## Why it costs time
The thread does nothing until the time is over, even where what it waits for is there long before.

## What to do
Wait for the thing itself: an event, a condition, a future, `select`. A busy database: one
connection that writes, shorter transactions, SQLite's `journal_mode=WAL`. Many fsyncs: one for many
writes, in a separate thread.

## When it is wrong
Where the program is to wait, such as between two measurements or before it asks a service again.
Where data must be on the disk before the next step begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import OwnCode, nearest
from warplens.analysis.cpu.source_lines import read_source
from warplens.analysis.cpu.thread_time import own_code
from warplens.analysis.intervals import Cover
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.carriers import others_at_work
from warplens.rules.hosts import ceiling, edges, leading, rows
from warplens.rules.machine import loads
from warplens.rules.python_time import called, python_time
from warplens.rules.stacks import StackPlaces, is_waiting

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/library/threading.html#event-objects"
SLEEP, DISK, BASE = "sleeps", "waits for a disk", "waits for a database"
_CALLS = "\"group\" = 'sleep' OR regexp_full_match(name::VARCHAR, 'fsync|fdatasync|msync|sync|syncfs|sync_file_range')"
_LINES = (
    (re.compile(r"\b(u|nano)?sleep\s*\("), SLEEP),
    (re.compile(r"\b(fsync|fdatasync|msync)\s*\("), DISK),
    (re.compile(r"\.(execute|executemany|executescript|commit)\s*\("), BASE),
)
_LIBRARY = re.compile(r"sqlite|libpq|duckdb|lmdb|libdb-")
_OTHERS = 0.8  # of the time that a thread sleeps: others that work for so long are what it waits for
_WORK = 0.1  # of the time that a thread sleeps: one that runs for less has nothing else to do
_FIXES = {
    SLEEP: "Wait for the thing itself (an event, a condition, a future), or sleep in a thread that has nothing else to do.",
    DISK: "Sync once for many writes, or in a separate thread.",
    BASE: "Shorter transactions, one connection that writes, WAL mode of SQLite: while one writes, the others sleep and try again.",
}


@dataclass
class _Still:
    """Where threads stood still: when, and the rows that say so."""

    spans: list[tuple[int, int]] = field(default_factory=list)
    lost: float = 0.0
    rows: list[Evidence] = field(default_factory=list)


def check(report: Report, selection: Selection, *, least: float = 5) -> list[Finding]:
    """Return a finding for each function that sleeps or waits for a disk.

    Args:
        report: the report.
        selection: which part of it.
        least: percent of the time looked at that it must take.
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
            place = places.setdefault((name, kind), _Still())
            place.spans += still.spans
            place.rows += still.rows
            place.lost += still.lost
    findings = []
    for (name, kind), still in places.items():
        cover = Cover([start for start, _ in still.spans], [finish for _, finish in still.spans])
        # a sample stands for more time than it slept: what the scheduler says counts
        bound = min(ceiling(report, selection, cover), round(still.lost))
        if bound * 100 >= least * (end - begin):
            findings.append(
                replace(_finding(name, kind, still, bound=bound, exact=recorded is _recorded), claim=cover)
            )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _waits_for_work(report: Report, thread: int, still: _Still) -> bool:
    """Return whether other threads of the run worked while this one slept: it looks again and again whether they are done."""
    cover = Cover([start for start, _ in still.spans], [finish for _, finish in still.spans])
    return others_at_work(report, thread, cover) >= _OTHERS * cover.total


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
    calls = rows(
        report, selection, "id, process, thread, name, stack", table="osrt", where=_CALLS
    ).to_pylist()
    stacks, bases = StackPlaces(report), _Bases(own_code(report).frames)
    groups: dict[tuple[str, str, int], _Still] = {}
    for row in calls:
        place = stacks.place(row["stack"])
        if place.waits or place.internal:
            continue
        kind = DISK if "sync" in row["name"] else BASE if bases.is_in(row["stack"]) else SLEEP
        still = groups.setdefault((place.function or row["name"], kind, row["thread"]), _Still())
        still.spans.append((row["start"], row["end"]))
        still.lost += row["end"] - row["start"]
        still.rows.append(
            Evidence(
                table="osrt",
                id=row["id"],
                start=row["start"],
                end=row["end"],
                text=row["name"],
                process=row["process"],
                thread=row["thread"],
            )
        )
    for (name, kind, thread), still in groups.items():
        yield name, kind, thread, still


def _sampled(report: Report, selection: Selection) -> Iterator[_Stood]:
    """Yield where threads stood still in a line that says so."""
    code, threads = python_time(report, selection)
    lines = _Lines(code)
    for time in threads:
        groups: dict[tuple[str, str], _Still] = {}
        positions, which = np.unique(time.stack, return_inverse=True)
        kinds = [lines.kind(position) for position in positions.tolist()]
        for row in np.flatnonzero(
            (time.waited > 0) & np.array([kind is not None for kind in kinds], bool)[which]
        ).tolist():
            kind, position = kinds[which[row]], int(positions[which[row]])
            at = int(code.own[position]) if code.own[position] >= 0 else int(code.python[position])
            frame = code.frames.frame(at)
            still = groups.setdefault((called(frame.function, frame.file or ""), str(kind)), _Still())
            start, end = int(time.since[row]), int(time.until[row])
            still.spans.append((start, end))
            still.lost += float(time.waited[row])
            line = f"{(frame.file or '').rpartition('/')[2]}:{frame.line}"
            still.rows.append(
                Evidence(
                    table="samples",
                    id=time.samples["id"][row].as_py(),
                    start=start,
                    end=end,
                    text=line,
                    process=time.process,
                    thread=time.thread,
                )
            )
        for (name, kind), still in groups.items():
            yield name, kind, time.thread, still


class _Bases:
    """Which stacks are in the library of a database, whose busy handler sleeps."""

    def __init__(self, frames: FrameTable) -> None:
        self._frames = frames
        modules, module = frames.texts("module")
        inside = np.array([_LIBRARY.search(name) is not None for name in modules] + [False], bool)[module]
        self._nearest = nearest(frames.parent, inside)

    def is_in(self, stack: int | None) -> bool:
        """Return whether a stack is."""
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
    longest = max(end - start for start, end in still.spans)
    threads = len({row.thread for row in still.rows})
    cause = f"{counted(threads, 'thread')} stood still there" + (
        f", {duration(longest)} at the longest." if exact else "."
    )
    if exact:
        cause += (
            f" It did so {counted(len(still.spans), 'time')}, "
            f"{duration(sum(end - start for start, end in still.spans))} in all threads."
        )
    else:
        cause += " Samples say so; `-t osrt` records each of the calls."
    return Finding(
        rule="sleeping",
        subject=f"{name} {kind}",
        title=f"{name} {kind} for {duration(bound)}",
        cause=cause,
        fix=_FIXES[kind],
        evidence=most(still.rows),
        occurrences=len(still.rows),
        bound=bound,
        confidence="high" if exact else "medium",
        link="https://www.sqlite.org/wal.html" if kind == BASE else "",
    )
