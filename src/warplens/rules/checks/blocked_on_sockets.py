"""The program waits for network replies, one at a time.

## What it looks for
Calls that receive from, send to or connect a socket on one thread and lasted 1 ms or more, at least five of them, and together, the
longest aside, more than 5 % of the time that is looked at. Within NVTX ranges; where there is a GPU: on the thread that launches, or
steps, while a GPU had nothing to do. Needs the calls of the C library (`-t osrt`).

## Why it costs time
An answer needs its time to travel. A thread that waits for each answer before its next request pays
that time per request, at any bandwidth.

## What to do
Send the questions ahead and collect the answers later, ask for many things in one question, use several connections or asyncio, or keep
answers. Where a tracker or logger sends its metrics in the loop: let a separate thread do that.

## When it does not apply
If a thread is there to wait, such as a server's, and its NVTX range only says so. If the next question depends on the answer.
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
        selection: which part of it.
        shortest: calls count that last so long, ms.
        least: percent of the time looked at that they must take, without the longest one.
        times: how many there must be.
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
