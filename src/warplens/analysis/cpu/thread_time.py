"""Divides the time of Python threads: each sample with its thread's running and waiting time.

Samples are rarer where no CPU is free, for the sampler neither. So the sums of the scheduler count, if they are there, and samples say
only what was done in them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.own_code import OwnCode
from warplens.analysis.once import once
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

_COLUMNS = ["id", "process", "thread", "start", "end", "kind", "count", "weight", "on_cpu", "task", "stack"]
_STATES = ("running", "runnable", "blocked")
_ALL = 1 << 62
_FEW = 64  # ticks of a row that are looked at one by one


@dataclass(frozen=True, eq=False)
class ThreadTime:
    """A thread that was sampled.

    The arrays have an element for each of its `samples`, in the order of time.

    `begin`, `end`: of its process, cut to the selected time; `since`, `until`: the time that a sample stands for;
    `stack`: its position in the frames; `ran`, `waited`: ns; `starved`: ns in which it could run and had no CPU. All
    of ran, waited and starved together are, of a main thread, the time from the first sample to `end`.
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


@once
def own_code(report: Report) -> OwnCode:
    """Return whose code the stacks of a report were in."""
    return OwnCode.of(FrameTable.of(report))


def read_samples(report: Report, low: int = 0, high: int = _ALL) -> pa.Table:
    """Return the samples of the processes with keys from `low` to `high`."""
    samples = report.table("samples", _COLUMNS)
    return samples.filter(
        pc.and_(pc.greater_equal(samples["process"], low), pc.less_equal(samples["process"], high))
    )


def of_kind(samples: pa.Table, kind: str) -> pa.Table:
    """Return the samples of a kind: `python` or `native`."""
    return samples.filter(pc.equal(pc.cast(samples["kind"], "string"), kind))


def thread_times(
    report: Report, processes: tuple[int, int] | None = None, window: tuple[int, int] | None = None
) -> tuple[ThreadTime, ...]:
    """Return the threads that samples of Python saw, those that were seen longest first.

    `processes`: the first and the last key; `window`: begin and end of the time, ns.
    """
    if not report.tables["samples"]:
        return ()
    low, high = processes if processes is not None and len(report.manifests) > 1 else (0, _ALL)
    return _all_times(report, (low, high), window or (0, _ALL))


@once
def _all_times(report: Report, processes: tuple[int, int], window: tuple[int, int]) -> tuple[ThreadTime, ...]:
    samples = read_samples(report, *processes)
    return tuple(_times(report, samples, begin=window[0], end=window[1]))


def _times(report: Report, samples: pa.Table, begin: int, end: int) -> Iterator[ThreadTime]:
    python = of_kind(samples, "python")
    python = python.filter(pc.and_(pc.less(python["start"], end), pc.greater(python["end"], begin - 1)))
    processes = {row["process"]: row for row in report.table("processes").to_pylist()}
    tids = {row["thread"]: row["tid"] for row in report.table("threads", ["thread", "tid"]).to_pylist()}
    python = python.take(
        pa.array(np.argsort(python["thread"].to_numpy(), kind="stable"))
    )  # those of a thread stay in the order of time
    threads, first, counts = np.unique(python["thread"].to_numpy(), return_index=True, return_counts=True)
    sums = np.add.reduceat(python["weight"].to_numpy(), first) if len(threads) else first
    states = _States.of_report(report, begin, end)
    for index in np.argsort(-sums, kind="stable").tolist():
        thread = int(threads[index])
        mine = python.slice(int(first[index]), int(counts[index]))
        row = processes.get(mine["process"][0].as_py())
        if row is not None and min(row["end"], end) > max(row["start"], begin):
            edges = max(row["start"], begin), min(row["end"], end)
            yield _time(
                report,
                thread,
                row,
                main=tids.get(thread) == row["pid"],
                edges=edges,
                samples=mine,
                states=states,
            )


def _time(
    report: Report,
    thread: int,
    process: dict[str, int],
    main: bool,
    edges: tuple[int, int],
    samples: pa.Table,
    states: _States | None,
) -> ThreadTime:
    weight = np.asarray(samples["weight"].to_numpy(), np.float64)
    # each sample is one of the time since the tick before
    first = np.asarray(samples["start"].to_numpy(), np.int64)
    whole_since = first - (weight / np.maximum(samples["count"].to_numpy(), 1)).astype(np.int64)
    whole_until = np.asarray(samples["end"].to_numpy(), np.int64)
    since, until = np.clip(whole_since, *edges), np.clip(whole_until, *edges)
    # the main thread is there to the end; when others ended is not known
    known = edges[1] - min(max(int(first[0]), edges[0]), edges[1])
    known_states = [] if states is None else states.of(thread)
    if states is None or not any(len(start) for start, _ in known_states):
        on = np.asarray(samples["on_cpu"].to_numpy(zero_copy_only=False), bool)
        weight *= (until - since) / np.maximum(whole_until - whole_since, 1)
        weight *= known / max(weight.sum(), 1) if main else 1
        ran, waited, starved = np.where(on, weight, 0), np.where(on, 0, weight), 0
    else:
        sums = [int((last - start).sum()) for start, last in known_states]
        share = known / max(sum(sums), 1) if main else 1.0
        at_work, asleep = _seen(samples, since, until, states=known_states, exact=states.exact)
        ran = at_work * sums[0] * share / max(at_work.sum(), 1e-9)
        waited = asleep * sums[2] * share / max(asleep.sum(), 1e-9)
        starved = round(sums[1] * share)
    stack = own_code(report).frames.positions(samples["stack"])
    return ThreadTime(
        thread,
        process["process"],
        process["pid"],
        main=main,
        begin=edges[0],
        end=edges[1],
        samples=samples,
        since=since,
        until=until,
        stack=stack,
        ran=ran,
        waited=waited,
        starved=starved,
    )


_Spans = tuple[Int64Array, Int64Array]


def _seen(
    samples: pa.Table, since: Int64Array, until: Int64Array, states: list[_Spans], exact: bool
) -> tuple[Float64Array, Float64Array]:
    """Return of each sample in how many of its ticks the thread was at work, and in how many it was blocked.

    Where every switch is known, that is its state at the tick: a thread that works for 1 ms and sleeps for 9 ms is mostly seen asleep, and
    where it is seen at work, that is what it worked on. A thread without a CPU is in the middle of its work. Of many ticks in one row,
    and where switches are not known, it is the share of the time up to the tick.
    """
    parts = [(_within(*spans, until) - _within(*spans, since)).astype(np.float64) for spans in states]
    count = np.asarray(samples["count"].to_numpy(), np.float64)
    at_work = count * (parts[0] + parts[1]) / np.maximum(sum(parts), 1)
    asleep = count * parts[2] / np.maximum(sum(parts), 1)
    if exact:
        few = np.flatnonzero(count <= _FEW)
        number = count[few].astype(np.int64)
        # The ticks of a row are spread evenly from its start to its end: 3 ticks of [10, 30] are at
        # 10, 20 and 30. `tick` counts from 0 in each row.
        row = np.repeat(np.arange(len(few)), number)
        tick = np.arange(len(row)) - np.repeat(np.cumsum(number) - number, number)
        start, end = (np.asarray(samples[name].to_numpy(), np.int64)[few] for name in ("start", "end"))
        time = start[row] + tick * (end - start)[row] // np.maximum(number - 1, 1)[row]
        blocked = np.bincount(row, _is_in(*states[2], time), len(few))
        at_work[few], asleep[few] = number - blocked, blocked
    # what nobody saw is where it was by the time
    return at_work if at_work.any() else parts[0], asleep if asleep.any() else parts[2]


class _States:
    """The rows of `thread_states` by thread, cut to a window."""

    @classmethod
    def of_report(cls, report: Report, begin: int, end: int) -> _States | None:
        """Return those of a report; None if nothing recorded them."""
        if not report.tables["thread_states"]:
            return None
        rows = report.table("thread_states", ["thread", "start", "end", "state", "exact"])
        return cls(rows, begin, end)

    def __init__(self, rows: pa.Table, begin: int, end: int) -> None:
        self.exact = bool(pc.all(rows["exact"]).as_py())  # every switch of every thread is known
        self._start, self._end = (
            np.clip(np.asarray(rows[name].to_numpy(), np.int64), begin, end) for name in ("start", "end")
        )
        state = pc.cast(rows["state"], "string")
        self._is = [
            np.asarray(pc.equal(state, name).to_numpy(zero_copy_only=False), bool) for name in _STATES
        ]
        thread = np.asarray(rows["thread"].to_numpy(), np.int64)
        self._order = np.lexsort((self._start, thread))
        self._thread = thread[self._order]

    def of(self, thread: int) -> list[_Spans]:
        """Return when it ran, when it could run and had no CPU, when it was blocked."""
        low, high = np.searchsorted(self._thread, [thread, thread + 1])
        mine = self._order[low:high]
        return [
            (self._start[chosen], self._end[chosen]) for chosen in (mine[which[mine]] for which in self._is)
        ]


def _is_in(start: Int64Array, end: Int64Array, time: Int64Array) -> Float64Array:
    """Return 1 for each time inside an interval, else 0. The intervals are sorted and disjoint."""
    at = np.searchsorted(start, time, side="right") - 1
    if not len(start):
        return np.zeros(len(time), np.float64)
    return np.where((at >= 0) & (time < end[np.maximum(at, 0)]), 1.0, 0.0)


def _within(start: Int64Array, end: Int64Array, time: Int64Array) -> Int64Array:
    """Return the length of the intervals before each time, ns.

    The intervals are sorted and disjoint.
    """
    if not len(start):
        return np.zeros(len(time), np.int64)
    # before[i] is the length of the first i intervals. For [0, 4) and [6, 9) it is [0, 4, 7]. Time
    # 8 has the interval [6, 9) around it: 4 ns before that interval and 2 ns in it make 6.
    before = np.concatenate(([0], np.cumsum(end - start)))
    at = np.searchsorted(start, time, side="right")
    last = np.maximum(at - 1, 0)
    inside = np.where(at > 0, np.clip(time - start[last], 0, (end - start)[last]), 0)
    return np.asarray(np.where(at > 0, before[last] + inside, 0), np.int64)
