"""Framework Operation Kernel Summary.

## What it shows
Kernels, copies, memsets and graphs that each framework operation (`aten::mm`, …) launched, with
number and GPU time: one row per operation and kernel.

## Columns
- Time (%): the row's share of the Total Time of all rows.
- Total Time, Avg, Med, Min, Max, StdDev (ns): durations of the kernels. StdDev is the sample
  standard deviation (n-1), 0 for a single value.
- Instances: number of launches.
- Host, Rank, PID: each is shown only if rows differ in it. Op: the operation. Shapes: shapes of its
  inputs, with `:shapes`.
- Kernel Name: the kernel's full name; with `:base` the function name alone, with `:mangled` the
  name in the binary. Copies are `[CUDA memcpy Host-to-Device]`.

## How it is computed
A kernel belongs to the innermost operation around the start of its call, on the call's thread. With
`:inclusive` it counts once for each operation name around it. With a filter, operations that
overlap the selected time, with all their kernels. The largest total comes first.

## Traps
- With `:inclusive`, totals do not add up: percentages are of a sum that counts kernels several
  times.
- Kernels of several streams may run at the same time: totals may exceed the time in which the GPU
  was busy. op_sum uses unions.
- Operations of the backward pass have separate names, such as `AddmmBackward0`, around the
  `aten::mm` that they run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.operations import Operations
from warplens.analysis.ranges.nested import figures
from warplens.errors import MissingData
from warplens.stats.base import noted, share
from warplens.stats.launches import whole_graphs
from warplens.stats.places import places
from warplens.stats.sums import block, naming

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name


def table(
    report: Report,
    selection: Selection,
    *,
    inclusive: bool = False,
    shapes: bool = False,
    base: bool = False,
    mangled: bool = False,
) -> pa.Table:
    """Return the summary; raises MissingData if no operation launched anything.

    Args:
        report: the report.
        selection: the part to use.
        inclusive: count a kernel in every operation around its launch, not only in the innermost
            one.
        shapes: one row for each combination of input shapes.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
    """
    operations = Operations.read(report, selection, naming(base, mangled))
    key, kinds = operations.keys(shapes)
    kind, launch = operations.pairs(key, inclusive=inclusive)
    if not len(launch):
        raise MissingData(
            f"does not contain GPU work that operations of a framework launched{selection.place(report)}."
        )
    kernel = operations.launches.column("kernel").combine_chunks().dictionary_encode()
    combined = pa.array(
        kind * len(kernel.dictionary) + np.asarray(kernel.indices, np.int64)[launch]
    ).dictionary_encode()
    start, end = (
        np.asarray(operations.launches.column(name).to_numpy(), np.int64)[launch] for name in ("start", "end")
    )
    rows = figures(start, end, np.asarray(combined.indices, np.int64))
    which, name = np.divmod(np.asarray(combined.dictionary, np.int64), len(kernel.dictionary))
    kinds = kinds.take(pa.array(which))
    columns = {
        "Time (%)": share(rows["total"]),
        **block(pa.table(rows), "Total Time (ns)", "ns", count="Instances"),
        **places(report, kinds.column("process")),
        "Op": kinds.column("name"),
        **({"Shapes": kinds.column("shapes")} if shapes else {}),
        "Kernel Name": kernel.dictionary.take(pa.array(name)),
    }
    order = [(name, "ascending") for name in ("Op", "Shapes", "Kernel Name") if name in columns]
    return noted(
        pa.table(columns).sort_by([("Total Time (ns)", "descending"), *order]),
        whole_graphs(report, selection),
    )
