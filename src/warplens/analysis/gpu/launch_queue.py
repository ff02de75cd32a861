"""Queues between calls and the GPU: how long launches waited in their stream's queue, and its length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from warplens.analysis.gpu.api_calls import ApiCalls
from warplens.analysis.gpu.dependencies import NEVER
from warplens.analysis.gpu.work import Codes, GpuWork
from warplens.arrays import Int64Array
from warplens.storage.memory import give_back

_AT_ONCE = 1 << 20  # calls that are looked up together
LIMIT = 1024  # launches that CUDA takes into a stream's queue before calls have to wait


@dataclass
class Launched:
    """The launches into one stream as arrays of one length, in the order of their calls.

    A graph is launched once, and begins with a node.

    `called`, `returned`: begin and end of the call; `began`, `ended`, `kind`: of the (first) operation; `free`: when what ran before it
    on the stream had ended, NEVER for the first.
    """

    called: Int64Array
    returned: Int64Array
    began: Int64Array
    ended: Int64Array
    free: Int64Array
    kind: Codes

    def chosen(self, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Launched:
        """Return some of them."""
        return Launched(*(getattr(self, name)[which] for name in _FIELDS))


_FIELDS = ("called", "returned", "began", "ended", "free", "kind")


def launched(gpu: GpuWork, calls: ApiCalls) -> Iterator[tuple[int | None, Launched]]:
    """Yield the launches into each stream of a GPU whose call is in the report.

    The operations of the GPU are let go of.
    """
    tracks = list(gpu.streams.items())
    gpu.parts.clear()
    offsets = np.cumsum([0, *(len(track) for _, track in tracks)])
    api = np.concatenate([track.api for _, track in tracks])
    kept = _launching(api, offsets)
    give_back()
    called, returned = np.empty(len(kept), np.int64), np.empty(len(kept), np.int64)
    known = np.empty(len(kept), bool)
    for begin in range(0, len(kept), _AT_ONCE):
        chunk = slice(begin, begin + _AT_ONCE)
        callers = calls.find(api[kept[chunk]])
        called[chunk], returned[chunk], known[chunk] = callers.start, callers.end, callers.known
    del api
    for number in range(len(tracks)):
        stream, track = tracks[0]
        del tracks[0]  # of a long recording, what is not needed any more is hundreds of MB
        own = np.flatnonzero(known & (kept >= offsets[number]) & (kept < offsets[number + 1]))
        if len(own):
            here = kept[own] - offsets[number]
            # When the stream was free for an operation: the greatest end of the operations before
            # it. The first one found it free from the start.
            free = np.concatenate(([NEVER], np.maximum.accumulate(track.end)[:-1]))[here]
            part = Launched(
                called[own],
                returned[own],
                track.start[here],
                ended=track.end[here],
                free=free,
                kind=track.kind[here],
            )
            del track, here, free, own
            give_back()
            yield stream, part
            del part


def _launching(api: Int64Array, offsets: Int64Array) -> Int64Array:
    """Return the positions of the first operation of each call in each track, in order of calls.

    Tracks begin at the offsets.
    """
    order = np.argsort(api, kind="stable")
    sorted_api = api[order]
    new = sorted_api >= 0
    # Of one call and track, operations follow each other: the order keeps that of the tracks.
    same = np.flatnonzero(new[1:] & (sorted_api[1:] == sorted_api[:-1]))
    del sorted_api
    track = np.searchsorted(offsets, np.stack((order[same], order[same + 1])), "right")
    new[same[track[0] == track[1]] + 1] = False
    return order[new]


class Queue(NamedTuple):
    """Number of launches that were called but had not begun, from the first call to the last begin: `span` ns.

    `mean`, `median`: over time; `empty`: ns without any. `full`: ns with as many as the limit. `blocked`,
    `blocked_calls`: ns of the calls that filled it, and their number.
    """

    launches: int
    span: int
    most: int
    mean: float
    median: int
    empty: int
    full: int
    blocked: int
    blocked_calls: int


def queue(parts: Sequence[Launched], limit: int = LIMIT) -> Queue:
    """Return how long the queue of some streams was, all of them together.

    Each is full for itself.
    """
    whole = _lengths(parts, limit)
    own = [whole] if len(parts) == 1 else [_lengths([part], limit) for part in parts]
    weight = whole.weight
    span = int(weight.sum())
    # weight[n] is the time with n launches in the queue, so mean and median are those of a histogram weighted by time.
    median = int(np.searchsorted(np.cumsum(weight), span / 2)) if span else 0
    mean = float((np.arange(len(weight)) * weight).sum() / span) if span else 0.0
    most, empty = int(np.flatnonzero(weight).max(initial=0)), int(weight[0]) if len(weight) else 0
    full = sum(int(part.weight[limit:].sum()) for part in own)
    blocked, number = sum(part.blocked for part in own), sum(part.late for part in own)
    return Queue(
        sum(len(part.called) for part in parts),
        span,
        most,
        mean=mean,
        median=median,
        empty=empty,
        full=full,
        blocked=blocked,
        blocked_calls=number,
    )


class _Lengths(NamedTuple):
    """`weight`: ns for which the queue was 0, 1, 2, … long.

    `late`, `blocked`: calls that made it too long, and ns that they took.
    """

    weight: Int64Array
    late: int
    blocked: int


def _lengths(parts: Sequence[Launched], limit: int) -> _Lengths:
    called = np.concatenate([part.called for part in parts])
    times = np.concatenate([called, *(part.began for part in parts)])
    np.maximum(times[len(called) :], called, out=times[len(called) :])
    order = np.argsort(
        times, kind="stable"
    )  # of one time, calls come first: no queue is shorter than nothing
    times = times[order]
    arrives = order < len(called)
    # +1 at each call, -1 at each begin: the running sum is the length of the queue.
    length = np.cumsum(arrives.astype(np.int8) * np.int8(2) - np.int8(1), dtype=np.int32)
    late = order[arrives & (length >= limit)]  # with the call itself
    del order, arrives
    took = np.concatenate([part.returned for part in parts])[late] - called[late]
    del called
    weight = np.zeros(int(length.max(initial=0)) + 1, np.int64)
    for begin in range(0, len(length) - 1, _AT_ONCE):  # sums of floats are exact up to 2^53 ns
        chunk = slice(begin, min(begin + _AT_ONCE, len(length) - 1))
        added = np.bincount(length[chunk], weights=np.diff(times[chunk.start : chunk.stop + 1]))
        weight[: len(added)] += added.astype(np.int64)
    return _Lengths(weight, len(late), int(took.sum()))
