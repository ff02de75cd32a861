"""The first steps take much longer than later steps and distort the averages.

## What it looks for
Training steps (NVTX ranges such as `step` or `iteration`, or PyTorch's `ProfilerStep#N`), at least
five. The first steps count while they take more than 1.5 times the usual length, which is the
median of the later half. They are reported if they raise the mean by more than 5 %. The finding
names the host work that took longer than usual.

## Why it costs time
The first steps load libraries, compile kernels (JIT, torch.compile, Triton), try kernels (cuDNN's
autotuning), import modules, allocate memory from the driver and fill caches. That happens once, but
figures over the whole run spread it over all steps.

## What to do
Leave the first steps out of comparisons: `--delay`, `--capture-range=nvtx`, `--filter-time`, or
PyTorch's `schedule(wait, warmup, active)`. If start-up itself matters, keep compiled kernels
(`TORCHINDUCTOR_CACHE_DIR`, `TRITON_CACHE_DIR`, `CUDA_CACHE_PATH`), and load modules eagerly if the
first requests matter (`CUDA_MODULE_LOADING=EAGER`).

## When it does not apply
If the first steps do other work, such as a longer warm-up of the data. If steps become shorter by
design.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.culprits import RANGE, UNKNOWN, filled
from warplens.analysis.steps.steps import base_name, steps
from warplens.model.words import counted, duration, percent
from warplens.rules.base import Evidence, Finding, most
from warplens.rules.hosts import numbers

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://pytorch.org/docs/stable/profiler.html#torch.profiler.schedule"
SCOPE = "run"


def check(
    report: Report, selection: Selection, *, longer: float = 1.5, least: float = 5, fewest: int = 5
) -> list[Finding]:
    """Return one finding, for the process that lost most.

    Args:
        report: the report.
        selection: the part to use.
        longer: length of a first step divided by the usual length.
        least: percent by which the mean must be too high.
        fewest: minimum number of steps.
    """
    known = steps(report, selection)
    of = numbers(known, "process")
    worst: tuple[int, int, int, pa.Table] | None = None
    for process in np.unique(of).tolist():
        own = known if (of == process).all() else known.filter(pa.array(of == process))
        if own.column("index")[0].as_py() != 0 or own.num_rows < fewest:
            continue
        spent = numbers(own, "end") - numbers(own, "start")
        usual = int(np.median(spent[len(spent) // 2 :]))
        slow = spent > longer * usual
        count = len(spent) if slow.all() else int(np.argmin(slow))
        lost = int((spent[:count] - usual).sum())
        if (
            0 < count <= len(spent) // 2
            and lost * 100 >= least * usual * len(spent)
            and (worst is None or lost > worst[0])
        ):
            worst = lost, count, usual, own
    if worst is None:
        return []
    lost, count, usual, own = worst
    name = base_name(own.column("name")[0].as_py())
    more = _more(report, own, count)
    cause = (
        f"The first {counted(count, 'step')} took {duration(lost)} more than usual ({duration(usual)} each)."
    )
    if more:
        cause += f" More than usual was spent in: {', '.join(more)}."
    mean = int((numbers(own, "end") - numbers(own, "start")).sum()) / own.num_rows
    return [
        Finding(
            rule="first_iterations",
            subject=name,
            title=f"With its first {counted(count, 'step')}, the mean of {name} is {percent(mean / usual - 1)} above what is usual",
            cause=cause,
            fix=f"Leave the first {counted(count, 'step')} out of averages and comparisons (--filter-time, --delay, --capture-range), or "
            "keep what is compiled.",
            evidence=most(
                Evidence(
                    table="nvtx_ranges",
                    id=row["range"],
                    start=row["start"],
                    end=row["end"],
                    text=row["name"],
                    process=row["process"],
                    thread=row["thread"],
                )
                for row in own.slice(0, count).to_pylist()
            ),
            occurrences=count,
            bound=lost,
            estimate=0,  # it happens once
            confidence="high" if count * 4 <= own.num_rows else "medium",
        )
    ]


def _more(report: Report, own: pa.Table, count: int) -> list[str]:
    """Return what the first steps spent more time in than the later ones do on average, most first."""
    first, later = own.slice(0, count), own.slice(own.num_rows // 2, 20)
    sums: dict[tuple[str, str], float] = {}
    for some, share in ((first, 1.0), (later, -count / later.num_rows)):
        stretches = some.select(["thread", "start", "end"]).combine_chunks()
        for row in filled(report, stretches).to_pylist():
            sums[row["kind"], row["name"]] = sums.get((row["kind"], row["name"]), 0.0) + share * row["time"]
    whole = int((numbers(first, "end") - numbers(first, "start")).sum())
    best = sorted((key for key in sums if sums[key] > 0.05 * whole), key=lambda key: -sums[key])[:4]
    return [
        f"{kind} {name} ({duration(sums[kind, name])})"
        for kind, name in best
        if kind not in (UNKNOWN,) and (kind, name) != (RANGE, own.column("name")[0].as_py())
    ]
