"""Findings of one rule about one subject are one: the same on several ranks, processes, threads or GPUs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.model.words import counted
from warplens.rules.base import SEVERITIES, Finding, most, priced
from warplens.rules.collectives import rank_names
from warplens.rules.hosts import threads_of_processes

if TYPE_CHECKING:
    from warplens.report import Report

_NAMED = 8
_Place = tuple[int | None, int | None, int | None]  # process, device, thread


def one_for_each_subject(report: Report, findings: Sequence[Finding]) -> list[Finding]:
    """Merge the priced findings of one rule that have one subject, in the order of the first of each.

    Several in one place stay: nothing says how they differ.
    """
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.subject, []).append(finding)
    return [finding for same in groups.values() for finding in _merged(report, same)]


def _merged(report: Report, same: list[Finding]) -> list[Finding]:
    places = [place for finding in same if (place := _place(finding)) is not None]
    if len(same) < 2 or len(set(places)) < len(same):
        return same
    order = sorted(range(len(same)), key=lambda number: _weight(same[number]))
    worst, others = same[order[0]], [places[number] for number in order[1:]]
    names = _names(report, places)
    more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
    listed = ", ".join(names[place] for place in others[:_NAMED])
    claims = [finding.claim for finding in same if finding.claim is not None]
    return [
        replace(
            worst,
            title=f"{worst.title}; the same {_where(places)}",
            cause=f"{worst.cause} The same: {listed}{more}.",
            evidence=most(row for finding in same for row in finding.evidence),
            occurrences=sum(finding.occurrences for finding in same),
            # what is lost in several places at once is lost once, so the worst says what a fix wins
            bound=max((finding.bound for finding in same if finding.bound is not None), default=None),
            estimate=max(
                (finding.estimate for finding in same if finding.estimate is not None), default=None
            ),
            claim=Cover(
                *(np.concatenate([getattr(own, edge) for own in claims]) for edge in ("start", "end"))
            )
            if claims
            else None,
        )
    ]


def _weight(finding: Finding) -> tuple[int, int]:
    return -(priced(finding) or 0), SEVERITIES.index(finding.severity or "info")


def _where(places: Sequence[_Place]) -> str:
    """Return how many places there are beside the first: `in 7 other processes`."""
    number = len(places)
    if len({process for process, _, _ in places}) == number:
        return f"in {counted(number - 1, 'other process')}"
    devices = len({(process, device) for process, device, _ in places if device is not None})
    return f"on {counted(number - 1, 'other GPU' if devices == number else 'other thread')}"


def _place(finding: Finding) -> _Place | None:
    """Return where the longest row of a finding is; None where no row says it."""
    if not finding.evidence:
        return None
    row = finding.evidence[0]
    place = (row.process, row.device, row.thread)
    return None if place == (None, None, None) else place


def _names(report: Report, places: Sequence[_Place]) -> dict[_Place, str]:
    threads = threads_of_processes(report)
    members = rank_names(report, [(process, device) for process, device, _ in places if process is not None])
    names = {}
    for process, device, thread in places:
        name = threads.get(thread) if device is None and thread is not None else None
        member = None if process is None else members[process, device]
        names[process, device, thread] = name or member or "another process"
    return names
