"""The finding about copies and memsets that block the host: the calls and their cost.

Each rule words it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from warplens.model.words import duration
from warplens.rules.base import Finding
from warplens.rules.gpus import gpus, span
from warplens.rules.host_calls import Cost, HostCalls, Slower, calls, cost, evidence
from warplens.rules.idle_time import held
from warplens.rules.lines import located

if TYPE_CHECKING:
    from warplens.report import Report, Selection


def blocked(
    report: Report,
    selection: Selection,
    condition: str,
    table: str,
    words: Callable[[HostCalls, Cost], tuple[str, str, str, str, str]],
    *,
    rows: int,
    least: float,
    slower: Slower | None = None,
) -> list[Finding]:
    """Return the finding about the calls of a table that meet an SQL condition.

    None if they cost less than `least` percent.

    `words` returns rule, subject, title (how long the host waited is put behind it), cause and fix. `slower`: as for `cost`.
    """
    whole = span(report, selection)
    blocking = calls(report, selection, condition, copies=table)
    spent = cost(blocking, gpus(report, selection), slower=slower, held=held(report, selection))
    if spent.bound == 0 or spent.bound < whole * least / 100:
        return []
    rule, subject, title, cause, fix = words(blocking, spent)
    title = f"{title} made the host wait {duration(int((blocking.end - blocking.start).sum()))}"
    rows_kept = located(report, evidence(blocking, spent, rows))
    return [
        Finding(
            rule=rule,
            subject=subject,
            title=title,
            cause=cause,
            fix=fix,
            evidence=rows_kept,
            occurrences=len(blocking),
            bound=spent.bound,
            estimate=spent.estimate,
            confidence="medium",
            claim=spent.claim,
        )
    ]
