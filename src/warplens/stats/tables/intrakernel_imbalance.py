"""Load Imbalance inside Kernels.

## What it shows
How evenly each launch that recorded regions kept the SMs busy: waves of blocks, the longest block, and the tail in which some SMs
worked while others had nothing left to do.

## Columns
- Launch: id in `intrakernel_launches`. Start (ns): from the begin of the report. Uncertainty (ns): by how much all of it may be
  off there. Duration (ns): from the first begin to the last end.
- CTAs, SMs: blocks that recorded, and multiprocessors they ran on. CTAs/SM: most that one SM had at once.
- Waves: CTAs / (SMs x CTAs/SM): 2.25 says that the third wave was a quarter full. Last Wave (%): how full that was.
- CTA Avg, CTA Max (ns), CTA Max/Avg: length of a block; 1.0 is even.
- SM Busy Avg (ns), SM Max/Avg: time in which an SM had any block; 1.0 is even.
- Tail (ns), Tail (%): from when the first SM had no more to do up to the end, and as part of Duration.
- Lost (ns), Lost (%): how long SMs had no more to do, on average over the SMs: what a launch that ended everywhere at once would win.
- Host, Rank, PID, Device: where it ran; each only where rows differ in it. Kernel: as in intrakernel_sum.

## How it is computed
A block lasts from the first begin to the last end of its warps that recorded, on the SM where the first one began. The launch that lost
most comes first. With a filter, launches that overlap the selected time.

## Traps
- Where only some blocks were recorded (`sample_blocks`, buffers that were too small) waves, tails and losses are not known, and empty.
- Only SMs on which a block ran count: a grid smaller than the GPU looks even.
- Begin and end are those of the recorder: what a kernel does before and after it is not seen.
- Two blocks on an SM share it: one that is alone is faster, so a half empty SM loses less than half.
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
    """Return the launches; MissingData where no kernel recorded regions.

    Args:
        report: the report.
        selection: which part of it.
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
