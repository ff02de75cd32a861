"""The program waits for network replies, one at a time.

## What it looks for
Calls of one thread that connect a socket, send or receive, and last 1 ms or more. There must be at
least five, and together, without the longest, they must take more than 5 % of the judged time. They
count inside NVTX ranges. If there is a GPU, they count on the thread that launches or runs the
steps, while a GPU was idle. Needs the calls of the C library (`-t osrt`).

## Why it costs time
A reply needs its travel time. A thread that waits for each reply before its next request pays that
time per request, at any bandwidth.

## What to do
Send requests ahead and collect the replies later, request many items at once, use several
connections or asyncio, or cache replies. If a tracker or logger sends metrics in the loop, let a
separate thread do that.

## When it does not apply
If the thread's task is to wait, as in a server, and its NVTX range only says so. If the next
request depends on the reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.model.words import counted, duration
from warplens.rules.base import Finding
from warplens.rules.blocking import blocked
from warplens.rules.hosts import capital

if TYPE_CHECKING:
    from warplens.report import Report, Selection

LINK = "https://docs.python.org/3/library/asyncio-stream.html"
_TALK = (
    "(\"group\" = 'socket' AND regexp_full_match(name::VARCHAR, 'recv.*|send.*|connect|getaddrinfo|gethostby.*')) OR "
    "(regexp_full_match(name::VARCHAR, '(p?readv?|p?writev?)(64)?(v2)?') AND regexp_matches(target::VARCHAR, '^(socket|unix)'))"
)


def check(
    report: Report, selection: Selection, *, shortest: float = 1, least: float = 5, times: int = 5
) -> list[Finding]:
    """Return a finding for each thread and function that waits.

    Args:
        report: the report.
        selection: the part to use.
        shortest: ms; shorter calls do not count.
        least: percent of the judged time that they must take, without the longest one.
        times: minimum number of calls.
    """
    findings = []
    for blocker in blocked(report, selection, _TALK, shortest=shortest, least=least, times=times):
        average = duration(blocker.cover.total / len(blocker.calls))
        longest = max(row["end"] - row["start"] for row in blocker.calls)
        findings.append(
            Finding(
                rule="blocked_on_sockets",
                subject=f"{blocker.name} on {blocker.thread}",
                title=f"{capital(blocker.thread)} stood still in {counted(len(blocker.calls), 'call')} of {blocker.name}, "
                f"{duration(blocker.cover.total)} in all",
                cause=f"Each waited {average} for the other end. Requests sent together would have been "
                f"answered after about {duration(longest)}.",
                fix="Send requests ahead and collect the answers later, request many items at a time, or use several connections.",
                evidence=blocker.evidence(),
                occurrences=len(blocker.calls),
                bound=blocker.bound,
                estimate=max(blocker.lost.total - longest, 0),
                confidence="medium",
                claim=blocker.lost,
            )
        )
    return findings
