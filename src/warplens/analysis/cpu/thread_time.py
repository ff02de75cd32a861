"""How threads of Python spent their time: each sample with how long its thread ran and waited meanwhile.

Samples are rarer where no CPU is free, for the sampler neither. So the sums of the scheduler count, where they are there, and samples say
only what was done in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import OwnCode
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

_COLUMNS = ["id", "process", "thread", "start", "end", "kind", "count", "weight", "on_cpu", "task", "stack"]
_STATES = ("running", "runnable", "blocked")
_codes: WeakKeyDictionary[Report, OwnCode] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class ThreadTime:
    """A thread that was sampled. The arrays have an element for each of its `samples`, in the order of time.

    `begin`, `end`: of its process, cut to what was asked for; `since`, `until`: the time that a sample stands for;
    `stack`: its position in the frames; `ran`, `waited`: ns; `starved`: ns in which it could run and had no CPU. All
    of ran, waited and starved together are the time from the first sample to `end`.
    """

    thread: int
    process: int
    pid: int
    main: bool
    begin: int
    end: int
    samples: pa.Table
    since: Int64Array
    until: Int64Array
    stack: Int64Array
    ran: Float64Array
    waited: Float64Array
    starved: int

    @property
    def whole(self) -> int:
        """Wall time of its process, ns."""
        return self.end - self.begin

    @property
    def begun(self) -> int:
        """How long after its process it was first seen, ns."""
        return min(max(int(self.samples["start"][0].as_py()) - self.begin, 0), self.whole)


def own_code(report: Report) -> OwnCode:
    """Return whose code the stacks of a report were in."""
    code = _codes.get(report)
    if code is None:
        code = _codes[report] = OwnCode.of(FrameTable.of(report))
    return code


def read_samples(report: Report, low: int = 0, high: int = 1 << 62) -> pa.Table:
    """Return the samples of the processes with keys from `low` to `high`."""
    samples = report.table("samples", _COLUMNS)
    return samples.filter(pc.and_(pc.greater_equal(samples["process"], low), pc.less_equal(samples["process"], high)))


def of_kind(samples: pa.Table, kind: str) -> pa.Table:
    """Return the samples of a kind: `python` or `native`."""
    return samples.filter(pc.equal(pc.cast(samples["kind"], "string"), kind))


def thread_times(report: Report, samples: pa.Table, window: tuple[int, int] | None = None) -> Iterator[ThreadTime]:
    """Yield the threads that samples of Python saw, those that were seen longest first, in a window of time (ns)."""
    begin, end = window if window is not None else (0, 1 << 62)
    python = of_kind(samples, "python")
    python = python.filter(pc.and_(pc.less(python["start"], end), pc.greater(python["end"], begin - 1)))
    processes = {row["process"]: row for row in report.table("processes").to_pylist()}
    tids = {row["thread"]: row["tid"] for row in report.table("threads", ["thread", "tid"]).to_pylist()}
    python = python.take(pa.array(np.argsort(python["thread"].to_numpy(), kind="stable")))  # those of a thread stay in the order of time
    threads, first, counts = np.unique(python["thread"].to_numpy(), return_index=True, return_counts=True)
    sums = np.add.reduceat(python["weight"].to_numpy(), first) if len(threads) else first
    states = _States(report, begin, end)
    for index in np.argsort(-sums, kind="stable").tolist():
        thread = int(threads[index])
        mine = python.slice(int(first[index]), int(counts[index]))
        row = processes.get(mine["process"][0].as_py())
        if row is not None and min(row["end"], end) > max(row["start"], begin):
            edges = max(row["start"], begin), min(row["end"], end)
            yield _time(report, thread, row, tids.get(thread) == row["pid"], edges, mine, states)


def _time(
    report: Report, thread: int, process: dict[str, int], main: bool, edges: tuple[int, int], samples: pa.Table, states: _States
) -> ThreadTime:
    weight = np.asarray(samples["weight"].to_numpy(), np.float64)
    # each sample is one of the time since the tick before
    first = np.asarray(samples["start"].to_numpy(), np.int64)
    whole_since = first - (weight / np.maximum(samples["count"].to_numpy(), 1)).astype(np.int64)
    whole_until = np.asarray(samples["end"].to_numpy(), np.int64)
    since, until = np.clip(whole_since, *edges), np.clip(whole_until, *edges)
    known = edges[1] - min(max(int(first[0]), edges[0]), edges[1])
    known_states = states.of(thread)
    if known_states is None or not any(len(start) for start, _ in known_states):
        on = np.asarray(samples["on_cpu"].to_numpy(zero_copy_only=False), bool)
        weight *= (until - since) / np.maximum(whole_until - whole_since, 1)
        weight *= known / max(weight.sum(), 1)
        ran, waited, starved = np.where(on, weight, 0), np.where(on, 0, weight), 0
    else:
        sums = [int((last - start).sum()) for start, last in known_states]
        parts = [(_within(*spans, until) - _within(*spans, since)).astype(np.float64) for spans in known_states]
        share = known / max(sum(sums), 1)
        ran = parts[0] * sums[0] * share / max(parts[0].sum(), 1)
        waited = parts[2] * sums[2] * share / max(parts[2].sum(), 1)
        starved = round(sums[1] * share)
    stack = own_code(report).frames.positions(samples["stack"])
    return ThreadTime(thread, process["process"], process["pid"], main, *edges, samples, since, until, stack, ran, waited, starved)


class _States:
    """The rows of `thread_states` by thread, cut to a window."""

    def __init__(self, report: Report, begin: int, end: int) -> None:
        self._there = bool(report.tables["thread_states"])
        if not self._there:
            return
        rows = report.table("thread_states", ["thread", "start", "end", "state"])
        self._start, self._end = (np.clip(np.asarray(rows[name].to_numpy(), np.int64), begin, end) for name in ("start", "end"))
        state = pc.cast(rows["state"], "string")
        self._is = [np.asarray(pc.equal(state, name).to_numpy(zero_copy_only=False), bool) for name in _STATES]
        thread = np.asarray(rows["thread"].to_numpy(), np.int64)
        self._order = np.lexsort((self._start, thread))
        self._thread = thread[self._order]

    def of(self, thread: int) -> list[tuple[Int64Array, Int64Array]] | None:
        """Return when it ran, when it could run and had no CPU, when it was blocked; None where nobody knows."""
        if not self._there:
            return None
        low, high = np.searchsorted(self._thread, [thread, thread + 1])
        mine = self._order[low:high]
        return [(self._start[chosen], self._end[chosen]) for chosen in (mine[which[mine]] for which in self._is)]


def _within(start: Int64Array, end: Int64Array, time: Int64Array) -> Int64Array:
    """How much of the intervals, which are in order and apart, lies before each time."""
    if not len(start):
        return np.zeros(len(time), np.int64)
    before = np.concatenate(([0], np.cumsum(end - start)))
    at = np.searchsorted(start, time, side="right")
    last = np.maximum(at - 1, 0)
    inside = np.where(at > 0, np.clip(time - start[last], 0, (end - start)[last]), 0)
    return np.asarray(np.where(at > 0, before[last] + inside, 0), np.int64)
