"""The calls that launch kernels, as arrays that kernels are looked up in, and what makes them cost less."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.analysis.gpu.ops import during
from warplens.analysis.once import once
from warplens.arrays import Int64Array, positions_in

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_LONG_AGO = -(1 << 62)
_COMPILED = 0.2  # share of kernels made by Inductor from which on a program is compiled; libraries' kernels are the rest
_SINGLE = re.compile(r"^\w*Launch\w*Kernel\w*$")


@dataclass(frozen=True, eq=False)
class KernelLaunches:
    """Launches by id. `before`: when the launch before it in its thread had returned."""

    id: Int64Array
    start: Int64Array
    end: Int64Array
    before: Int64Array

    def find(self, ids: Int64Array) -> tuple[Int64Array, npt.NDArray[np.bool_]]:
        """Return for each id of a call its place, and whether it is a launch that is known."""
        return positions_in(self.id, ids)


@once
def launches(report: Report) -> KernelLaunches:
    """Return the calls that launch single kernels; those of whole graphs are none."""
    names = (
        report.sql("SELECT DISTINCT name FROM cuda_api").column(0).to_pylist()
    )  # few: tells what millions of calls are
    single = ", ".join(repr(name) for name in names if name is not None and _SINGLE.search(name))
    rows = report.sql(
        f"""SELECT id, thread, "start", "end" FROM cuda_api WHERE name IN ({single or "NULL"}) ORDER BY process, "start", id"""
    )
    ids, thread, start, end = (np.asarray(column.to_numpy(), np.int64) for column in rows.columns)
    by_thread = np.argsort(thread, kind="stable")
    before = np.full(len(ids), _LONG_AGO)
    same = thread[by_thread][1:] == thread[by_thread][:-1]
    before[by_thread[1:][same]] = end[by_thread[:-1][same]]
    order = np.argsort(ids, kind="stable")
    return KernelLaunches(ids[order], start[order], end[order], before=before[order])


def fewer_launches(report: Report, selection: Selection) -> str:
    """Return what makes launches cost less.

    Compiled code need not be compiled, and launched graphs need not become graphs.
    """
    (row,) = report.sql(
        f"""SELECT count(*) FILTER (starts_with(coalesce(name, demangled)::VARCHAR, 'triton_')) AS inductor, count(graph) AS graphs,
            count(*) AS kernels FROM kernels WHERE {during(report, selection)}"""
    ).to_pylist()
    compiled = row["inductor"] >= _COMPILED * row["kernels"]
    fuse = (
        "Use larger batches"
        if compiled
        else "Fuse (torch.compile, fused optimizers, fused attention) or use larger batches"
    )
    if report.tables["graphs"] or row["graphs"]:
        return f"{fuse}; put what is launched between the CUDA graphs into them."
    how = (
        "the code is compiled already, so torch.compile(mode='reduce-overhead')"
        if compiled
        else "torch.compile(mode='reduce-overhead')"
    )
    return f"{fuse}; or launch them all at once with CUDA graphs: {how}, torch.cuda.graphs."
