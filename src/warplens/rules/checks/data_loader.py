"""The training waits for its data.

## What it looks for
Threads that run steps (NVTX ranges such as `step`) or launch kernels, and wait for the next batch.
Waits are NVTX ranges with a matching name (`enumerate(DataLoader)…`, `data loading`, `next batch`,
`wait for batch` and similar; `load` if at least every second step has one), or waits in the queues
of DataLoader, `multiprocessing` and `queue`. The queues need C library calls with stacks, or Python
samples; with samples, loading in a DataLoader without workers counts, too. There must be at least
three waits, and together, without the longest, they must take more than 5 % of the time from the
first to the last.

If no thread of the run has steps or launches, a main thread counts that computes between its waits
while other threads or processes provide the data. Worker threads of pools, including DataLoader's,
and their coordinators wait for work: they never count.

## Why it costs time
A step cannot begin without its data. While it waits, the GPU finishes its queued work and becomes
idle.

## What to do
Use more workers (`num_workers`) that load ahead (`prefetch_factor`, `persistent_workers=True`), and
`pin_memory=True`. Make decoding cheaper, or decode on the GPU (DALI, nvImageCodec). Use fewer and
larger files, and keep in memory what fits. In the main process (`num_workers=0`), loading cannot
overlap with anything.

## When it does not apply
If only the first batch of each epoch is slow: the cost is the start of the workers
(`persistent_workers`). If a range with such a name contains more than loading. If a GPU still has
work while the thread waits, that part is not in the estimate.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Finding, Without, most
from warplens.rules.hosts import capital, ceiling, idle, threads_of_processes
from warplens.rules.loading import meanwhile, waits

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://pytorch.org/docs/stable/data.html#single-and-multi-process-data-loading"
IDLE = ("host-bound", "head")


def check(report: Report, selection: Selection, *, least: float = 5, times: int = 3) -> list[Finding]:
    """Return a finding for each process whose training waits.

    Args:
        report: the report.
        selection: the part to use.
        least: percent of the time from the first to the last wait that they must take.
        times: minimum number of waits.
    """
    if not any(report.tables[table] for table in ("nvtx_ranges", "osrt", "samples")):
        raise MissingData(
            f"does not contain NVTX ranges, OS runtime data or samples of Python{selection.place(report)}."
        )
    gpu = idle(report, selection)
    findings = []
    for waiting in waits(report, selection):
        lost = waiting.cover if gpu is None else waiting.cover.both(gpu)
        longest = max(row.end - row.start for row in waiting.rows)
        span = int(waiting.cover.end[-1] - waiting.cover.start[0])
        if len(waiting.rows) < times or (min(waiting.cover.total - longest, lost.total)) * 100 < least * span:
            continue
        average = duration(waiting.cover.total / len(waiting.rows))
        cause = (
            f"In {', '.join(waiting.names[:3])} it waited {average} on average, {duration(longest)} at most."
        )
        others = meanwhile(report, selection, waiting)
        if others:
            cause += f" Meanwhile {others}."
        if gpu is not None:
            cause += f" GPUs had nothing to do for {duration(lost.total)} of it."
        name = threads_of_processes(report).get(waiting.thread, "a thread")
        findings.append(
            Finding(
                rule="data_loader",
                subject=waiting.names[0],
                title=f"{capital(name)} waited for data {counted(len(waiting.rows), 'time')}, {duration(waiting.cover.total)} in all",
                cause=cause,
                fix="Load ahead: more workers, with prefetching; make loading cheaper; keep data "
                "that is needed again.",
                evidence=most(waiting.rows),
                occurrences=len(waiting.rows),
                bound=ceiling(report, selection, waiting.cover),
                estimate=lost.total,
                confidence="high" if others or gpu is not None else "medium",
                claim=lost,
                without=Without(threads=frozenset((waiting.thread,)), time=waiting.cover),
            )
        )
    return findings
