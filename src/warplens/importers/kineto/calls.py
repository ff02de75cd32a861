"""The table `cuda_api`: calls of the runtime and driver of CUDA, ROCm and others.

And how GPU work finds its call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.kineto.columns import dictionary, filled, ordered, taken, where_known
from warplens.importers.rows import numbered

if TYPE_CHECKING:
    from warplens.importers.kineto.ranges import KinetoRanges
    from warplens.importers.kineto.stacks import KinetoStacks
    from warplens.importers.kineto.trace import KinetoTrace

_VERSION = re.compile(r"_v\d{4,}$")  # the runtime's; `_v2` of a driver's function is part of its name
_KINDS = ("runtime", "driver")


@dataclass
class KinetoCalls:
    """The calls by correlation, sorted by it; `process` and `start` are those of the call."""

    correlation: Int64Array
    id: Int64Array
    process: Int64Array
    range: Int64Array

    def find(self, correlation: Int64Array) -> tuple[Int64Array, BoolArray]:
        """Return the places of the calls with these correlations, and which of them there are."""
        if not len(self.correlation):
            return np.zeros(len(correlation), np.int64), np.zeros(len(correlation), bool)
        place = np.minimum(np.searchsorted(self.correlation, correlation), len(self.correlation) - 1)
        return place, np.asarray((correlation > 0) & (self.correlation[place] == correlation))


def write(trace: KinetoTrace, ranges: KinetoRanges, stacks: KinetoStacks) -> KinetoCalls:
    """Write `cuda_api`."""
    identity = trace.identity
    parts = [trace.take(kind, "start", "end", "name", "correlation") for kind in _KINDS]
    lane = np.concatenate([identity.lanes.pop(kind) for kind in _KINDS])
    kind = np.repeat(np.arange(len(_KINDS), dtype=np.int32), [len(part[0]) for part in parts])
    start, end, name, correlation = (np.concatenate([part[i] for part in parts]) for i in range(4))
    order = ordered(identity.process_of(lane), start, end)
    start, end, name, correlation, lane, kind = taken(order, start, end, name, correlation, lane, kind)
    process, thread = identity.process_of(lane), identity.thread_of(lane)
    identity.saw(process, thread, start=start, end=end)
    ids = numbered(process)
    around = ranges.around_ids(thread, start)
    correlation = filled(correlation)
    trace.write(
        "cuda_api",
        {
            "id": ids,
            "process": process,
            "thread": thread,
            "start": start,
            "end": end,
            "api": lambda rows: dictionary(kind[rows], _KINDS),
            "name": lambda rows: trace.texts.column(name[rows], lambda text: _VERSION.sub("", text)),
            "result": np.broadcast_to(np.zeros(1, np.int32), len(ids)),
            "correlation": correlation,
            "range": lambda rows: where_known(around[rows]),
            "stack": stacks.at(thread, start),
        },
    )
    # Of several calls with one correlation the first counts: the stable sort keeps it in front.
    sort = np.argsort(correlation, kind="stable")
    keys = correlation[sort]
    first = np.concatenate([[True], keys[1:] != keys[:-1]]) if len(keys) else np.empty(0, bool)
    chosen = sort[first & (keys > 0)]
    return KinetoCalls(correlation[chosen], ids[chosen], process[chosen], range=around[chosen])
