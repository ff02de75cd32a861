"""In-Kernel Region Summary.

## What it shows
Number and duration of each region inside a kernel: one row per kernel and tag. Kernels record
regions themselves, with `warplens.intrakernel`.

## Columns
- Unit Time (%): Total Time as a share of the time of all units (recording warps) of the row's
  kernel; with `:by=sm`, `warp` or `role`, of the units there.
- Total Time, Avg, Med, P99, Min, Max, StdDev (ns): durations of the regions. P99: 99 % of the
  regions are not longer. StdDev is the sample standard deviation (n-1), 0 for a single value.
- Count: number of regions.
- Units: number of units of the kernel in this row.
- Host, Rank, PID, Device: where it ran. Each is shown only if rows differ in it.
- Launch: id in `intrakernel_launches`, with `:by=launch`. SM, Warp, Role: with `:by=sm`,
  `:by=warp`, `:by=role`.
- Kernel: the name given to the launch, or else the kernel's name, or else the buffer's name.
- Tag: name of the region. Kind: `region`, or `asynchronous` for a region that may cross others of
  its warp.

## How it is computed
Each region counts with its full duration; all figures are exact. With a filter, launches that
overlap the selected time count with all their regions. With --window, only the part of each region
inside the window counts. SM is the one where a warp began, Warp its number in the block. Warps that
record the same tags have one role; tags with a slash name it (`producer/load`). Rows are sorted by
GPU and kernel, then by total, largest first.

## Traps
- Regions nest: `tile` includes the time of the `load` inside it, and percentages add up to more
  than 100.
- A region that only some warps record is a small share of all warps' time. `:by=warp` or `:by=role`
  show its share of their time.
- A region covers the time in which a warp issued instructions. Asynchronous work (TMA, wgmma,
  cp.async, loads) is included only where the warp waits for it.
- The GPU's timer ticks every 32 ns (Hopper and later; about 1 us before). Shorter regions read as 0
  or 32: only their mean is meaningful.
- Marks have no duration and are left out. Dropped records are missing, and a note says how many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.intrakernel.launches import launches, units
from warplens.analysis.intrakernel.roles import roles
from warplens.analysis.intrakernel.sums import region_sums
from warplens.errors import MissingData
from warplens.stats.base import noted, one_of
from warplens.stats.intrakernel import exactness, located, missing, names
from warplens.stats.sums import block

if TYPE_CHECKING:
    from warplens.report import Report, Selection

BY = ("kernel", "launch", "sm", "warp", "role")
_TITLES = {"kernel": "", "launch": "Launch", "sm": "SM", "warp": "Warp", "role": "Role"}


def table(report: Report, selection: Selection, *, by: str = "kernel") -> pa.Table:
    """Return the summary; raises MissingData if no kernel recorded regions.

    Args:
        report: the report.
        selection: the part to use.
        by: further division, beside kernel and tag: `kernel` (none), `launch`, `sm`, `warp` or
            `role`.
    """
    title = _TITLES[one_of("by", by, BY)]
    recorded = launches(report, selection)
    warps = units(report, recorded)
    group = recorded.group[warps.launch]
    known = roles(report, recorded, warps) if by == "role" else None
    apart = {
        "launch": warps.launch,
        "sm": warps.sm,
        "warp": warps.warp,
        "role": group if known is None else known.of,
    }.get(by, 0 * group)
    keys, part = np.unique(np.stack((group, apart)), axis=1, return_inverse=True)
    part = part.reshape(-1)
    if by in ("kernel", "launch"):  # known without looking for the unit of each region
        of_launch = np.full(len(recorded), -1, np.int64)
        of_launch[warps.launch] = part
        sums = region_sums(report, recorded, of_launch)
    else:
        sums = region_sums(report, recorded, part, units=warps)
    sums = sums.filter(pc.not_equal(sums.column("kind"), "mark"))
    if not sums.num_rows:
        raise MissingData(
            f"has launches that recorded inside their kernels, but no regions{selection.place(report)}."
        )
    whole = np.bincount(part, (warps.end - warps.start).astype(np.float64), keys.shape[1])
    at = sums.column("part").to_numpy()
    sums = sums.append_column("group", pa.array(keys[0][at])).append_column("apart", pa.array(keys[1][at]))
    sums = sums.sort_by(
        [
            (name, "descending" if name == "total" else "ascending")
            for name in ("group", "apart", "total", "tag", "kind")
        ]
    )
    at, group, apart = (np.asarray(sums.column(name).to_numpy()) for name in ("part", "group", "apart"))
    figures = block(sums, "Total Time (ns)", "ns", count="Count")
    columns = {"Unit Time (%)": 100.0 * sums.column("total").to_numpy() / np.where(whole > 0, whole, 1)[at]}
    for name, values in figures.items():
        columns |= {name: values} | ({"P99 (ns)": sums.column("p99")} if name.startswith("Med") else {})
    columns |= {"Units": np.bincount(part, minlength=keys.shape[1])[at], **located(report, recorded, group)}
    if known is not None:
        columns[title] = pa.array([known.names[role][1] for role in apart.tolist()], pa.string())
    elif title:
        columns[title] = pa.array(recorded.id[apart] if by == "launch" else apart)
    columns |= {"Kernel": names(recorded, group), "Tag": sums.column("tag"), "Kind": sums.column("kind")}
    return noted(pa.table(columns), missing(recorded), exactness(recorded))
