"""Draws a timeline and asks one rule about it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge
from warplens.testing.timeline import timeline

US = 1_000
ORIGIN = 1_000_000_000


def drawn(path: Path, picture: str, **how: Any) -> Report:
    """Return the picture as an open report; a column is 1 us."""
    timeline(path / "r.warplens", picture, **how)
    return open_report(path / "r.warplens")


def ask(report: Report, rule: str, selection: Selection | None = None, **options: Any) -> list[Finding]:
    """Return what the rule finds; it must have been judged."""
    judgement = judge(report, selection or Selection(), [rule], {rule: options})
    assert not judgement.not_judged
    return list(judgement.findings)


def not_judged(report: Report, rule: str, **options: Any) -> str:
    """Return why the rule could not judge the report; it must have said so."""
    judgement = judge(report, Selection(), [rule], {rule: options})
    assert not judgement.findings
    assert not judgement.silent
    return judgement.not_judged[rule]


def one(report: Report, rule: str, **options: Any) -> Finding:
    """Return the only finding."""
    (finding,) = ask(report, rule, **options)
    return finding


def costs(finding: Finding) -> tuple[int | None, int | None]:
    """Return its bound and estimate, us."""
    return tuple(None if cost is None else cost // US for cost in (finding.bound, finding.estimate))  # type: ignore[return-value]


def looped(step: str, times: int) -> str:
    """Return a picture whose lines are those of `step`, so many times one after the other; labels end in `__`, the number of the step."""
    lines = [line.partition("|")[::2] for line in step.splitlines() if line.strip()]
    width = max(len(track) for _, track in lines)
    return "\n".join(
        f"{head}|" + "".join(track.ljust(width).replace("__", f"{number:02}") for number in range(times))
        for head, track in lines
    )
