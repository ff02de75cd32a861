"""The training waits for its data.

## What it looks for
Threads that step (NVTX ranges such as `step`) or launch kernels, and wait for the next batch: in NVTX ranges called so
(`enumerate(DataLoader)…`, `data loading`, `next batch`, `wait for batch` and the like; `load` where at least every second step has one),
or in the queues of DataLoader, `multiprocessing`
and `queue`, where calls of the C library were recorded with stacks, or Python was sampled (there, what a DataLoader without workers
loads itself counts, too). At least three times, and together, the longest aside, more than 5 %
of the time from the first to the last. Where no thread of the run steps or launches, a main thread counts that computes between its waits
while other threads or processes provide the data. Workers of pools, DataLoader's among them, and what coordinates them wait for work:
they never count.

## Why it costs time
The step cannot begin without its data. While it waits, the GPU finishes what it has and then has nothing to do.

## What to do
More workers (`num_workers`) that read and decode ahead (`prefetch_factor`, `persistent_workers=True`), `pin_memory=True`; cheaper
decoding, or decoding on the GPU (DALI, nvImageCodec); fewer and larger files; keep what fits into memory. In the main process
(`num_workers=0`) loading cannot overlap with anything.

## When it does not apply
If the first batch of each epoch is what takes long: then the workers' start is the cost (`persistent_workers`). If a range with
such a name holds more than loading. If a GPU still has work while the thread waits, nothing is lost: that part is not in the estimate.
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
        selection: which part of it.
        least: percent of the time, from the first to the last wait, that they must take.
        times: how many waits there must be.
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
                fix="Load ahead: more workers, with prefetching; make loading cheaper; keep what is needed again.",
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
