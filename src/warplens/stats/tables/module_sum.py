"""Framework Module Summary.

## What it shows
What the modules of a model took: one row per module, by its path (`layers.0.attention`), with its forward and its backward pass.

## Columns
- Time (%): the row's share of all rows' own time: on GPUs, and on the host if no module launched anything.
- Calls: how often its forward pass ran.
- Forward (ns), Backward (ns): host time of the passes, with the modules inside. Forward Self (ns), Backward Self (ns): without them.
- GPU Forward (ns), GPU Backward (ns): for how long GPUs did what was launched in them, with the modules inside; GPU Self (ns): in both,
  without them. Left out if no module launched anything.
- Host, Rank, PID: each only where the rows differ in it. Module: the path. Class: of the module.

## How it is computed
From the ranges of the domain `torch.nn`, which `warplens.torch.name_modules(model)` and `warplens.torch.profile(with_modules=True)` record,
and the table `ops`. A function of the backward pass belongs to the module of its forward operation. GPU times are unions: what runs
side by side on one GPU counts once. With a filter, calls that overlap the selected time, whole, with all of their backward pass.

## Traps
- The totals of a module contain those of the modules inside: only the own times add up.
- The backward pass is known where operators were recorded. Gradients are accumulated into parameters outside of all modules.
- Modules that torch.compile compiled have no rows: their time is that of the module around.
- Work that was launched outside of operators, such as that of some custom kernels, is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.gpu.modules import ModuleCalls
from warplens.analysis.ranges.nested import outermost
from warplens.analysis.step_functions import NOTHING, grouped_union
from warplens.arrays import Int64Array
from warplens.report.columns import integers
from warplens.stats.base import share
from warplens.stats.places import places

if TYPE_CHECKING:
    from warplens.report import Report, Selection


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; MissingData if no modules were recorded."""
    calls = ModuleCalls.read(report, selection)
    key, kinds = _numbered(calls.rows)
    length = integers(calls.rows, "end") - integers(calls.rows, "start")
    own = length.copy()
    inside = calls.parent != NOTHING
    np.subtract.at(own, calls.parent[inside], length[inside])
    outer = np.flatnonzero(outermost(calls.parent, key))
    passed = integers(calls.backward, "end") - integers(calls.backward, "start")
    back = integers(calls.backward, "call")
    part, above = _once(*calls.around(back), key=key)
    count = kinds.num_rows
    columns = {
        "Calls": pa.array(np.bincount(key, minlength=count)),
        "Forward (ns)": _summed(key[outer], length[outer], count),
        "Forward Self (ns)": _summed(key, own, count),
        "Backward (ns)": _summed(above, passed[part], count),
        "Backward Self (ns)": _summed(key[back], passed, count),
    }
    on_host = np.asarray(columns["Forward Self (ns)"]) + np.asarray(columns["Backward Self (ns)"])
    gpu = _on_gpus(calls, key, count) if calls.launches.num_rows else {}
    first = gpu["GPU Self (ns)"] if gpu else pa.array(on_host)
    rows = pa.table(
        {
            "Time (%)": share(first),
            **columns,
            **gpu,
            **places(report, kinds.column("process")),
            "Module": kinds.column("path"),
            "Class": kinds.column("kind"),
        }
    )
    return rows.sort_by([("Time (%)", "descending"), ("Module", "ascending")])


def _numbered(rows: pa.Table) -> tuple[Int64Array, pa.Table]:
    """Return the number of each row's module, and the modules: process, path, kind."""
    columns = ["process", "path"]
    number = np.zeros(rows.num_rows, np.int64)
    for name in columns:
        codes = rows.column(name).combine_chunks().dictionary_encode(null_encoding="encode")
        number = number * (len(codes.dictionary) + 1) + np.asarray(codes.indices, np.int64)
    _, first, key = np.unique(number, return_index=True, return_inverse=True)
    return np.asarray(key, np.int64), rows.select([*columns, "kind"]).take(pa.array(first))


def _once(position: Int64Array, call: Int64Array, key: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Return pairs of a position and a module, each once: a module may be called within itself."""
    width = int(key.max(initial=0)) + 1
    pairs = np.unique(position * width + key[call])
    part, module = np.divmod(pairs, width)
    return np.asarray(part, np.int64), np.asarray(module, np.int64)


def _on_gpus(calls: ModuleCalls, key: Int64Array, count: int) -> dict[str, pa.Array]:
    call, device = integers(calls.launches, "call"), integers(calls.launches, "device")
    start, end = integers(calls.launches, "start"), integers(calls.launches, "end")
    backward = np.asarray(calls.launches.column("backward").to_numpy(zero_copy_only=False), bool)
    known, place = np.unique(device, return_inverse=True)

    def union(launch: Int64Array, module: Int64Array) -> pa.Array:
        group = module * len(known) + place[launch]
        spent = grouped_union(group, start[launch], end[launch], groups=count * len(known))
        return pa.array(spent.reshape(count, -1).sum(axis=1))

    launch, module = _once(*calls.around(call), key=key)
    behind = backward[launch]
    return {
        "GPU Forward (ns)": union(launch[~behind], module[~behind]),
        "GPU Backward (ns)": union(launch[behind], module[behind]),
        "GPU Self (ns)": union(np.arange(len(call)), key[call]),
    }


def _summed(group: Int64Array, value: Int64Array, groups: int) -> pa.Array:
    result = np.zeros(groups, np.int64)
    np.add.at(result, group, value)
    return pa.array(result)
