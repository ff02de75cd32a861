"""From the call to the GPU: how long launches waited in the queue of their stream, and how many were in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from warpline.query.api_calls import Calls
from warpline.query.gpu_work import Codes, Gpu, Track
from warpline.query.held import NEVER
from warpline.query.intervals import Times

_AT_ONCE = 1 << 20  # calls that are looked up together
LIMIT = 1024  # launches that CUDA takes into a stream's queue before calls have to wait


@dataclass
class Launched:
    """The launches into one stream as arrays of one length, in the order of their calls; a graph is launched once, and begins with a node.

    `called`, `returned`: begin and end of the call; `began`, `ended`, `kind`: of the (first) operation; `free`: when what ran before it
    on the stream had ended, NEVER for the first.
    """

    called: Times
    returned: Times
    began: Times
    ended: Times
    free: Times
    kind: Codes

    def chosen(self, which: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Launched:
        """Return some of them."""
        return Launched(*(getattr(self, name)[which] for name in _FIELDS))


_FIELDS = ("called", "returned", "began", "ended", "free", "kind")


def launched(gpu: Gpu, calls: Calls) -> dict[int | None, Launched]:
    """Return the launches into each stream of a GPU whose call is in the report. The operations of the GPU are let go of."""
    tracks = list(gpu.streams.items())
    gpu.parts.clear()
    kept = _launching([track for _, track in tracks])
    offsets = np.cumsum([0, *(len(track) for _, track in tracks)])
    called, returned = np.empty(len(kept), np.int64), np.empty(len(kept), np.int64)
    known = np.empty(len(kept), bool)
    api = np.concatenate([track.api for _, track in tracks])
    for begin in range(0, len(kept), _AT_ONCE):
        chunk = slice(begin, begin + _AT_ONCE)
        found = calls.find(api[kept[chunk]])
        called[chunk], returned[chunk], known[chunk] = found.start, found.end, found.known
    del api
    result = {}
    for number, (stream, track) in enumerate(tracks):
        own = known & (kept >= offsets[number]) & (kept < offsets[number + 1])
        if own.any():
            here = kept[own] - offsets[number]
            free = np.concatenate(([NEVER], np.maximum.accumulate(track.end)[:-1]))[here]
            result[stream] = Launched(called[own], returned[own], track.start[here], track.end[here], free, track.kind[here])
    return result


def _launching(tracks: Sequence[Track]) -> Times:
    """Return the positions of the first operation of each call in each track, the tracks being one behind the other; in order of calls."""
    api = np.concatenate([track.api for track in tracks])
    whose = np.repeat(np.arange(len(tracks), dtype=np.int32), [len(track) for track in tracks])
    order = np.argsort(api, kind="stable")
    api, whose = api[order], whose[order]
    new = api >= 0
    new[1:] &= (api[1:] != api[:-1]) | (whose[1:] != whose[:-1])
    return order[new]


class Queue(NamedTuple):
    """How many launches were called and had not begun, from the first call to the last begin: `span` ns.

    `mean`, `median`: over time; `empty`: ns without any. `full`: ns with as many as the limit. `blocked`, `blocked_calls`: ns of the calls
    that made it so many, and how many calls those are.
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
    """Return how long the queue of some streams was, all of them together; each is full for itself."""
    whole = _lengths(parts)
    full = blocked = number = 0
    for part in parts:
        times, length, arrival = whole if len(parts) == 1 else _lengths([part])
        full += int(np.diff(times)[length[:-1] >= limit].sum())
        late = length[arrival] >= limit  # with the call itself
        blocked += int((part.returned - part.called)[late].sum())
        number += int(late.sum())
    times, length, _ = whole
    step = np.diff(times)
    span = int(step.sum())
    shown = length[:-1][step > 0]
    weight = np.bincount(length[:-1], weights=step)
    median = int(np.searchsorted(np.cumsum(weight), span / 2)) if span else 0
    mean = float((length[:-1] * step).sum() / span) if span else 0.0
    most, empty = int(shown.max()) if len(shown) else 0, int(weight[0]) if len(weight) else 0
    return Queue(sum(len(part.called) for part in parts), span, most, mean, median, empty, full, blocked, number)


def _lengths(parts: Sequence[Launched]) -> tuple[Times, Times, Times]:
    """Return the times at which the number in the queue changes, the number from each on, and where the calls are in them."""
    called = np.concatenate([part.called for part in parts])
    began = np.maximum(np.concatenate([part.began for part in parts]), called)
    times = np.concatenate([called, began])
    order = np.argsort(times, kind="stable")  # of one time, calls come first: no queue is shorter than nothing
    length = np.cumsum(np.where(order < len(called), 1, -1))
    position = np.empty(len(order), np.int64)
    position[order] = np.arange(len(order))
    return times[order], length, position[: len(called)]
