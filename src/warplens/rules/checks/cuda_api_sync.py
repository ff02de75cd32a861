"""Calls that block the host until the GPU has finished the issued work.

## What it looks for
`cudaDeviceSynchronize` and `cudaStreamSynchronize`, and the same functions of the driver and of
HIP. nsys's rule of this name lists the first two. If calls repeat in one place of the program,
`unneeded_sync` names that place, and this rule adds one line below it.

## Why it costs time
The wait itself is not lost: the GPU works during it. But the host launches nothing until the call
returns, and then the GPU is idle until the next launch arrives. That idle time is the cost, not the
length of the call.

## What to do
Remove waits that only measure or debug. Let streams wait for each other (`cudaStreamWaitEvent`),
and let the host wait for an event as late as possible. In PyTorch these calls hide in `.item()`,
`.cpu()`, `.nonzero()`, `if tensor:`, `print(tensor)` and `torch.cuda.synchronize()`; the rule
`unneeded_sync` names their places in the program.

## When it does not apply
If the host needs a result before it can continue. If the host only waits for something else
afterwards.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.model.words import counted, duration
from warplens.rules.base import Finding, Without
from warplens.rules.gpus import gpus, span
from warplens.rules.host_calls import DEVICE_WAITS, STREAM_WAITS, calls, cost, evidence, named, needed
from warplens.rules.idle_time import held
from warplens.rules.lines import located

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.nvidia.com/cuda/cuda-c-best-practices-guide/index.html#asynchronous-and-overlapping-transfers-with-computation"
IDLE = ("sync-bound",)


def check(report: Report, selection: Selection, *, rows: int = 50, least: float = 0.5) -> list[Finding]:
    """Return a finding for each function whose calls cost time.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of calls kept as evidence.
        least: percent of the judged time that they must be able to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    synchronizing = calls(report, selection, named(*DEVICE_WAITS, *STREAM_WAITS))
    findings = []
    for name in np.unique(synchronizing.name.astype(str)).tolist():
        mine = np.asarray(synchronizing.name == name)
        spent = cost(synchronizing, devices, mine, computing=True, held=held(report, selection))
        if spent.bound == 0 or spent.bound < span(report, selection) * least / 100:
            continue
        number = int(mine.sum())
        waited = duration(int((synchronizing.end - synchronizing.start)[mine].sum()))
        findings.append(
            Finding(
                rule="cuda_api_sync",
                subject=name,
                title=f"{counted(number, 'call')} of {name} made the host wait {waited}",
                cause=f"While it waits the host launches nothing. After these calls the GPU had nothing to do for "
                f"{duration(spent.estimate)} that the host could have used to launch.",
                fix="Leave out waits that only measure or debug; let streams wait for events instead of "
                "the host; wait as late as possible. "
                "The rule unneeded_sync names their lines in the program.",
                evidence=located(report, evidence(synchronizing, spent, min(rows, number))),
                occurrences=number,
                bound=spent.bound,
                estimate=spent.estimate,
                confidence="medium",
                claim=spent.claim,
                without=Without(waits=synchronizing.id[mine]),
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))
