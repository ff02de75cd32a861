"""Finds the causes of gaps between operations, and cuts each gap into pieces by cause.

`analysis.gpu.idle` defines the causes.

Everything is about many gaps at once, as arrays: a program launches millions of kernels.
"""

from __future__ import annotations

import numpy as np

from warplens.analysis.gpu.api_calls import Called
from warplens.analysis.gpu.dependencies import GUESSED, NEVER, SHORTLY
from warplens.analysis.gpu.work import COMMUNICATION, MEMORY, ROLES, STAGED, Codes
from warplens.arrays import Int64Array

CAUSES = (
    "host-bound",
    "sync-bound",
    "copy-bound",
    "launch-bound",
    "collective wait",
    "dependency",
    "head",
    "tail",
    "unknown",
    "earlier work",
)
_HOST, _SYNC, _COPY, _LAUNCH, _COLLECTIVE, _DEPENDENCY, HEAD, TAIL, _UNKNOWN, EARLIER = range(len(CAUSES))
_OF_ROLE = np.array(
    [_DEPENDENCY, _COLLECTIVE, _COPY], np.uint8
)  # compute, communication, memory: by the kind of the awaited work
assert (COMMUNICATION, MEMORY) == (1, 2)

RECOVERY = 1_000_000  # ns after a wait that may count as its doing
STARTS = 1_000_000  # ns from the end of the first call to the start of its work, above which the GPU had something else to do
LATENCY = 50_000  # ns that the driver and the GPU may need for what is launched already


class Gaps:
    """Some gaps, each with the call of the operation that ended it.

    `part` cuts them into pieces.
    """

    def __init__(self, start: Int64Array, end: Int64Array, called: Called, kind: Codes) -> None:
        self._start, self._end, self._called, self._kind = start, end, called, kind
        # when the host had called; if nothing is known, nothing comes before
        self._call = np.where(called.known, np.clip(called.start, start, end), start)
        self._until, self._why = self._call, np.zeros(len(start), np.uint8)
        self._pieces: list[tuple[Int64Array, Int64Array, Int64Array, Codes]] = []

    def hold(self, end: Int64Array, kind: Codes) -> None:
        """Say until when the operations waited for others, and for what kind of them."""
        # A guessed dependency counts only where the operation began later than a launch alone explains.
        sure = (kind & GUESSED == 0) | (self._end - self._call > SHORTLY)
        known = (end > NEVER) & self._called.known & sure
        self._until = np.where(known, np.clip(end, self._call, self._end), self._call)
        self._why = _OF_ROLE[ROLES[kind & ~np.uint8(GUESSED)]]

    def part(self, synchronous: dict[int, tuple[Int64Array, Int64Array]]) -> None:
        """Cut the gaps."""
        everything = np.arange(len(self._start))
        late = everything[self._call > self._start]
        for thread in np.unique(self._called.thread[late]).tolist():
            own = late[self._called.thread[late] == thread]
            self._late(own, *synchronous.get(thread, (np.empty(0, np.int64), np.empty(0, np.int64))))
        # From the call until the operation that it waited for ended; `_until` equals `_call` where it waited for none.
        self._add(everything, self._call, self._until, cause=self._why)
        rest = np.where(self._kind == STAGED, np.uint8(_COPY), np.uint8(_LAUNCH))
        # The call had returned before the gap, nothing is known to have blocked the operation, and it still took too long: cause unknown.
        queued = (
            (self._called.end <= self._start)
            & (self._end - self._until > LATENCY)
            & (self._until == self._call)
        )
        rest = np.where(~self._called.known | queued, np.uint8(_UNKNOWN), rest)
        self._add(everything, self._until, self._end, cause=rest)

    def _late(self, own: Int64Array, begin: Int64Array, end: Int64Array) -> None:
        """Part the time before the calls of one thread, which waited for the GPU from `begin` to `end`."""
        start, call = self._start[own], self._call[own]
        # Waits of a thread do not overlap, so `begin` and `end` are both sorted: waits [first, behind) touch [start, call).
        first = np.searchsorted(end, start, side="right")
        behind = np.maximum(np.searchsorted(begin, call, side="left"), first)
        waiting = behind > first
        place = np.minimum(first, max(len(begin) - 1, 0))
        before = (
            np.where(waiting, start - begin[place], -1) if len(begin) else np.full(len(own), -1, np.int64)
        )
        caught = before >= 0  # it waited when the gap began
        # A wait that was under way when the gap began also explains some time after it: as long as it had lasted by then, RECOVERY at most.
        until = (
            np.where(caught, np.minimum(end[place] + np.minimum(before, RECOVERY), call), start)
            if len(begin)
            else start
        )
        self._add(own, start, until, cause=np.full(len(own), _SYNC, np.uint8))
        first = first + caught
        # The wait that was under way at the start is done, so each gap has the waits [first,
        # behind) left.
        counts = np.maximum(behind - first, 0)
        # the waits in each gap, one after the other, and the time between them
        which = np.repeat(np.arange(len(own)), counts)
        number = np.repeat(first - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        from_, to = np.maximum(begin[number], until[which]), np.minimum(end[number], call[which])
        to = np.maximum(to, from_)
        self._add(own[which], from_, to, cause=np.full(len(which), _SYNC, np.uint8))
        # n waits leave n + 1 stretches between them. With two waits: until..from0, to0..from1, to1..call. The first begin of each gap is
        # `until`, its last end is `call`; the others come from the waits in order.
        spans = np.cumsum(counts + 1)
        between_start, between_end = (
            np.empty(len(which) + len(own), np.int64),
            np.empty(len(which) + len(own), np.int64),
        )
        opening, closing = spans - counts - 1, spans - 1
        inner = np.ones(len(between_start), bool)
        inner[opening] = False
        between_start[opening], between_start[inner] = until, to
        inner = np.ones(len(between_start), bool)
        inner[closing] = False
        between_end[closing], between_end[inner] = call, from_
        whose = np.repeat(np.arange(len(own)), counts + 1)
        self._add(
            own[whose],
            np.minimum(between_start, between_end),
            between_end,
            cause=np.full(len(whose), _HOST, np.uint8),
        )

    def _add(self, which: Int64Array, start: Int64Array, end: Int64Array, cause: Codes) -> None:
        some = end > start
        self._pieces.append((which[some], start[some], end[some], cause[some]))

    def result(self) -> tuple[Int64Array, Int64Array, Int64Array, Codes]:
        """Return for each piece: which of the gaps it is of, start, end, cause."""
        which, start, end, cause = zip(*self._pieces, strict=True)
        return np.concatenate(which), np.concatenate(start), np.concatenate(end), np.concatenate(cause)
