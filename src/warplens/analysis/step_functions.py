"""Step functions: values over time, such as the innermost range of a thread.

Computed on whole arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warplens import native
from warplens.analysis.intervals import union
from warplens.arrays import Int64Array, distinct

NOTHING = -1


@dataclass(frozen=True)
class StepFunction:
    """`value[i]` holds from `time[i]` until `time[i + 1]`, the last one for ever.

    NOTHING before the first. Times grow.
    """

    time: Int64Array
    value: Int64Array

    @classmethod
    def nested(cls, start: Int64Array, end: Int64Array, value: Int64Array) -> StepFunction:
        """Return the value of the innermost interval at each time.

        Intervals lie in one another or side by side; empty ones vanish.
        """
        some = end > start
        start, end, value = start[some], end[some], value[some]
        order = np.lexsort((-end, start))
        start, end, value = start[order], end[order], value[order]
        parent = native.nest(
            np.zeros(len(start), np.int64), np.ascontiguousarray(start), np.ascontiguousarray(end)
        )[1]
        return cls._of_edges(start, end, value, around=np.where(parent < 0, NOTHING, value[parent]))

    @classmethod
    def _of_edges(
        cls, start: Int64Array, end: Int64Array, value: Int64Array, around: Int64Array
    ) -> StepFunction:
        """Sort the edges.

        At one time ends come first, the inner one before the outer one, then begins, the outer one
        first.
        """
        number = np.arange(len(start))
        time, after = np.concatenate((end, start)), np.concatenate((around, value))
        opens, tie = np.repeat((0, 1), len(start)), np.concatenate((-number, number))
        order = np.lexsort((tie, opens, time))
        time, after = time[order], after[order]
        # Of several edges at one time only the last one counts: no time passes between them.
        last = np.append(time[1:] != time[:-1], True) if len(time) else np.zeros(0, bool)
        return cls(time[last], after[last])

    @classmethod
    def where(cls, start: Int64Array, end: Int64Array, value: int) -> StepFunction:
        """Return `value` while at least one interval is open."""
        first, last = union(start, end)
        return cls(
            np.column_stack((first, last)).ravel(), np.tile(np.array((value, NOTHING), np.int64), len(first))
        )

    def at(self, time: Int64Array) -> Int64Array:
        """Return the value at each time."""
        place = np.searchsorted(self.time, time, side="right") - 1
        return (
            np.where(place < 0, NOTHING, self.value[place])
            if len(self.time)
            else np.full(len(time), NOTHING, np.int64)
        )

    def over(self, other: StepFunction) -> StepFunction:
        """Return these values, and where there is none those of the other."""
        # Both functions are constant between two of these times, so it is enough to evaluate them there.
        time = distinct(np.concatenate((self.time, other.time)))
        own = self.at(time)
        return StepFunction(time, np.where(own == NOTHING, other.at(time), own))


def innermost(
    thread: Int64Array, start: Int64Array, end: Int64Array, at_thread: Int64Array, at_time: Int64Array
) -> Int64Array:
    """Return for each point the row of the innermost interval of its thread around it, NOTHING without one.

    An interval is around its start, not around its end. Rows may come in any order; those of a thread nest.
    """
    threads, times = distinct(thread), distinct(np.concatenate((start, end, at_time)))
    if not len(threads):
        return np.full(len(at_time), NOTHING, np.int64)
    # One number in which threads and times sort alike; intervals stay within their thread's numbers.
    width = len(times) + 1

    def key(of: Int64Array, time: Int64Array) -> Int64Array:
        return np.asarray(np.searchsorted(threads, of) * width + np.searchsorted(times, time), np.int64)

    pieces = StepFunction.nested(key(thread, start), key(thread, end), np.arange(len(thread)))
    known = np.isin(at_thread, threads)
    return np.where(known, pieces.at(key(at_thread, at_time)), NOTHING)


def grouped_union(group: Int64Array, start: Int64Array, end: Int64Array, groups: int) -> Int64Array:
    """Return for each group from 0 on how many ns at least one of its intervals covers."""
    covered = np.zeros(groups, np.int64)
    if not len(group):
        return covered
    order = np.lexsort((start, group))
    group, start, end = group[order], start[order], end[order]
    # The furthest end so far in the group: ends by their rank, so that a later group's numbers are all greater.
    # Within a group sorted by start, an interval adds what lies beyond the furthest end so far. [0,
    # 5), [3, 7), [4, 6) add 5, 2 and 0: 7 ns.
    ends = distinct(end)
    reach = np.maximum.accumulate(group * (len(ends) + 1) + np.searchsorted(ends, end) + 1)
    before = np.concatenate(([0], reach[:-1])) - group * (len(ends) + 1)
    reached = np.where(before > 0, ends[np.maximum(before - 1, 0) % len(ends)], start)
    np.add.at(covered, group, np.maximum(end - np.maximum(start, reached), 0))
    return covered
