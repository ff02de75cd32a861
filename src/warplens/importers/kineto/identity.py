"""Processes and threads: pid and tid of each event become keys of the report.

All that a Kineto trace's GPUs did is its process's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens.arrays import BoolArray, Int32Array, Int64Array
from warplens.importers.file_names import rank_in
from warplens.importers.kineto.layout import NULL
from warplens.storage.writer import THREADS_PER_PROCESS

if TYPE_CHECKING:
    from warplens.importers.kineto.parsed import ParsedTrace

_HOST = (
    "op",
    "annotation",
    "python",
    "runtime",
    "driver",
    "memory",
    "flow",
    "range",
    "async",
    "mark",
    "counter",
)
_FIRST = ("op", "runtime", "driver", "python", "annotation")  # whose process comes first
_THREAD_NAME = re.compile(r"thread -?\d+ \((.*)\)\s*$")  # `thread 17 (pt_autograd_0)`
_DENSE = 1 << 20  # keys that have a place each


@dataclass
class KinetoIdentity:
    """The process and thread of each lane.

    `process` and `thread` are by lane; -1 if a lane is not a thread of the host.
    """

    trace: ParsedTrace
    pids: Int64Array
    tids: Int64Array
    process: Int64Array
    thread: Int64Array
    keys: Int64Array  # of the processes, the one with most work first
    known: list[tuple[int, int]]  # pid of each process, and whether it is a text
    lanes: dict[str, Int32Array]  # of the kinds that are taken over
    ended: Int32Array  # lanes in which asynchronous ranges ended
    _texts: Int64Array
    _thread_lanes: dict[int, int]
    spans: dict[int, tuple[int, int]] = field(default_factory=dict)
    begins: dict[int, int] = field(default_factory=dict)

    @classmethod
    def of(cls, trace: ParsedTrace) -> KinetoIdentity:
        """Return those of a trace; takes its columns of lanes."""
        table = trace.reader.lanes()
        pids, tids, texts = table[:, 0], table[:, 1], table[:, 2]
        lanes = {
            kind: trace.reader.take(kind, "lane")
            for kind in (*_HOST, "overhead", "sync", "cuda_event", "metadata")
        }
        ended = trace.reader.take("async", "owner")
        used = np.bincount(ended, minlength=len(table))
        leading = np.zeros(len(table), np.int64)
        for kind in _HOST:
            counts = np.bincount(lanes[kind], minlength=len(table))
            used += counts
            leading += counts if kind in _FIRST else 0
        numbers: dict[tuple[int, int], int] = {}
        weights: list[int] = []
        owner = np.full(len(table), -1, np.int64)
        for lane in np.flatnonzero(used).tolist():
            key = (int(pids[lane]), int(texts[lane] & 1))
            owner[lane] = numbers.setdefault(key, len(numbers))
            weights += [0] * (len(numbers) - len(weights))
            weights[owner[lane]] += int(leading[lane])
        if {"schemaVersion", "deviceProperties"} & trace.header.keys():
            _adopt(numbers, weights, owner)
        order = sorted(
            (number for number in range(len(numbers)) if weights[number] >= 0),
            key=lambda number: -weights[number],
        )
        keys = np.array([trace.part.key(place) for place in range(max(len(order), 1))], np.int64)
        place = np.zeros(len(numbers) + 1, np.int64)
        place[order] = np.arange(len(order))
        process = np.where(owner < 0, -1, keys[place[owner]])
        thread, thread_lanes = _threads(process, tids, pids != tids, texts=texts, used=used)
        pairs = list(numbers)
        return cls(
            trace,
            pids,
            tids,
            process=process,
            thread=thread,
            keys=keys,
            known=[pairs[number] for number in order],
            lanes=lanes,
            ended=ended,
            _texts=texts,
            _thread_lanes=thread_lanes,
        )

    @property
    def main(self) -> int:
        """The process that GPU work belongs to if nothing says otherwise."""
        return int(self.keys[0])

    def process_of(self, lane: Int32Array) -> Int64Array:
        """Return the process of each lane; without memory for each row where there is only one."""
        if len(self.keys) == 1 and bool((self.process[lane] >= 0).all()):
            return np.broadcast_to(self.keys, len(lane))
        return np.asarray(self.process[lane] if len(lane) else np.empty(0), np.int64)

    def thread_of(self, lane: Int32Array) -> Int64Array:
        """Return the thread of each lane; -1 for those of no thread."""
        return np.asarray(self.thread[lane] if len(lane) else np.empty(0), np.int64)

    def of_gpu(self, lane: Int32Array) -> Int64Array:
        """Return the process of events without a thread: the one with this pid, else the main one."""
        process = self.process[lane] if len(self.process) else np.full(len(lane), -1, np.int64)
        return np.where(process < 0, self.main, process)

    def saw(self, process: Int64Array, thread: Int64Array | None, start: Int64Array, end: Int64Array) -> None:
        """Let processes and threads reach to these times."""
        if not len(start):
            return
        self.trace.seen(start, end)
        for key, first, last in self._reach(process, start, end):
            before = self.spans.get(key, (first, last))
            self.spans[key] = min(before[0], first), max(before[1], last)
        if thread is not None:
            for key, first in _firsts(thread, start):
                self.begins[key] = min(self.begins.get(key, first), first)

    def _reach(self, process: Int64Array, start: Int64Array, end: Int64Array) -> list[tuple[int, int, int]]:
        """Return each process with its first start and last end."""
        if len(self.keys) == 1:
            return [(self.main, int(start.min()), int(end.max()))]
        # Rows are in order of process, so each process is one stretch.
        begins = np.flatnonzero(np.concatenate([[True], process[1:] != process[:-1]]))
        firsts, lasts = np.minimum.reduceat(start, begins), np.maximum.reduceat(end, begins)
        return list(zip(process[begins].tolist(), firsts.tolist(), lasts.tolist(), strict=True))

    def write(self, rank: int | None, host: str) -> None:
        """Write `processes` and `threads`."""
        names, threads = self._names()
        first = self.trace.first or 0
        rows = []
        for place, key in enumerate(self.keys.tolist()):
            pid, is_text = self.known[place] if self.known else (0, 0)
            begin, end = self.spans.get(key, (first, self.trace.last or first))
            name = names.get((pid, is_text)) or (self._text(pid) if is_text else "") or None
            rows.append(
                {
                    "process": key,
                    "pid": pid & 0x7FFFFFFF if not is_text and pid != NULL else 0,
                    "parent_pid": 0,
                    "host": host,
                    "rank": rank if place == 0 else None,
                    "executable": name or "",
                    "command": name or "",
                    "start": begin,
                    "end": end,
                    "primary": place == 0,
                    "exited": True,
                    "name": name,
                    "recorded": True,
                }
            )
        self.trace.part.write("processes", rows)
        self.trace.part.write(
            "threads",
            [row | {"name": threads.get(row["thread"], row["name"])} for row in self._thread_rows(first)],
        )

    def _thread_rows(self, first: int) -> list[dict[str, Any]]:
        rows = []
        for key, lane in sorted(self._thread_lanes.items()):
            tid, is_text = int(self.tids[lane]), int(self._texts[lane] & 2)
            rows.append(
                {
                    "thread": key,
                    "process": int(self.process[lane]),
                    "tid": 0 if is_text or tid == NULL else tid & 0x7FFFFFFF,
                    "name": self._text(tid) if is_text else None,
                    "start": self.begins.get(key, first),
                }
            )
        return rows

    def _names(self) -> tuple[dict[tuple[int, int], str], dict[int, str]]:
        """Return the names that the file gives to processes, and to threads."""
        trace, lanes = self.trace, self.lanes["metadata"]
        name, text = trace.take("metadata", "name", "argument_text")
        processes: dict[tuple[int, int], str] = {}
        threads: dict[int, str] = {}
        for lane, what, value in zip(lanes.tolist(), name.tolist(), text.tolist(), strict=True):
            if what < 0 or value < 0:
                continue
            kind, given = trace.texts[what], trace.texts[value].strip()
            if kind == "process_name" and given:
                processes[int(self.pids[lane]), int(self._texts[lane] & 1)] = given
            elif kind == "thread_name" and given:
                match = _THREAD_NAME.match(given)
                if self.thread[lane] >= 0:
                    threads[int(self.thread[lane])] = match[1] if match else given
        return processes, threads

    def _text(self, code: int) -> str:
        return self.trace.texts[code] if 0 <= code < len(self.trace.texts) else ""


def _firsts(keys: Int64Array, start: Int64Array) -> list[tuple[int, int]]:
    """Return each key with its first start; the rows of a key are in order of time."""
    low = int(keys.min())
    width = int(keys.max()) - low + 1
    if width > _DENSE:
        known, places = np.unique(keys, return_index=True)
        return list(zip(known.tolist(), start[places].tolist(), strict=True))
    # Of several values for one place the last one stays: from behind, that is the first.
    first = np.full(width, NULL)
    first[keys[::-1] - low] = start[::-1]
    there = np.flatnonzero(first != NULL)
    return list(zip((there + low).tolist(), first[there].tolist(), strict=True))


def rank_of(header: dict[str, Any], stem: str) -> int | None:
    """Return the rank that a trace is of, as it says itself or else as its file name does."""
    distributed = header.get("distributedInfo")
    rank = distributed.get("rank") if isinstance(distributed, dict) else None
    if isinstance(rank, int) and not isinstance(rank, bool) and 0 <= rank < 1 << 31:
        return rank
    return rank_in(stem)


def _adopt(numbers: dict[tuple[int, int], int], weights: list[int], owner: Int64Array) -> None:
    """Threads of Python that PyTorch does not know have no ids in a Kineto trace.

    They get the process with most work.
    """
    nobody = numbers.get((0, 0))
    if nobody is not None and len(numbers) > 1:
        others = [number for number in numbers.values() if number != nobody]
        owner[owner == nobody] = max(others, key=lambda number: weights[number])
        weights[nobody] = -1


def _threads(
    process: Int64Array, tids: Int64Array, later: BoolArray, texts: Int64Array, used: Int64Array
) -> tuple[Int64Array, dict[int, int]]:
    """Return the key of the thread of each lane that is used, and a lane of each key.

    `later`: the lane is not that of the first thread of its process.
    """
    thread = np.full(len(process), -1, np.int64)
    lanes: dict[int, int] = {}
    counts: dict[int, int] = {}
    known: dict[tuple[int, int, int], int] = {}
    mine = np.flatnonzero(used).tolist()
    mine.sort(key=lambda lane: (later[lane] or texts[lane], lane))
    for lane in mine:
        owner = int(process[lane])
        which = (owner, int(tids[lane]), int(texts[lane] & 2))
        if which not in known:
            number = counts[owner] = counts.get(owner, -1) + 1
            known[which] = owner * THREADS_PER_PROCESS + number
            lanes[known[which]] = lane
        thread[lane] = known[which]
    return thread, lanes
