"""The pace of a kernel over its launches and ranks: shows GPUs that are slower than others.

## What it asks
How long each launch of one kernel took on each GPU (`:name=gemm`, a part of its name; default: the
computing kernel with the greatest total of the first rank that has one), and whether a rank, a host or a
GPU is slower than the others beyond what chance explains.

## How it is computed
The launches of a GPU are numbered in order of start. If `:name=` fits several kernels, those of all count.
The comparison is that of `nvtx_pace`.

## Traps
Ranks that do different work launch a kernel with different sizes: then a rank is slower by design. A
kernel of a collective waits for other ranks: the rank with the *shortest* one is late.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu import kernel_classes
from warplens.errors import MissingData
from warplens.recipes import pace
from warplens.recipes.base import REPORT, Answer, Summary
from warplens.report import Report

_KERNELS = 8  # of one report, that may be the one that is compared


def part(report: Report, *, name: str = "") -> Summary:
    """Return the launches of the kernel in one report.

    Args:
        report: one rank's.
        name: part of the kernel's name; default: the computing kernel that took longest.
    """
    rows = report.table("kernels", ["process", "device", "name", "start", "end"]).drop_null()
    names = rows.column("name").cast(pa.string())
    rows = rows.set_column(2, "name", names)
    rows = rows.filter(
        pc.match_substring(names, name)
        if name
        else pc.not_equal(kernel_classes.classes(names).cast(pa.string()), "communication")
    )
    if not rows.num_rows:
        raise MissingData(
            f"does not contain a kernel with {name!r} in its name." if name else "does not contain kernels."
        )
    if name:
        rows = _numbered(rows.set_column(2, "name", pa.repeat(name, rows.num_rows)))
    else:
        length = pc.subtract(rows.column("end"), rows.column("start"))
        totals = rows.append_column("length", length).group_by("name").aggregate([("length", "sum")])
        totals = totals.sort_by([("length_sum", "descending"), ("name", "ascending")]).slice(0, _KERNELS)
        chosen = totals.column("name")
        rows = pa.concat_tables(
            [_numbered(rows.filter(pc.equal(rows.column("name"), one))) for one in chosen.to_pylist()]
        )
    return {"instances": pace.instances(report, rows)}


def answer(summary: Summary, *, name: str = "") -> Answer:
    """Compare the GPUs. MissingData if no launch has two of them."""
    rows = summary["instances"]
    first = rows.filter(pc.equal(rows.column(REPORT), pc.min(rows.column(REPORT))))
    chosen = first.column("name")[0].as_py()
    return pace.compared(rows.filter(pc.equal(rows.column("name"), chosen)), f"Kernel {chosen}")


def _numbered(rows: pa.Table) -> pa.Table:
    """Return rows of one kernel in order of start, each with its number on its GPU."""
    rows = rows.sort_by([("process", "ascending"), ("device", "ascending"), ("start", "ascending")])
    process, device = (rows.column(name).to_numpy() for name in ("process", "device"))
    begins = np.append(True, (np.diff(process) != 0) | (np.diff(device) != 0))
    place = np.arange(rows.num_rows)
    since = np.maximum.accumulate(np.where(begins, place, 0))
    return rows.append_column("iteration", pa.array(place - since, pa.int64()))
