"""Framework Operation Summary.

## What it shows
Host time and GPU time of framework operations (`aten::mm`, …): one row per operation; with
`:shapes`, one per operation and input shapes.

## Columns
- Time (%): the row's share of the GPU Self of all rows; of CPU Self if no operation launched
  anything.
- GPU Self (ns): GPU time of work that the operation itself launched. GPU Total (ns): including the
  operations inside it.
- Launches: kernels, copies, memsets and graphs that the operation itself launched. If there are
  none, these three columns are left out.
- Calls: number of calls. CPU Self (ns): without the operations inside. CPU Total (ns): with them;
  an operation inside one of the same name counts once.
- Host, Rank, PID: each is shown only if rows differ in it. Op: the name. Shapes: with `:shapes`.

## How it is computed
From the table `ops`. A launch belongs to the innermost operation around the start of its call, on
the call's thread. GPU times are unions: work that overlaps on one GPU counts once; several GPUs of
a process are summed. With a filter, operations that overlap the selected time count in full. The
largest GPU Self comes first.

## Traps
- GPU Total and CPU Total do not add up: an outer operation includes its inner operations.
- CPU time is the duration of the call. It includes waiting for the GPU, as in `aten::item`.
- Work that was launched outside of all operations is missing; cuda_gpu_kern_sum has everything.
- All work of a graph belongs to the operation that launched the graph.
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
    """Return the summary; raises MissingData if no operation was recorded.

    Args:
        report: the report.
        selection: the part to use.
        shapes: one row for each combination of input shapes.
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
