"""Training Step Breakdown.

## What it shows
What the steps of a training are made of: for how long their host loads data, goes forward and backward, runs the optimizer, communicates
and waits for the GPU, and what the GPU did meanwhile. With `:steps` a row for each step.

## Columns
- Part: `step` is the whole. Time (%), Total Time (ns): of the steps' host time. The parts exclude each other and add up to the step.
- Steps: how many. Avg, Med, P95, Min, Max (ns): of one step's share.
- GPU Compute, GPU Comm, GPU Memory, GPU Idle (ns): what GPUs of the process did during that time; these four add up to Total Time.
- GPU Launched (ns): for how long GPUs did what was launched in the part, whenever it ran.
- With `:steps`: Step (from 0), Name, Start and Duration (ns), a column for each part, then the GPU's.
- Host, Rank, PID: each only where the rows differ in it.

## How it is computed
Steps are the ranges `ProfilerStep#N`; else ranges called `step`, `train_step`, `iteration`, `batch` or the like that repeat: those with the
greatest total, the outermost; else `:step=NAME`; else what lies between two fetches of PyTorch's data loader and has a step of its
optimizer in it. A part is what the step's thread was in: of ranges whose name says it, operations of the
framework's backward pass, and calls of CUDA that wait, the innermost one counts. `data`: `dataloader`, `enumerate(DataLoader)…`,
`load_batch`; `forward`: a word `forward`; `backward`: a word `backward`, `autograd::engine…`; `optimizer`: `Optimizer.step#…`, `zero_grad`;
`communication`: NCCL's ranges, `c10d::…`, `all_reduce`. `:data=NAME`, `:forward=NAME`, … add names of yours. Where no range is called
forward, operations of the framework before the first one of the backward pass are. Where the thread is in nothing of that, a backward pass
on another thread counts. What lies between two stretches of one part belongs to it, unless it is a wait; all else is `other`.
Of several things on the GPUs compute counts before communication, and that before copies: what is left is not hidden by anything.

## Traps
- The GPU runs behind the host: what it does during `forward` may have been launched in the step before. GPU Launched has no such shift.
- A part without GPU work under it is no fault where the GPU is busy meanwhile: look at GPU Idle.
- Time between two steps is in none of them.
- The first steps compile, tune and fill caches: `:skip=3` leaves three out.
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
    """Return the breakdown; MissingData where there are no steps.

    Args:
        report: the report.
        selection: steps that overlap it count whole.
        steps: a row for each step.
        step: name of the ranges that are steps.
        skip: number of steps to leave out at the begin of each process.
        data: name of a range in which data is loaded.
        forward: name of a range that is the forward pass.
        backward: name of a range that is the backward pass.
        optimizer: name of a range that is the optimizer.
        communication: name of a range that communicates.
    """
    chosen = find_steps(report, selection, step or None)
    chosen = chosen.filter(pc.greater_equal(chosen.column("index"), skip))
    if not chosen.num_rows:
        raise MissingData(
            f"does not contain training steps behind the first {skip:,}{selection.place(report)}."
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
