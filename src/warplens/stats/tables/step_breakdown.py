"""Training Step Breakdown.

## What it shows
Parts of the training steps: how long the host loads data, runs the forward and backward pass and
the optimizer, communicates, and waits for the GPU; and what the GPU does in each part. `:steps`
prints one row per step.

## Columns
- Part: `step` is the whole. Time (%), Total Time (ns): host time. Parts do not overlap and add up
  to the step.
- Steps: number of steps. Avg, Med, P95, Min, Max (ns): time of the part per step.
- GPU Compute, GPU Comm, GPU Memory, GPU Idle (ns): what the process's GPUs did during the part;
  these four add up to Total Time.
- GPU Launched (ns): GPU time of work that was launched in the part, whenever it ran.
- With `:steps`: Step (from 0), Name, Start and Duration (ns), one column per part, then those of
  the GPU.
- Host, Rank, PID: each is shown only if rows differ in it.

## How it is computed
Steps are the ranges named by `:step=NAME`. By default they are the first of these that a process
has:

1. ranges `ProfilerStep#N`;
2. repeating ranges called `step`, `train_step`, `iteration`, `batch` or similar: those with the
   largest total, the outermost;
3. the time between two fetches of PyTorch's data loader, if it contains a step of the optimizer.

A moment belongs to the part of the innermost of these on the step's thread: ranges whose name
matches, operations of the framework's backward pass, calls of CUDA that wait. These names match;
`:data=NAME`, `:forward=NAME`, … add yours:

- `data`: `dataloader`, `enumerate(DataLoader)…`, `load_batch`
- `forward`: a word `forward`
- `backward`: a word `backward`, `autograd::engine…`
- `optimizer`: `Optimizer.step#…`, `zero_grad`
- `communication`: NCCL's ranges, `c10d::…`, `all_reduce`

Without a range for the forward pass, operations of the framework before the first one of the
backward pass count as forward. If the step's thread is in none of these, a backward pass on another
thread counts. Time between two stretches of one part belongs to that part, unless it is a wait. All
other time is `other`.

If operations overlap on the GPUs, compute counts first, then communication, then copies.

## Traps
- The GPU runs behind the host: its work during `forward` may have been launched in the step before.
  GPU Launched does not have this shift.
- A part without GPU work is harmless if the GPU is busy with earlier work: check GPU Idle.
- Time between two steps belongs to no step.
- The first steps compile, tune and fill caches: `:skip=3` leaves out three.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.steps.names import NAMED, PARTS
from warplens.analysis.steps.parts import STATES, Parts, parts
from warplens.analysis.steps.steps import steps as find_steps
from warplens.analysis.steps.unnamed import BY_OPTIMIZER
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted
from warplens.stats.base import noted
from warplens.stats.places import places

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_STATES = ("GPU Compute (ns)", "GPU Comm (ns)", "GPU Memory (ns)", "GPU Idle (ns)")


def table(
    report: Report,
    selection: Selection,
    *,
    steps: bool = False,
    step: str = "",
    skip: int = 0,
    data: str = "",
    forward: str = "",
    backward: str = "",
    optimizer: str = "",
    communication: str = "",
) -> pa.Table:
    """Return the breakdown; raises MissingData if there are no steps.

    Args:
        report: the report.
        selection: steps that overlap it count in full.
        steps: print one row per step.
        step: name of the ranges that are steps.
        skip: number of steps to leave out at the start of each process.
        data: name of a range that loads data.
        forward: name of a range of the forward pass.
        backward: name of a range of the backward pass.
        optimizer: name of a range of the optimizer.
        communication: name of a communication range.
    """
    chosen = find_steps(report, selection, step or None)
    chosen = chosen.filter(pc.greater_equal(chosen.column("index"), skip))
    if not chosen.num_rows:
        raise MissingData(
            f"does not contain training steps after the first {skip:,}{selection.place(report)}."
        )
    given = zip((data, forward, backward, optimizer, communication), NAMED, strict=True)
    divided = parts(report, chosen, {name: part for name, part in given if name})
    names = sorted(set(chosen.column("name").to_pylist()))
    called = names[0] if len(names) == 1 else f"{names[0]} … {names[-1]}"
    note = f"{counted(chosen.num_rows, 'step')}: ranges called {called}."
    if names == [BY_OPTIMIZER]:
        note = f"{counted(chosen.num_rows, 'step')}: each has a step of PyTorch's optimizer, and begins where its data is fetched."
    without = "" if divided.gpu else "No GPU work was recorded in these processes."
    return noted(_each(report, divided) if steps else _summed(report, divided), note, without)


def _each(report: Report, divided: Parts) -> pa.Table:
    start, end = (divided.steps.column(name) for name in ("start", "end"))
    columns = {
        "Step": divided.steps.column("index"),
        "Name": divided.steps.column("name"),
        "Start (ns)": pc.subtract(start, report.origin),
        "Duration (ns)": pc.subtract(end, start),
        **{
            f"{part.capitalize()} (ns)": pa.array(divided.time[:, place].sum(axis=1))
            for place, part in enumerate(PARTS)
        },
        **_of_gpus(divided, divided.time.sum(axis=1), divided.launched.sum(axis=1)),
        **places(report, divided.steps.column("process")),
    }
    return pa.table(columns)


def _summed(report: Report, divided: Parts) -> pa.Table:
    processes = divided.steps.column("process").to_numpy()
    rows = []
    for process in np.unique(processes).tolist():
        own = processes == process
        time, launched = divided.time[own], divided.launched[own]
        whole = time.sum(axis=1)
        rows += [
            _row(divided, process, "step", time=whole, launched=launched.sum(axis=1), whole=int(whole.sum()))
        ]
        rows += [
            _row(
                divided,
                process,
                part,
                time=time[:, place],
                launched=launched[:, place],
                whole=int(whole.sum()),
            )
            for place, part in enumerate(PARTS)
            if time[:, place].any() or launched[:, place].any()
        ]
    kinds = {"process": pa.int64(), "Part": pa.string(), "Time (%)": pa.float64(), "Steps": pa.int64()}
    floats = {"Avg (ns)", "Med (ns)", "P95 (ns)"}
    schema = pa.schema(
        [(name, kinds.get(name, pa.float64() if name in floats else pa.int64())) for name in rows[0]]
    )
    made = pa.Table.from_pylist(rows, schema)
    return pa.table(
        {
            **{name: made.column(name) for name in made.column_names[1:]},
            **places(report, made.column("process")),
        }
    )


def _row(
    divided: Parts, process: int, part: str, time: Int64Array, launched: Int64Array, whole: int
) -> dict[str, object]:
    """`time[step, state]`, `launched[step]`: those of one part."""
    spent = time.sum(axis=1)
    total = int(spent.sum())
    return {
        "process": process,
        "Part": part,
        "Time (%)": 100 * total / (whole or 1),
        "Total Time (ns)": total,
        "Steps": len(spent),
        "Avg (ns)": float(spent.mean()),
        "Med (ns)": float(np.median(spent)),
        "P95 (ns)": float(np.percentile(spent, 95)),
        "Min (ns)": int(spent.min()),
        "Max (ns)": int(spent.max()),
        **{
            name: column[0].as_py()
            for name, column in _of_gpus(divided, time.sum(axis=0)[None], launched.sum()[None]).items()
        },
    }


def _of_gpus(divided: Parts, time: Int64Array, launched: Int64Array) -> dict[str, pa.Array]:
    """Columns of `time[row, state]` and `launched[row]`; none where no GPU was recorded."""
    if not divided.gpu:
        return {}
    columns = {
        name: pa.array(time[:, place]) for name, place in zip(_STATES, range(len(STATES)), strict=True)
    }
    return {**columns, "GPU Launched (ns)": pa.array(launched)}
