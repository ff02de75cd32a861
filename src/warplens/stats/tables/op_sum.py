"""Framework Operation Summary.

## What it shows
What the operations of a framework (`aten::mm`, …) took on the host, and what the GPU did for them: one row per operation, with `:shapes`
per operation and shapes of its inputs.

## Columns
- Time (%): the row's share of all rows' GPU Self; of CPU Self where nothing was launched.
- GPU Self (ns): for how long GPUs did what was launched in the operation itself. GPU Total (ns): also in operations inside.
- Launches: kernels, copies, memsets and graphs in the operation itself. Without any, these three columns are left out.
- Calls: how often it ran. CPU Self (ns): without the operations inside. CPU Total (ns): with them; one in another of its kind counts once.
- Host, Rank, PID: each only where the rows differ in it. Op: the name. Shapes: with `:shapes`.

## How it is computed
From the table `ops`. A launch belongs to the innermost operation around the begin of its call, on the call's thread. GPU times are unions:
what runs side by side on one GPU counts once; several GPUs of a process are added up. With a filter, operations that overlap the selected
time, whole. The greatest GPU Self comes first.

## Traps
- GPU Total is not additive, nor is CPU Total: an outer operation has what the inner ones did.
- CPU time is that of the call: waiting for the GPU in it, as `aten::item` does, is there too.
- What was launched outside of any operation is not here; cuda_gpu_kern_sum has everything.
- Of a graph, all work belongs to the operation that launched the graph.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.operations import Operations
from warplens.analysis.step_functions import grouped_union
from warplens.arrays import Int64Array
from warplens.stats.base import noted, share
from warplens.stats.places import places

if TYPE_CHECKING:
    from warplens.report import Report, Selection

_OF_GPUS = ("GPU Self (ns)", "GPU Total (ns)", "Launches")


def table(report: Report, selection: Selection, *, shapes: bool = False) -> pa.Table:
    """Return the summary; MissingData where no operation was recorded.

    Args:
        report: the report.
        selection: which part of it.
        shapes: keep operations apart by the shapes of their inputs.
    """
    operations = Operations.read(report, selection)
    key, kinds = operations.keys(shapes)
    length, outer = operations.length(), operations.outermost(key)
    own_kind, own_launch = operations.pairs(key, inclusive=False)
    figures = {
        "GPU Self (ns)": _on_gpus(operations, own_kind, own_launch, kinds=kinds.num_rows),
        "GPU Total (ns)": _on_gpus(operations, *operations.pairs(key, inclusive=True), kinds.num_rows),
        "Launches": np.bincount(own_kind, minlength=kinds.num_rows),
        "Calls": np.bincount(key, minlength=kinds.num_rows),
        "CPU Self (ns)": _summed(key, operations.own(), kinds.num_rows),
        "CPU Total (ns)": _summed(key[outer], length[outer], kinds.num_rows),
    }
    shared = share(pa.array(figures["GPU Self (ns)" if len(own_launch) else "CPU Self (ns)"]))
    columns = {
        "Time (%)": shared,
        **{name: pa.array(values) for name, values in figures.items()},
        **places(report, kinds.column("process")),
    }
    if not len(own_launch):  # a program without a GPU: columns of zeros would only take room
        columns = {name: values for name, values in columns.items() if name not in _OF_GPUS}
    columns |= {"Op": kinds.column("name"), **({"Shapes": kinds.column("shapes")} if shapes else {})}
    first = [("GPU Self (ns)", "descending")] if len(own_launch) else []
    order = [*first, ("CPU Self (ns)", "descending"), ("Op", "ascending")]
    rows = pa.table(columns).sort_by([*order, ("Shapes", "ascending")] if shapes else order)
    unknown = shapes and pc.all(pc.is_null(rows.column("Shapes"))).as_py()
    return noted(
        rows,
        "No shapes were recorded: `--torch-inputs` has them, and torch.profiler.profile(record_shapes=True)."
        if unknown
        else "",
    )


def _on_gpus(operations: Operations, kind: Int64Array, launch: Int64Array, kinds: int) -> Int64Array:
    """For how long GPUs did what kinds launched, each GPU by itself."""
    start, end = (
        np.asarray(operations.launches.column(name).to_numpy(), np.int64)[launch] for name in ("start", "end")
    )
    device = np.asarray(
        pc.fill_null(pc.cast(operations.launches.column("device"), pa.int64()), -1).to_numpy(), np.int64
    )[launch]
    known, place = np.unique(device, return_inverse=True)
    covered = grouped_union(kind * len(known) + place, start, end, groups=kinds * len(known)).reshape(
        kinds, -1
    )
    return np.asarray(covered.sum(axis=1), np.int64)


def _summed(group: Int64Array, value: Int64Array, groups: int) -> Int64Array:
    result = np.zeros(groups, np.int64)
    np.add.at(result, group, value)
    return result
