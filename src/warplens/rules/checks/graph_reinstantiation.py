"""CUDA graphs that are instantiated again instead of being relaunched.

## What it looks for
Calls of `cudaGraphInstantiate` after the first launch of a graph in the process: at least five,
with at most three graph launches for each.

## Why it costs time
Instantiating a graph takes the host about 10 us per node, more than launching the kernels one by
one. It pays off when the graph is launched many times. During the call the host launches nothing,
and the GPU becomes idle.

## What to do
Capture once, and launch the same executable graph in each step, with inputs copied into the same
memory. If parameters or shapes of few kernels change, update the graph (`cudaGraphExecUpdate`,
`cudaGraphExecKernelNodeSetParams`). In PyTorch, fix or bucket the shapes: with
`torch.compile(mode="reduce-overhead")` each new shape is a new graph (use `mark_dynamic` or
padding). `torch._logging.set_logs(cudagraphs=True)` shows them.

## When it does not apply
If the recording shows only the warm-up, which creates a graph for each batch size and launches it
thousands of times later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.model.words import counted, duration
from warplens.rules.base import Finding
from warplens.rules.gpus import gpus, span
from warplens.rules.host_calls import calls, cost, evidence, needed
from warplens.rules.idle_time import held
from warplens.rules.lines import located

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#updating-instantiated-graphs"
IDLE = ("host-bound", "head")


def check(
    report: Report,
    selection: Selection,
    *,
    rows: int = 50,
    fewest: int = 5,
    launches: float = 3,
    least: float = 0.5,
) -> list[Finding]:
    """Return a finding where that costs time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of calls kept as evidence.
        fewest: minimum number of calls after the first launch of a graph.
        launches: maximum number of graph launches per call for graphs that count as not reused.
        least: percent of the judged time that they must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    graph_calls = calls(
        report, selection, "regexp_matches(a.name, '^(cuda|cu|hip)Graph(Instantiate|Launch)')"
    )
    launch = np.array(["Launch" in name for name in graph_calls.name], bool)
    mine = np.zeros(len(graph_calls), bool)
    for process in np.unique(graph_calls.process).tolist():
        own = graph_calls.process == process
        behind = own & (np.cumsum(own & launch) > 0)
        made = int((behind & ~launch).sum())
        if made >= fewest and int((behind & launch).sum()) <= launches * made:
            mine |= behind & ~launch
    if not mine.any():
        return []
    made_only, number = graph_calls.of(~launch), int(mine.sum())
    spent = cost(made_only, devices, mine[~launch], held=held(report, selection))
    if spent.bound == 0 or spent.bound < span(report, selection) * least / 100:
        return []
    length = int((graph_calls.end - graph_calls.start)[mine].sum())
    many = f"{int(launch.sum()):,} {'launch' if launch.sum() == 1 else 'launches'}"
    return [
        Finding(
            rule="graph_reinstantiation",
            subject="CUDA graphs",
            title=f"CUDA graphs were instantiated again {counted(number, 'time')} for {many}",
            cause=f"The host spent {duration(length)} on instantiating graphs after the first had been "
            f"launched, {duration(length / number)} "
            f"each, although few launches used them; the GPU was idle for {duration(spent.estimate)} "
            "because of it.",
            fix="Capture once and launch the same executable graph; update it if parameters change "
            "(cudaGraphExecUpdate); pad or bucket "
            "shapes that change.",
            evidence=located(report, evidence(made_only, spent, min(rows, number))),
            occurrences=number,
            bound=spent.bound,
            estimate=spent.estimate,
            confidence="medium",
        )
    ]
