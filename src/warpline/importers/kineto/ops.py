"""Operations of PyTorch: the table `ops`, and which forward operation a backward one belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warpline.importers.kineto.columns import Bools, Ints, optional, where_known
from warpline.importers.kineto.layout import NULL

if TYPE_CHECKING:
    from warpline.importers.kineto.ranges import Ranges
    from warpline.importers.kineto.stacks import Stacks
    from warpline.importers.kineto.trace import Trace

_BEGIN, _END = ord("s"), ord("f")


def write(trace: Trace, ranges: Ranges, stacks: Stacks) -> Ints:
    """Write `ops`; return the place of each operation among the ranges."""
    count = trace.reader.rows("op")
    places = ranges.of("op", count)
    order = np.argsort(places)
    at = places[order]
    external, sequence, forward_thread = (column[order] for column in trace.take("op", "external", "sequence", "forward_thread"))
    shapes, types = (column[order] for column in trace.take("op", "shapes", "types"))
    flowed = _flows(trace, ranges, at)
    backward, forward = _backward(ranges, at, sequence, forward_thread, flowed)
    known = bool((sequence != NULL).any()) or bool((flowed >= 0).any())
    trace.write(
        "ops",
        {
            "range": ranges.id[at],
            "process": ranges.process[at],
            "thread": ranges.thread[at],
            "start": ranges.start[at],
            "end": ranges.end[at],
            "name": trace.texts.column(ranges.name[at]),
            "sequence": optional(sequence),
            "forward": where_known(np.where(forward < 0, -1, ranges.id[forward])) if len(at) else forward,
            "backward": pa.array(backward) if known else pa.nulls(len(at), pa.bool_()),
            "external": optional(external),
            "shapes": trace.raws.column(shapes),
            "types": trace.raws.column(types),
            "stack": stacks.at(ranges.thread[at], ranges.start[at]),
        },
    )
    return places


def _flows(trace: Trace, ranges: Ranges, at: Ints) -> Ints:
    """Return the place of the forward operation that an arrow leads from, of each operation; -1 where none does."""
    found = np.full(len(at), -1, np.int64)
    start, number, phase = trace.take("flow", "start", "id", "phase")
    lane = trace.identity.lanes.pop("flow")
    if not len(start):
        return found
    thread = trace.identity.thread[lane]
    # An arrow is fastened to the operation that begins at its time: of several, the outermost.
    begins: dict[tuple[int, int], int] = {}
    wanted = np.isin(ranges.start[at], start)
    for place in at[wanted].tolist():
        begins.setdefault((int(ranges.thread[place]), int(ranges.start[place])), place)
    sources: dict[int, int] = {}
    for one, when, who in zip(
        number[phase == _BEGIN].tolist(), start[phase == _BEGIN].tolist(), thread[phase == _BEGIN].tolist(), strict=True
    ):
        if (who, when) in begins:
            sources[one] = begins[who, when]
    within = np.full(len(ranges.id), -1, np.int64)
    within[at] = np.arange(len(at))
    for one, when, who in zip(number[phase == _END].tolist(), start[phase == _END].tolist(), thread[phase == _END].tolist(), strict=True):
        if one in sources and (who, when) in begins:
            found[within[begins[who, when]]] = sources[one]
    return found


def _backward(ranges: Ranges, at: Ints, sequence: Ints, forward_thread: Ints, flowed: Ints) -> tuple[Bools, Ints]:
    """Say which operations belong to the backward pass, and return the place of the forward one where it is known."""
    numbered = sequence != NULL
    is_backward = (numbered & (forward_thread != NULL) & (forward_thread > 0)) | (flowed >= 0)
    forward = flowed.copy()
    # Of the forward operations that share a number the last one made the node of the graph.
    candidates = np.flatnonzero(numbered & ~is_backward & (sequence >= 0))
    asked = np.flatnonzero(is_backward & numbered & (forward < 0))
    if len(candidates) and len(asked):
        keys = _joined(ranges.process[at[candidates]], sequence[candidates])
        order = np.argsort(keys, kind="stable")
        keys, candidates = keys[order], candidates[order]
        wanted = _joined(ranges.process[at[asked]], sequence[asked])
        place = np.searchsorted(keys, wanted, side="right") - 1
        hit = (place >= 0) & (keys[np.maximum(place, 0)] == wanted)
        sources = at[candidates[np.maximum(place, 0)]]
        hit &= ranges.start[sources] <= ranges.start[at[asked]]
        forward[asked[hit]] = sources[hit]
    flags = np.zeros(len(ranges.id), bool)
    flags[at] = is_backward
    # What runs within a backward operation belongs to it; parents come before their children.
    inner = np.flatnonzero(ranges.parent >= 0)
    while len(fresh := inner[flags[ranges.parent[inner]] & ~flags[inner]]):
        flags[fresh] = True
    return flags[at], forward


def _joined(process: Ints, sequence: Ints) -> Ints:
    return np.asarray(process * (1 << 40) + sequence, np.int64)
