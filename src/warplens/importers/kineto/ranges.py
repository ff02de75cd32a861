"""Annotations of threads: the tables `nvtx_ranges` and `nvtx_marks`.

And the innermost range around a time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import BoolArray, Int32Array, Int64Array
from warplens.convert.enclosing import Enclosing
from warplens.importers.kineto.columns import dictionary, ordered, taken, where_known
from warplens.importers.kineto.layout import NULL32
from warplens.importers.rows import numbered

if TYPE_CHECKING:
    from warplens.importers.kineto.trace import KinetoTrace

DOMAIN = "pytorch"
_KINDS = ("op", "annotation", "range", "async")
OP, _ANNOTATION, _RANGE, _ASYNC = range(4)


def enclosing(
    thread: Int64Array, start: Int64Array, end: Int64Array, ids: Int64Array, of: Int64Array, at: Int64Array
) -> Int64Array:
    """Return the id of the innermost range of each thread `of` that is open at each time `at`.

    -1: none. Both are in order.
    """
    if not len(start) or not len(at):
        return np.full(len(at), -1, np.int64)
    order = None if bool((at[1:] >= at[:-1]).all()) else np.argsort(at, kind="stable")
    base = int(of.min())
    if int(of.max()) - base >= 1 << 31:  # the native half takes numbers of 32 bits
        numbers = np.unique(np.concatenate([thread, of]))
        thread, of, base = np.searchsorted(numbers, thread), np.searchsorted(numbers, of), 0
    points = (of if order is None else of[order]) - base
    sought = Enclosing(
        points.astype(np.int32), np.ascontiguousarray(at if order is None else at[order]), base
    )
    del points
    first = np.argsort(start, kind="stable") if bool((start[1:] < start[:-1]).any()) else None
    columns = dict(zip(("thread", "start", "end", "id"), taken(first, thread, start, end, ids), strict=True))
    columns = {name: np.ascontiguousarray(column, np.int64) for name, column in columns.items()}
    # One pass over ranges and points in order of time keeps a stack of open ranges for each thread;
    # the top of the stack is the answer for a point.
    sought.pass_by({**columns, "style": np.zeros(len(start), np.int32)})
    sought.finish()
    if order is None:
        return sought.range_ids
    in_order_asked = np.empty_like(sought.range_ids)
    in_order_asked[order] = sought.range_ids
    return in_order_asked


@dataclass
class KinetoRanges:
    """The ranges of the trace, in order of their ids. `kind` and `row`: the event that each was."""

    id: Int64Array
    thread: Int64Array
    start: Int64Array
    end: Int64Array
    name: Int32Array
    kind: npt.NDArray[np.int8]
    row: Int32Array
    parent: Int32Array  # place in these arrays, -1: none

    def around(self, thread: Int64Array, start: Int64Array, kinds: BoolArray | None = None) -> pa.Array:
        """Return the innermost push/pop range of threads at these times.

        Null if there is none.
        """
        return where_known(self.around_ids(thread, start, kinds))

    def around_ids(self, thread: Int64Array, start: Int64Array, kinds: BoolArray | None = None) -> Int64Array:
        """Return the same as numbers, -1 for none. `kinds`: which of the ranges count."""
        chosen = self.kind != _ASYNC
        if kinds is not None:
            chosen &= kinds
        if not chosen.any():
            return np.full(len(start), -1, np.int64)
        if chosen.all():
            return enclosing(self.thread, self.start, self.end, ids=self.id, of=thread, at=start)
        return enclosing(
            self.thread[chosen],
            self.start[chosen],
            self.end[chosen],
            ids=self.id[chosen],
            of=thread,
            at=start,
        )

    def of(self, kind: str, count: int) -> Int32Array:
        """Return the place of each of the `count` events of a kind."""
        places = np.full(count, -1, np.int32)
        mine = np.flatnonzero(self.kind == _KINDS.index(kind))
        places[self.row[mine]] = mine
        return places


def write(trace: KinetoTrace) -> KinetoRanges:
    """Write `nvtx_ranges`."""
    identity = trace.identity
    lanes = [identity.lanes.pop(kind) for kind in _KINDS]
    lengths = [len(lane) for lane in lanes]
    lane = np.concatenate(lanes)
    start, end = (np.concatenate([trace.take(kind, name)[0] for kind in _KINDS]) for name in ("start", "end"))
    order = ordered(identity.process_of(lane), start, end)
    lane, start, end = taken(order, lane, start, end)
    (name,) = taken(order, np.concatenate([trace.take(kind, "name")[0] for kind in _KINDS]))
    kind, row = taken(
        order,
        np.repeat(np.arange(len(_KINDS), dtype=np.int8), lengths),
        np.concatenate([np.arange(length, dtype=np.int32) for length in lengths]),
    )
    generic = _generic(trace, lengths)
    generic = dict(zip(generic, taken(order, *generic.values()), strict=True))
    process, thread = identity.process_of(lane), identity.thread_of(lane)
    del lanes, lane, order
    ids = numbered(process)
    depth, parent = _nested(process, thread, start=start, end=end, kind=kind)
    identity.saw(process, thread, start=start, end=end)
    other = generic.get("end_thread", thread)
    missing = np.full(len(ids), NULL32, np.int32) if not generic else generic["category"]
    flags = generic.get("flags", np.zeros(len(ids), np.int8))
    none = np.broadcast_to(np.zeros(1, bool), len(ids))
    trace.write(
        "nvtx_ranges",
        {
            "id": ids,
            "process": process,
            "thread": thread,
            "end_thread": lambda rows: pa.array(
                other[rows], pa.int64(), mask=(other[rows] < 0) | (other[rows] == thread[rows])
            ),
            "start": start,
            "end": end,
            "domain": lambda rows: dictionary(np.where(kind[rows] == OP, 0, -1).astype(np.int32), [DOMAIN]),
            "category": lambda rows: trace.texts.column(missing[rows]),
            "message": lambda rows: trace.texts.column(name[rows]),
            "style": lambda rows: dictionary(
                (kind[rows] == _ASYNC).astype(np.int32), ["PushPop", "StartEnd"]
            ),
            "depth": depth,
            "parent": lambda rows: where_known(np.where(parent[rows] < 0, -1, ids[parent[rows]])),
            "unfinished": lambda rows: flags[rows] == 1,
            "inherited": none,
            "clipped": none,
        },
    )
    if generic:
        _payloads(trace, "range", process, ids=ids, payload=generic["payload"])
    return KinetoRanges(ids, thread, start=start, end=end, name=name, kind=kind, row=row, parent=parent)


def marks(trace: KinetoTrace) -> None:
    """Write `nvtx_marks`."""
    identity = trace.identity
    start, name, category, payload = trace.take("mark", "start", "name", "category", "payload")
    lane = identity.lanes.pop("mark")
    process, thread = identity.process_of(lane), identity.thread_of(lane)
    start, name, category, payload, process, thread = taken(
        ordered(process, start), start, name, category, payload, process, thread
    )
    identity.saw(process, thread, start=start, end=start)
    ids = numbered(process)
    columns = {"id": ids, "process": process, "thread": thread, "start": start}
    trace.write(
        "nvtx_marks",
        {**columns, "category": trace.texts.column(category), "message": trace.texts.column(name)},
    )
    _payloads(trace, "mark", process, ids=ids, payload=payload)


def _generic(trace: KinetoTrace, lengths: list[int]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that only events of other tools than PyTorch have, for all ranges.

    Empty if there are none of those.
    """
    own = lengths[OP] + lengths[_ANNOTATION]
    if not lengths[_RANGE] + lengths[_ASYNC]:
        return {}
    flags = np.concatenate(
        [np.zeros(own, np.int32), *(trace.take(kind, "flags")[0] for kind in ("range", "async"))]
    )
    category = np.concatenate(
        [np.full(own, NULL32, np.int32), *(trace.take(kind, "category")[0] for kind in ("range", "async"))]
    )
    payload = np.concatenate(
        [np.full(own, -1, np.int64), *(trace.take(kind, "payload")[0] for kind in ("range", "async"))]
    )
    ended = np.concatenate(
        [np.full(own + lengths[_RANGE], -1, np.int64), trace.identity.thread_of(trace.identity.ended)]
    )
    return {"flags": flags, "category": category, "payload": payload, "end_thread": ended}


def _nested(
    process: Int64Array, thread: Int64Array, start: Int64Array, end: Int64Array, kind: npt.NDArray[np.int8]
) -> tuple[Int32Array, Int32Array]:
    """Return depth and parent (place, -1: none) of all ranges."""
    if not len(start):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    if not (kind == _ASYNC).any():
        depth, above = native.nest(thread, start, end)
        return depth, above.astype(np.int32)
    depth, parent = np.zeros(len(start), np.int32), np.full(len(start), -1, np.int32)
    mine = np.flatnonzero(kind != _ASYNC)
    depth[mine], above = native.nest(*(np.ascontiguousarray(column[mine]) for column in (thread, start, end)))
    parent[mine] = np.where(above < 0, -1, mine[above])
    for key in np.unique(process).tolist():
        loose = np.flatnonzero((process == key) & (kind == _ASYNC))
        depth[loose] = native.lanes(np.ascontiguousarray(start[loose]), np.ascontiguousarray(end[loose]))
    return depth, parent


def _payloads(
    trace: KinetoTrace, event: str, process: Int64Array, ids: Int64Array, payload: Int64Array
) -> None:
    """Write what events carry as JSON, of those that carry something."""
    with_payload = np.flatnonzero(payload >= 0)
    if len(with_payload):
        none = np.zeros(len(with_payload), bool)
        trace.write(
            "payloads",
            {
                "process": process[with_payload],
                "event_type": dictionary(none.astype(np.int32), [event]),
                "event": ids[with_payload],
                "type": dictionary(none.astype(np.int32), ["args"]),
                "at_end": none,
                "cut": none,
                "json": trace.raws.column(payload[with_payload].astype(np.int32)).cast(pa.string()),
            },
        )
