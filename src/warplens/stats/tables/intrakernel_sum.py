"""In-Kernel Region Summary.

## What it shows
How often each region inside a kernel ran, and how long it took: one row per kernel and tag. Regions are what a kernel recorded itself
with `warplens.intrakernel`.

## Columns
- Unit Time (%): Total Time as part of the time of all units (warps that recorded) of the row's kernel; with `:by=sm`, `warp` or `role`, of
  those there.
- Total Time, Avg, Med, P99, Min, Max, StdDev (ns): of the regions. P99: the least length that 99 % of them do not exceed; StdDev is that
  of a sample (n-1), 0 for one region.
- Count: how many regions.
- Units: how many units the row's kernel has there.
- Host, Rank, PID, Device: where it ran; each only where rows differ in it.
- Launch: id in `intrakernel_launches`, with `:by=launch`. SM, Warp, Role: with `:by=sm`, `:by=warp`, `:by=role`.
- Kernel: the name given to the launch, else that of its kernel, else that of the buffer.
- Tag: the region's name. Kind: `region`, or `asynchronous` for one that may cross others of its warp.

## How it is computed
Every region counts with its whole length; all figures are exact. With a filter, launches that overlap the selected time count, with
all that is in them; with --window, the piece of each region that lies in the window. An SM is the one where a warp began, a warp is
its number in the block. Warps that record the same tags have one role; tags with a slash name it (`producer/load`). GPU by
GPU and kernel by kernel, the greatest total comes first.

## Traps
- Regions nest: `tile` holds the time of the `load` inside it, and percentages add up to more than 100.
- What only some warps record is a small part of the time of all: `:by=warp` or `:by=role` say how much it is of theirs.
- A region says when a warp issued instructions. What runs asynchronously (TMA, wgmma, cp.async, loads) is in it only where it waits.
- The GPU's timer ticks every 32 ns (Hopper and later; about 1 us before): shorter regions are 0 or 32, only their mean says something.
- Marks have no length and are left out; dropped records are missing, and a note says how many.
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
    """Return the summary; MissingData where no kernel recorded regions.

    Args:
        report: the report.
        selection: which part of it.
        by: column that divides rows further, beside kernel and tag: `kernel` (nothing), `launch`, `sm`, `warp` or `role`.
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
