"""Load Imbalance inside Kernels.

## What it shows
How evenly each launch that recorded regions kept the SMs busy: waves of blocks, the longest block,
and the tail in which some SMs were idle while others still worked.

## Columns
- Launch: id in `intrakernel_launches`. Start (ns): time since the start of the report. Uncertainty
  (ns): possible error of Start. Duration (ns): from the first begin to the last end.
- CTAs, SMs: recorded blocks, and multiprocessors that they ran on. CTAs/SM: most blocks on one SM
  at once.
- Waves: CTAs / (SMs x CTAs/SM). 2.25 means that the third wave was a quarter full. Last Wave (%):
  how full the last wave was.
- CTA Avg, CTA Max (ns), CTA Max/Avg: duration of a block; a ratio of 1.0 is even.
- SM Busy Avg (ns), SM Max/Avg: time in which an SM had any block; a ratio of 1.0 is even.
- Tail (ns), Tail (%): from when the first SM ran out of work to the end, and as a share of
  Duration.
- Lost (ns), Lost (%): idle time at the end, averaged over the SMs. A launch that ended on all SMs
  at once would save it.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it. Kernel: as in
  intrakernel_sum.

## How it is computed
A block lasts from the first begin to the last end of its recording warps, on the SM where the first
one began. The launch that lost most comes first. With a filter, launches that overlap the selected
time.

## Traps
- If only some blocks were recorded (`sample_blocks`, buffers that were too small), waves, tail and
  loss are unknown and empty.
- Only SMs that ran a block count: a grid smaller than the GPU looks even.
- Begin and end are those of the recorder: work of the kernel before and after is not seen.
- Two blocks on one SM share it, and a block that is alone runs faster: a half empty SM loses less
  than half.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.intrakernel.balance import balance, ctas
from warplens.analysis.intrakernel.launches import launches, units
from warplens.stats.base import noted
from warplens.stats.intrakernel import exactness, located, missing, names

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the launches; raises MissingData if no kernel recorded regions.

    Args:
        report: the report.
        selection: the part to use.
    """
    recorded = launches(report, selection)
    even = balance(recorded, ctas(units(report, recorded)))
    span = np.maximum(even.span, 1)
    unknown = ~even.whole
    columns = {
        "Launch": pa.array(recorded.id),
        "Start (ns)": pa.array(recorded.start - report.origin),
        "Uncertainty (ns)": pa.array(recorded.uncertainty, mask=recorded.uncertainty < 0),
        "Duration (ns)": pa.array(even.span),
        "CTAs": pa.array(even.ctas),
        "SMs": pa.array(even.sms),
        "CTAs/SM": pa.array(even.resident),
        "Waves": pa.array(even.waves, mask=unknown),
        "Last Wave (%)": pa.array(100.0 * even.last / even.capacity, mask=unknown),
        "CTA Avg (ns)": pa.array(even.cta_mean),
        "CTA Max (ns)": pa.array(even.cta_most),
        "CTA Max/Avg": pa.array(even.cta_most / np.maximum(even.cta_mean, 1)),
        "SM Busy Avg (ns)": pa.array(even.busy_mean),
        "SM Max/Avg": pa.array(even.busy_most / np.maximum(even.busy_mean, 1)),
        "Tail (ns)": pa.array(even.tail, mask=unknown),
        "Tail (%)": pa.array(100.0 * even.tail / span, mask=unknown),
        "Lost (ns)": pa.array(even.lost, mask=unknown),
        "Lost (%)": pa.array(100.0 * even.lost / span, mask=unknown),
        **located(report, recorded, recorded.group),
        "Kernel": names(recorded, recorded.group),
    }
    order = np.lexsort((recorded.id, -np.where(unknown, -1.0, even.lost)))
    return noted(pa.table(columns).take(pa.array(order)), missing(recorded), exactness(recorded))
