"""Operations of PyTorch: the table `ops`, and which forward operation a backward one belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray, Int32Array, Int64Array
from warplens.importers.kineto.columns import optional, where_known
from warplens.importers.kineto.layout import NULL, NULL32
from warplens.importers.kineto.ranges import OP, KinetoRanges
from warplens.storage.writer import RANGES_PER_PROCESS

if TYPE_CHECKING:
    from warplens.importers.kineto.stacks import KinetoStacks
    from warplens.importers.kineto.trace import KinetoTrace

_BEGIN, _END = ord("s"), ord("f")


def write(trace: KinetoTrace, ranges: KinetoRanges, stacks: KinetoStacks) -> Int32Array:
    """Write `ops`; return the place of each operation among the ranges."""
    places = ranges.of("op", trace.reader.rows("op"))
    at = np.flatnonzero(ranges.kind == OP).astype(np.int32)
    order = ranges.row[at]
    sequence, forward_thread = (column[order] for column in trace.take("op", "sequence", "forward_thread"))
    flowed = _flows(trace, ranges, at)
    backward, forward = _backward(ranges, at, sequence, forward_thread=forward_thread, flowed=flowed)
    external, shapes, types = (column[order] for column in trace.take("op", "external", "shapes", "types"))
    strides, concrete = (column[order] for column in trace.take("op", "strides", "concrete"))
    del order, forward_thread
    known = bool((sequence != NULL).any()) or bool((flowed >= 0).any())
    trace.write(
        "ops",
        {
            "range": ranges.id[at],
            "process": lambda rows: ranges.id[at[rows]] // RANGES_PER_PROCESS,
            "thread": lambda rows: ranges.thread[at[rows]],
            "start": lambda rows: ranges.start[at[rows]],
            "end": lambda rows: ranges.end[at[rows]],
            "name": lambda rows: trace.texts.column(ranges.name[at[rows]]),
            "sequence": lambda rows: optional(sequence[rows]),
            "forward": lambda rows: where_known(np.where(forward[rows] < 0, -1, ranges.id[forward[rows]])),
            "backward": lambda rows: (
                pa.array(backward[rows]) if known else pa.nulls(len(at[rows]), pa.bool_())
            ),
            "external": lambda rows: optional(external[rows]),
            "shapes": lambda rows: trace.raws.column(shapes[rows]),
            "types": lambda rows: trace.raws.column(types[rows]),
            "strides": lambda rows: trace.raws.column(strides[rows]),
            "concrete": lambda rows: trace.raws.column(concrete[rows]),
            "stack": stacks.at(ranges.thread[at], ranges.start[at]),
        },
    )
    return places


def _flows(trace: KinetoTrace, ranges: KinetoRanges, at: Int32Array) -> Int64Array:
    """Return the place of the forward operation that an arrow leads from, of each operation.

    -1 if none does.
    """
    forward = np.full(len(at), -1, np.int64)
    start, number, phase = trace.take("flow", "start", "id", "phase")
    lane = trace.identity.lanes.pop("flow")
    if not len(start):
        return forward
    thread = trace.identity.thread[lane]
    # An arrow is fastened to the operation that begins at its time: of several, the outermost.
    begins: dict[tuple[int, int], int] = {}
    wanted = np.isin(ranges.start[at], start)
    for place in at[wanted].tolist():
        begins.setdefault((int(ranges.thread[place]), int(ranges.start[place])), place)
    sources: dict[int, int] = {}
    for arrow, when, who in zip(
        number[phase == _BEGIN].tolist(),
        start[phase == _BEGIN].tolist(),
        thread[phase == _BEGIN].tolist(),
        strict=True,
    ):
        if (who, when) in begins:
            sources[arrow] = begins[who, when]
    within = np.full(len(ranges.id), -1, np.int64)
    # `within` maps a place among all ranges back to a place among the operations `at`.
    within[at] = np.arange(len(at))
    for arrow, when, who in zip(
        number[phase == _END].tolist(),
        start[phase == _END].tolist(),
        thread[phase == _END].tolist(),
        strict=True,
    ):
        if arrow in sources and (who, when) in begins:
            forward[within[begins[who, when]]] = sources[arrow]
    return forward


def _backward(
    ranges: KinetoRanges, at: Int32Array, sequence: Int64Array, forward_thread: Int64Array, flowed: Int64Array
) -> tuple[BoolArray, Int64Array]:
    """Say which operations belong to the backward pass.

    Return the place of the forward one if known.
    """
    numbered = sequence != NULL
    is_backward = (numbered & (forward_thread != NULL32) & (forward_thread > 0)) | (flowed >= 0)
    forward = flowed.copy()
    # Of the forward operations that share a number the last one made the node of the graph.
    candidates = np.flatnonzero(numbered & ~is_backward & (sequence >= 0))
    asked = np.flatnonzero(is_backward & numbered & (forward < 0))
    if len(candidates) and len(asked):
        keys = _joined(ranges.id[at[candidates]] // RANGES_PER_PROCESS, sequence[candidates])
        order = np.argsort(keys, kind="stable")
        keys, candidates = keys[order], candidates[order]
        wanted = _joined(ranges.id[at[asked]] // RANGES_PER_PROCESS, sequence[asked])
        # The last of the forward operations with this process and sequence number: "right" - 1 lands on the last equal key.
        place = np.searchsorted(keys, wanted, side="right") - 1
        hit = (place >= 0) & (keys[np.maximum(place, 0)] == wanted)
        sources = at[candidates[np.maximum(place, 0)]]
        hit &= ranges.start[sources] <= ranges.start[at[asked]]
        forward[asked[hit]] = sources[hit]
    flags = np.zeros(len(ranges.id), bool)
    flags[at] = is_backward
    # What runs within a backward operation belongs to it; parents come before their children.
    inner = np.flatnonzero(ranges.parent >= 0)
    # Each pass flags the children of what is flagged; it ends after as many passes as operations nest.
    while len(fresh := inner[flags[ranges.parent[inner]] & ~flags[inner]]):
        flags[fresh] = True
    return flags[at], forward


def _joined(process: Int64Array, sequence: Int64Array) -> Int64Array:
    return np.asarray(process * (1 << 40) + sequence, np.int64)
