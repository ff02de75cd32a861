"""Calls that requested GPU work of which no record came.

A recording that lost CUPTI to another tool looks like that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.chosen import LATEST, Spans
from warplens.convert.cuda.calls import Calls
from warplens.convert.texts import Ids
from warplens.model.words import counted
from warplens.spool.notes import Note
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

LAUNCH, GRAPH, COPY, SET, CAPTURE, END, FAILED_END = range(1, 8)
_ASKS = (
    (LAUNCH, re.compile(r"(__)?cu(da)?Launch(?!HostFunc)")),
    (GRAPH, re.compile(r"cu(da)?GraphLaunch")),
    (COPY, re.compile(r"cu(da)?Memcpy")),
    (SET, re.compile(r"cu(da)?Memset")),
    (CAPTURE, re.compile(r"cu(da)?StreamBeginCapture")),
    (END, re.compile(r"cu(da)?StreamEndCapture")),
)
_WORDS = {LAUNCH: "kernel launches", GRAPH: "graph launches", COPY: "copies", SET: "memory sets"}
# Copies and sets of nothing, and launches of empty graphs, have no record; this number of them at the end is no chance.
_NO_CHANCE = 8
_LATELY_NS = 2_000_000_000  # of a process that was killed: CUPTI gives records out when its buffers are full, or when it is asked
_TOLD = ("cupti-stolen", "cupti-flush", "cupti-finalized", "cupti-failed")


def kind_of(name: str | None) -> int:
    """Return the kind of work that a function requests, 0 for none."""
    return next((kind for kind, pattern in _ASKS if pattern.match(name or "")), 0)


class Asked:
    """The work that each call requested, and whether its work was recorded.

    `kinds`: of the rows of `cuda_api`; `answered`: of all calls.
    """

    def __init__(self, calls: Calls, strings: Strings) -> None:
        self._names = Ids(strings, kind_of)
        self.kinds = np.zeros(int(calls.kept.sum()), np.uint8)
        self.answered = np.zeros(len(calls), bool)

    def add(
        self, rows: slice, fields: npt.NDArray[np.void], spans: Spans, span: npt.NDArray[np.int32]
    ) -> None:
        """Look at records of calls, which become these rows. `span`: where they begin."""
        kinds = self._names(fields["name"])
        failed = fields["result"] != 0
        # What was on when a window closed may have been left alone by then.
        left = failed | (fields["end"].astype(np.int64) > spans.end(span.astype(np.int64)))
        kinds = np.where(failed & (kinds == END), FAILED_END, np.where(left & (kinds != END), 0, kinds))
        self.kinds[rows] = kinds

    def answer(self, call: Int64Array) -> None:
        """Note that there is work of these calls; -1 is none."""
        self.answered[call[call >= 0]] = True


@dataclass(frozen=True)
class Unanswered:
    """`count` calls, by kind, got no work; the first began at `first`.

    `late` more did so shortly before an unorderly end.
    """

    kinds: dict[int, int]
    first: int = 0
    late: int = 0

    @property
    def count(self) -> int:
        """The number of calls."""
        return sum(self.kinds.values())


def find(calls: Calls, asked: Asked, spans: Spans, *, orderly: bool, flush_ms: int) -> Unanswered:
    """Return the calls without work.

    `orderly`: the process ended so; `flush_ms`: how often CUPTI was asked, 0 = never.
    """
    kinds = asked.kinds if calls.nested is None else np.where(calls.nested[calls.kept], 0, asked.kinds)
    start, span, answered = calls.start[calls.kept], calls.span[calls.kept], asked.answered[calls.kept]
    without = (kinds >= LAUNCH) & (kinds <= SET) & ~answered & (span >= 0)
    if calls.nested is not None:
        without &= ~calls.nested[calls.kept]
    rows = np.flatnonzero(without)
    if not len(rows):
        return Unanswered({})
    rows = rows[_captures(kinds, start, span, spans=spans).place(start[rows]) < 0]
    last_answered = int(start[answered].max(initial=0))
    late = np.empty(0, np.int64)
    if not orderly:
        lately = last_answered if not flush_ms else int(start[-1]) - max(_LATELY_NS, 3_000_000 * flush_ms)
        late, rows = rows[start[rows] > lately], rows[start[rows] <= lately]
    sure = kinds[rows] == LAUNCH
    behind = ~sure & (start[rows] > last_answered)
    if sure.any():
        rows = rows[sure | (start[rows] >= start[rows[sure][0]])]
    else:
        rows = rows[behind] if behind.sum() >= _NO_CHANCE else rows[:0]
    kinds_present, counts = np.unique(kinds[rows], return_counts=True)
    return Unanswered(
        dict(zip(kinds_present.tolist(), counts.tolist(), strict=True)),
        int(start[rows[0]]) if len(rows) else 0,
        len(late),
    )


def silent(
    calls: Calls, made: Sequence[WideRecords], spans: Spans, others: Sequence[Note], pid: int
) -> list[Note]:
    """Return notes about contexts or streams (`made`) that no recorded call can have made.

    CUPTI's callbacks report them, its buffers the calls: another tool that takes the buffers takes the calls, too.
    `others`: the other notes.
    """
    if any(note.code in _TOLD for note in others):
        return []
    for records in made:
        start = records.column("start")[records.column("handle") != 0]  # those that callbacks told of
        late = start[(start > calls.last_end) & (spans.place(start) >= 0)]
        if len(late):
            message = (
                f"process {pid} used CUDA without any call of it being recorded from then on: most "
                "likely another tool in the program took "
                "CUPTI's records (torch.profiler, Proton, …); run without that tool"
            )
            return [
                Note("warning", "cupti-silent", "cuda", message=message, count=None, time=int(late.min()))
            ]
    return []


def _captures(
    kinds: npt.NDArray[np.uint8], start: Int64Array, span: npt.NDArray[np.int32], spans: Spans
) -> Spans:
    """Return when streams were captured into graphs, of the whole process.

    Frameworks launch into them from several threads.
    """
    rows = np.flatnonzero(kinds >= CAPTURE)
    captures: list[tuple[int, int]] = []
    depth = begin = 0
    before = -2  # the span of the capture before
    ends = spans.end(span[rows].astype(np.int64)).tolist()
    until = LATEST
    for kind, time, where, end in zip(
        kinds[rows].tolist(), start[rows].tolist(), span[rows].tolist(), ends, strict=True
    ):
        if where != before:
            if depth:
                captures.append((begin, until))
            depth, begin, before, until = 0, until if before >= 0 else 0, where, end or time
        if kind == CAPTURE:
            begin = begin if depth else time
            depth += 1
        elif depth or kind == END:  # one without a begin here began before the window
            depth = max(depth - 1, 0)
            if not depth:
                captures.append((begin, time))
                begin = time
    if depth:
        captures.append((begin, until))
    return Spans(captures)


def notes(unanswered: Unanswered, explained: int, others: Sequence[Note], pid: int) -> list[Note]:
    """Return the notes.

    `explained`: lost records that other notes report; `others`: the other notes.
    """
    told = []
    count = unanswered.count - explained
    if count > 0:
        what = ", ".join(f"{number:,} {_WORDS[kind]}" for kind, number in unanswered.kinds.items())
        why = next((note.code for note in others if note.code in _TOLD), None)
        cause = (
            f"see {why}"
            if why
            else "most likely another tool in the program took CUPTI (torch.profiler, Proton, …), "
            "or the GPU stopped at an error or had not finished; run without that tool, and "
            "check the program's error messages"
        )
        message = (
            f"{counted(unanswered.count, 'call')} of process {pid} succeeded, but their GPU work was "
            f"not recorded ({what}); kernels and copies are missing from the first of them on: {cause}"
        )
        told.append(
            Note(
                "warning",
                "launches-without-work",
                "cuda",
                message=message,
                count=count,
                time=unanswered.first,
            )
        )
    if unanswered.late:
        message = (
            f"the GPU work of the last {counted(unanswered.late, 'call')} (launches, copies, "
            f"memory sets) of process {pid} is missing: "
            "it did not end in an orderly way, or still runs, and CUPTI had not given out all records"
        )
        told.append(Note("info", "late-work-missing", "cuda", message=message, count=unanswered.late))
    return told


def unflushed(unanswered: Unanswered, others: Sequence[Note], pid: int, flush_ms: int) -> list[Note]:
    """Return the losses at the end of a process without an orderly one.

    Only where its calls (`unanswered`) do not show them already.
    """
    if unanswered.late or any(note.code in _TOLD for note in others):
        return []
    since = f"the last {flush_ms:,} ms" if flush_ms else "the time since CUPTI's buffers were last full"
    message = (
        f"process {pid} ended by a signal or _exit, or still runs: records that CUPTI had not "
        f"delivered, up to {since}, may be missing"
    )
    return [Note("info", "late-records-missing", "cuda", message=message)]
