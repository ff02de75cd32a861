"""The idle time of GPUs by cause, as `gpu_utilization` counts it.

No finding may claim idle time that has another cause.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.idle import idle
from warplens.analysis.intervals import Cover
from warplens.analysis.once import once
from warplens.rules.hosts import numbers

if TYPE_CHECKING:
    from warplens.report import Report, Selection

# The work had been launched, and waited for something else than the host: no call that the host leaves out makes it begin sooner.
_HELD = ("unknown", "dependency", "collective wait", "head", "tail", "earlier work")
Held = Mapping[tuple[int, int], Cover]


@once
def held(report: Report, selection: Selection) -> Held:
    """Return when GPUs (process, device) did nothing although their next work had been launched."""
    rows = idle(report, selection)
    rows = rows.filter(pc.is_in(pc.cast(rows.column("cause"), pa.string()), value_set=pa.array(_HELD)))
    process, device, start, end = (numbers(rows, name) for name in ("process", "device", "start", "end"))
    return {
        (one, gpu): Cover(start[mine], end[mine])
        for one, gpu in set(zip(process.tolist(), device.tolist(), strict=True))
        if (mine := np.asarray((process == one) & (device == gpu))).any()
    }
