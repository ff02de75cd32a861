"""What threads were doing by their own account: the tables `nvtx_ranges` and `nvtx_marks`, and which range encloses what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpline.importers.kineto.columns import Bools, Codes, Ints, dictionary, numbered, ordered, taken, where_known
from warpline.importers.kineto.layout import NULL32
from warpline.report.enclosing import Enclosing
from warpline.spool import desk

if TYPE_CHECKING:
    from warpline.importers.kineto.trace import Trace

DOMAIN = "pytorch"
_KINDS = ("op", "annotation", "range", "async")
_OP, _ANNOTATION, _RANGE, _ASYNC = range(4)


def enclosing(thread: Ints, start: Ints, end: Ints, ids: Ints, of: Ints, at: Ints) -> Ints:
    """Return the id of the innermost range of each thread `of` that is open at each time `at`, -1 where none is; both are in order."""
    order = None if not len(at) or bool((at[1:] >= at[:-1]).all()) else np.argsort(at, kind="stable")
    # Threads in 32 bits, as the native half takes them.
    numbers = np.unique(np.concatenate([thread, of]))
    points = np.searchsorted(numbers, of if order is None else of[order]).astype(np.int32)
    sought = Enclosing(points, np.ascontiguousarray(at if order is None else at[order]))
    sorted_ranges = np.argsort(start, kind="stable") if len(start) and bool((start[1:] < start[:-1]).any()) else None
    columns = {"thread": np.searchsorted(numbers, thread).astype(np.int64), "start": start, "end": end, "id": ids}
    if sorted_ranges is not None:
        columns = {name: column[sorted_ranges] for name, column in columns.items()}
    columns = {name: np.ascontiguousarray(column) for name, column in columns.items()}
    sought.pass_by({**columns, "style": np.zeros(len(start), np.int32)})
    sought.finish()
    if order is None:
        return sought.found
    found = np.empty_like(sought.found)
    found[order] = sought.found
    return found


@dataclass
class Ranges:
    """The ranges of the trace, in order of their ids. `kind` and `row`: the event that each was."""

    id: Ints
    process: Ints
    thread: Ints
    start: Ints
    end: Ints
    name: Codes
    kind: npt.NDArray[np.int8]
    row: Ints
    parent: Ints  # place in these arrays, -1: none
    depth: Codes

    def around(self, thread: Ints, start: Ints, kinds: Bools | None = None) -> pa.Array:
        """Return the innermost push/pop range of threads at these times; null where there is none."""
        return where_known(self.found(thread, start, kinds))

    def found(self, thread: Ints, start: Ints, kinds: Bools | None = None) -> Ints:
        """Return the same as numbers, -1 for none. `kinds`: which of the ranges count."""
        chosen = self.kind != _ASYNC
        if kinds is not None:
            chosen &= kinds
        if not chosen.any():
            return np.full(len(start), -1, np.int64)
        if chosen.all():
            return enclosing(self.thread, self.start, self.end, self.id, thread, start)
        return enclosing(self.thread[chosen], self.start[chosen], self.end[chosen], self.id[chosen], thread, start)

    def of(self, kind: str, count: int) -> Ints:
        """Return the place of each of the `count` events of a kind."""
        places = np.full(count, -1, np.int64)
        mine = np.flatnonzero(self.kind == _KINDS.index(kind))
        places[self.row[mine]] = mine
        return places


def write(trace: Trace) -> Ranges:
    """Write `nvtx_ranges`."""
    identity = trace.identity
    parts = [trace.take(kind, "start", "end", "name") for kind in _KINDS]
    lanes = [identity.lanes.pop(kind) for kind in _KINDS]
    lengths = [len(lane) for lane in lanes]
    start, end, name = (np.concatenate([part[i] for part in parts]) for i in range(3))
    del parts
    lane = np.concatenate(lanes)
    kind = np.repeat(np.arange(len(_KINDS), dtype=np.int8), lengths)
    row = np.concatenate([np.arange(length) for length in lengths])
    generic = _generic(trace, lengths)
    process, thread = _who(identity.process, lane), _who(identity.thread, lane)
    order = ordered(process, start, end)
    start, end, name, kind, row, process, thread = taken(order, start, end, name, kind, row, process, thread)
    generic = dict(zip(generic, taken(order, *generic.values()), strict=True))
    ids = numbered(process)
    depth, parent = _nested(process, thread, start, end, kind)
    identity.saw(process, thread, start, end)
    other = generic["end_thread"] if generic else np.empty(0, np.int64)
    category = trace.texts.column(generic["category"]) if generic else pa.nulls(len(ids), pa.string()).dictionary_encode()
    domain = np.where(kind == _OP, 0, -1).astype(np.int32)
    none = np.zeros(len(ids), bool)
    columns: dict[str, Any] = {
        "id": ids,
        "process": process,
        "thread": thread,
        "start": start,
        "end": end,
        "domain": dictionary(domain, [DOMAIN]),
        "category": category,
        "message": trace.texts.column(name),
        "style": dictionary((kind == _ASYNC).astype(np.int32), ["PushPop", "StartEnd"]),
        "depth": depth,
        "parent": where_known(np.where(parent < 0, -1, ids[parent])) if len(ids) else ids,
        "unfinished": generic["flags"] == 1 if generic else none,
        "inherited": none,
        "clipped": none,
    }
    if generic:
        columns["end_thread"] = pa.array(other, pa.int64(), mask=(other < 0) | (other == thread))
    trace.write("nvtx_ranges", columns)
    if generic:
        _payloads(trace, "range", process, ids, generic["payload"])
    return Ranges(ids, process, thread, start, end, name, kind, row, parent, depth)


def marks(trace: Trace) -> None:
    """Write `nvtx_marks`."""
    identity = trace.identity
    start, name, category, payload = trace.take("mark", "start", "name", "category", "payload")
    lane = identity.lanes.pop("mark")
    process, thread = _who(identity.process, lane), _who(identity.thread, lane)
    start, name, category, payload, process, thread = taken(ordered(process, start), start, name, category, payload, process, thread)
    identity.saw(process, thread, start, start)
    ids = numbered(process)
    columns = {"id": ids, "process": process, "thread": thread, "start": start}
    trace.write("nvtx_marks", {**columns, "category": trace.texts.column(category), "message": trace.texts.column(name)})
    _payloads(trace, "mark", process, ids, payload)


def _who(keys: Ints, lane: Codes) -> Ints:
    return keys[lane] if len(lane) else np.empty(0, np.int64)


def _generic(trace: Trace, lengths: list[int]) -> dict[str, npt.NDArray[Any]]:
    """Return the columns that only events of other tools than PyTorch have, for all ranges; empty where there are none of those."""
    own = lengths[_OP] + lengths[_ANNOTATION]
    if not lengths[_RANGE] + lengths[_ASYNC]:
        return {}
    flags = np.concatenate([np.zeros(own, np.int32), *(trace.take(kind, "flags")[0] for kind in ("range", "async"))])
    category = np.concatenate([np.full(own, NULL32, np.int32), *(trace.take(kind, "category")[0] for kind in ("range", "async"))])
    payload = np.concatenate([np.full(own, -1, np.int64), *(trace.take(kind, "payload")[0] for kind in ("range", "async"))])
    ended = np.concatenate([np.full(own + lengths[_RANGE], -1, np.int64), _who(trace.identity.thread, trace.identity.ended)])
    return {"flags": flags, "category": category, "payload": payload, "end_thread": ended}


def _nested(process: Ints, thread: Ints, start: Ints, end: Ints, kind: npt.NDArray[np.int8]) -> tuple[Codes, Ints]:
    """Return depth and parent (place, -1: none) of all ranges."""
    if not len(start):
        return np.empty(0, np.int32), np.empty(0, np.int64)
    if not (kind == _ASYNC).any():
        return desk.nest(thread, start, end)
    depth, parent = np.zeros(len(start), np.int32), np.full(len(start), -1, np.int64)
    mine = np.flatnonzero(kind != _ASYNC)
    depth[mine], above = desk.nest(*(np.ascontiguousarray(column[mine]) for column in (thread, start, end)))
    parent[mine] = np.where(above < 0, -1, mine[above])
    for key in np.unique(process).tolist():
        loose = np.flatnonzero((process == key) & (kind == _ASYNC))
        depth[loose] = desk.lanes(np.ascontiguousarray(start[loose]), np.ascontiguousarray(end[loose]))
    return depth, parent


def _payloads(trace: Trace, event: str, process: Ints, ids: Ints, payload: Ints) -> None:
    """Write what events carry as JSON, of those that carry something."""
    carried = np.flatnonzero(payload >= 0)
    if len(carried):
        none = np.zeros(len(carried), bool)
        trace.write(
            "payloads",
            {
                "process": process[carried],
                "event_type": dictionary(none.astype(np.int32), [event]),
                "event": ids[carried],
                "type": dictionary(none.astype(np.int32), ["args"]),
                "at_end": none,
                "cut": none,
                "json": trace.raws.column(payload[carried].astype(np.int32)).cast(pa.string()),
            },
        )
