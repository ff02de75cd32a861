"""Slow file reads that delay the work.

## What it looks for
Reads (and `open`) of one kind on one thread that lasted 1 ms or more. There must be at least five,
and together, without the longest, they must take more than 5 % of the judged time. They count
inside NVTX ranges. If there is a GPU, they count on the thread that launches or runs the steps,
while a GPU was idle. Needs the calls of the C library (`-t osrt`).

## Why it costs time
A read from memory takes microseconds. A read that takes milliseconds waits for a disk or the
network (NFS, Lustre, object stores), and so does the thread. Such storage serves many requests at
once as fast as one, but the thread sends one at a time.

## What to do
Read ahead in other threads or processes (`num_workers` and `prefetch_factor` of a DataLoader,
`posix_fadvise`), read larger pieces, pack small files into few large ones, copy the data to a local
disk first, and keep data that is needed again.

## When it does not apply
If the data is needed once and immediately, such as the weights at start-up. If the disk is at its
limit, reading ahead hides only as much as fits beside the work.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.model.words import counted, duration
from warplens.rules.base import Finding, Without
from warplens.rules.blocking import blocked
from warplens.rules.hosts import capital

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://pytorch.org/tutorials/recipes/recipes/tuning_guide.html#enable-asynchronous-data-loading-and-augmentation"
IDLE = ("host-bound", "head")
_NAMES = "p?readv?2?(64)?(v2)?|fread(_unlocked)?|fgets|getline|open(at)?(64)?|fopen(64)?"
_READS = f"""\"group\" = 'file' AND regexp_full_match(name::VARCHAR, '{_NAMES}')
  AND NOT regexp_matches(coalesce(target::VARCHAR, ''), '^(pipe|socket|unix)')"""


def check(
    report: Report, selection: Selection, *, shortest: float = 1, least: float = 5, times: int = 5
) -> list[Finding]:
    """Return a finding for each thread and function that reads.

    Args:
        report: the report.
        selection: the part to use.
        shortest: ms; shorter reads do not count.
        least: percent of the judged time that they must take, without the longest one.
        times: minimum number of reads.
    """
    findings = []
    for blocker in blocked(report, selection, _READS, shortest=shortest, least=least, times=times):
        files = {row["target"] for row in blocker.calls if row["target"]}
        average = duration(blocker.cover.total / len(blocker.calls))
        moved = sum(row["bytes"] or 0 for row in blocker.calls)
        findings.append(
            Finding(
                rule="slow_file_reads",
                subject=f"{blocker.name} on {blocker.thread}",
                title=f"{capital(blocker.thread)} stood still in {counted(len(blocker.calls), f'slow {blocker.name}')}, "
                f"{duration(blocker.cover.total)} in all",
                cause=f"They were of {counted(len(files), 'file')} and brought {moved:,} bytes, {average} "
                "each: the storage is slow to answer.",
                fix="Read ahead in other threads or processes, in larger pieces, or from a local "
                "copy; keep data that is needed again.",
                evidence=blocker.evidence(),
                occurrences=len(blocker.calls),
                bound=blocker.bound,
                estimate=blocker.lost.total,
                confidence="medium",
                claim=blocker.lost,
                without=Without(
                    threads=frozenset(row["thread"] for row in blocker.calls), time=blocker.cover
                ),
            )
        )
    return findings
