"""Time that compiling, loading and the recording itself took: the table `overhead`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from warplens.importers.nsys.memory import write_sorted
from warplens.importers.nsys.names import encoded, labelled
from warplens.importers.nsys.taken import NsysContext, NsysEvents
from warplens.model.nsys_labels import JIT_OPERATIONS, OVERHEAD_KINDS

_COMMON = ("start", "end", "globalTid", "nameId", "correlationId", "overheadType")
_PROFILER, _JIT = "PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_JIT"


def write(context: NsysContext) -> None:
    """Write `overhead`: CUDA's, the just-in-time compiler's, and nsys' own."""
    write_sorted(
        context,
        "overhead",
        [_rows(context, table) for table in ("CUPTI_ACTIVITY_KIND_OVERHEAD", _JIT, _PROFILER)],
    )


def _rows(context: NsysContext, table: str) -> dict[str, Any]:
    rows = context.read(table, [*_COMMON, "jitOperationType"])
    events = NsysEvents.sorted(context, rows, "globalTid", table=table)
    rows = events.rows
    always = np.ones(len(rows), bool)
    # Older versions do not say what nsys itself was busy with.
    kinds = labelled(rows.ints("overheadType", 4), always, OVERHEAD_KINDS)
    if table == _JIT:
        kinds = labelled(rows.ints("jitOperationType"), always, JIT_OPERATIONS, unknown="JIT operation {}")
    return {
        "process": events.process,
        "thread": pa.array(
            context.identity.thread(rows.ints("globalTid")),
            pa.int64(),
            mask=rows.ints("globalTid") & 0xFFFFFF == 0,
        ),
        "start": events.start,
        "end": events.end,
        "kind": kinds,
        "name": encoded(context.database, rows.ints("nameId"), rows.valid("nameId")),
        "correlation": events.called(context)["correlation"],
    }
