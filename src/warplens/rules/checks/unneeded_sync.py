"""The program waits for the GPU repeatedly, and the GPU is idle after each wait.

## What it looks for
Calls that wait for the GPU and recur in one place of the program: synchronisation of a device,
stream or event, and copies of at most 1 KB to the host that make the call wait, as `tensor.item()`
does. A place is the innermost NVTX range (or framework operation) around the call; without ranges,
the function.

## Why it costs time
While the host waits it launches nothing. When it continues, the GPU has run out of work and is idle
until the host catches up. The cost of a wait is this idle time until the next wait, at most the
time that the host waited: without the wait, the host would be ahead by that time.

## What to do
In a training loop, read losses and metrics every hundredth step, and keep them on the GPU until
then (`loss.detach()`, accumulated tensors). Avoid `torch.tensor(…, device="cuda")`, `.item()`,
`.cpu()`, `.tolist()`, `.nonzero()`, boolean masks as indices, `if tensor:`, `print(tensor)` and
`torch.cuda.synchronize()` in it. `torch.cuda.set_sync_debug_mode("warn")` names the lines. In CUDA,
let streams wait for events.

## When it does not apply
If the host must know the value to continue (a stopping criterion, sampling of the next token): a
recording cannot show that. If the host is the bottleneck anyway (`small_kernels`), fewer waits save
less than stated.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from warplens.model.words import counted, duration
from warplens.rules.base import Finding, Without
from warplens.rules.gpus import gpus, span
from warplens.rules.host_calls import (
    DEVICE_WAITS,
    EVENT_WAITS,
    STREAM_WAITS,
    HostCalls,
    calls,
    cost,
    evidence,
    named,
    needed,
)
from warplens.rules.idle_time import held
from warplens.rules.lines import called_from, located

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.pytorch.org/tutorials/recipes/recipes/tuning_guide.html#avoid-unnecessary-cpu-gpu-synchronization"
IDLE = ("sync-bound",)
_SMALL = 1024
_DETAILS = re.compile(
    r", (seq|op_id|sizes|input_op_ids) = .*", re.DOTALL
)  # what torch.autograd.profiler.emit_nvtx adds
_NUMBER = re.compile(r"(?<![^\W_])\d+(?![^\W_])")
_READS = f"m.kind = 'Device-to-Host' AND m.bytes <= {_SMALL} AND (a.name NOT ILIKE '%Async%' OR m.destination_kind = 'Pageable')"


def check(
    report: Report, selection: Selection, *, rows: int = 50, repeats: int = 3, least: float = 1.0
) -> list[Finding]:
    """Return a finding for each place in the program with such waits.

    Args:
        report: the report.
        selection: the part to use.
        rows: maximum number of waits kept as evidence.
        repeats: minimum number of waits in one place.
        least: percent of the judged time that the waits of a place must be expected to cost.
    """
    devices = gpus(report, selection)
    needed(report, selection)
    waiting = calls(
        report,
        selection,
        f"{named(*DEVICE_WAITS, *STREAM_WAITS, *EVENT_WAITS)} OR ({_READS})",
        copies="?memcpys",
    )
    names, which, number = np.unique(_places(waiting), return_inverse=True, return_counts=True)
    findings = []
    for place in np.flatnonzero(number >= repeats).tolist():
        mine = which == place
        spent = cost(waiting, devices, mine, computing=True, held=held(report, selection))
        if spent.estimate == 0 or spent.estimate < span(report, selection) * least / 100:
            continue
        functions = ", ".join(np.unique(waiting.name[mine].astype(str)).tolist())
        length = int((waiting.end - waiting.start)[mine].sum())
        where = "" if names[place] in functions else f" in {names[place]}"
        waits = evidence(waiting, spent, rows)
        worst = called_from(report, [row.id for row in waits[:1] if row.id is not None])
        findings.append(
            Finding(
                rule="unneeded_sync",
                subject=str(names[place]),
                title=f"{counted(int(number[place]), 'wait')} for the "
                f"GPU{where or f' ({functions})'} {'leaves' if number[place] == 1 else 'leave'} it idle afterwards",
                cause=f"The host stood still in {functions}{where} for {duration(length)} in all, {duration(length / number[place])} each. "
                f"When it went on, the GPU had run out of work: it did nothing for {duration(spent.estimate)} that the host could "
                f"have filled had it not waited.{''.join(f' The costliest was called from {line}.' for line in worst.values())}",
                fix="Read values from the GPU less often (every hundredth step) and keep them there until then; move small tensors to it "
                "from page-locked memory with non_blocking=True; leave out synchronize() in the loop. "
                "torch.cuda.set_sync_debug_mode('warn') names the lines.",
                evidence=located(report, waits),
                occurrences=int(number[place]),
                bound=spent.bound,
                estimate=spent.estimate,
                confidence="medium",
                claim=spent.claim,
                without=Without(waits=waiting.id[mine]),
            )
        )
    return sorted(findings, key=lambda finding: -(finding.bound or 0))


def _places(waiting: HostCalls) -> npt.NDArray[np.str_]:
    """Return the place of each call, without the number in its name.

    `step 12` and `aten::item, op_id = 4711` have one.
    """
    known: dict[str | None, str] = {
        name: _NUMBER.sub("N", _DETAILS.sub("", name))
        for name in set(waiting.place.tolist())
        if name is not None
    }
    return np.array(
        [known.get(place, name) for place, name in zip(waiting.place, waiting.name, strict=True)],
        dtype=np.str_,
    )
