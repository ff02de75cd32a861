"""Asks all rules, or some: returns their findings, the silent rules, and those that could not judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from warplens import catalog
from warplens.errors import MissingData
from warplens.rules.base import SEVERITIES, Finding, graded, priced

if TYPE_CHECKING:
    from warplens.report import Report, Selection

FAMILY = "rules.checks"
SCHEMA = "warplens.findings/1"


@dataclass(frozen=True)
class Judgement:
    """`findings`: most serious first, then most expensive. `silent`: rules without a finding. `not_judged`: rule to what it lacked.

    `begin`, `end`: the analysed time, ns on the report's clock; `origin`: printed times count from here.
    """

    findings: tuple[Finding, ...]
    silent: tuple[str, ...]
    not_judged: Mapping[str, str]
    begin: int
    end: int
    origin: int

    @property
    def span(self) -> int:
        """Length of the time that was looked at, ns."""
        return self.end - self.begin

    def as_json(self) -> dict[str, Any]:
        """Return the judgement as plain values, in the schema that docs/guide/analyze.md describes."""
        return {
            "schema": SCHEMA,
            "begin_ns": self.begin - self.origin,
            "span_ns": self.span,
            "findings": [_as_json(finding, self.origin) for finding in self.findings],
            "silent": list(self.silent),
            "not_judged": [{"rule": rule, "reason": reason} for rule, reason in self.not_judged.items()],
        }


def judge(
    report: Report, selection: Selection, names: Sequence[str] | None = None, options: Mapping[str, Mapping[str, Any]] | None = None
) -> Judgement:
    """Ask the rules called `names`, or all, about the selected part of a report; `options`: of a rule, by its name.

    Raises UsageError for a rule that does not exist.
    """
    asked = catalog.units(FAMILY) if names is None else [catalog.find(FAMILY, name) for name in names]
    begin, end = selection.window(report) or report.span
    if end <= begin:
        nothing = dict.fromkeys((unit.id for unit in asked), f"lasts no time{selection.place(report)}.")
        return Judgement((), (), nothing, begin, end, report.origin)
    findings: list[Finding] = []
    silent, not_judged = [], {}
    for unit in asked:
        try:
            own = unit.load().check(report, selection, **(options or {}).get(unit.id, {}))
        except MissingData as missing:
            not_judged[unit.id] = str(missing)
            continue
        if not own:
            silent.append(unit.id)
        constants = {"link": unit.constant("LINK"), "wrong_when": " ".join(unit.sections["When it is wrong"].split())}
        for finding in own:
            empty = {name: text for name, text in constants.items() if not getattr(finding, name)}
            findings.append(replace(finding, severity=graded(finding, end - begin), **empty))
    findings.sort(key=_weight)
    return Judgement(tuple(findings), tuple(silent), not_judged, begin, end, report.origin)


def _weight(finding: Finding) -> tuple[int, int, int, str, str]:
    return SEVERITIES.index(finding.severity or "info"), -(priced(finding) or 0), -(finding.bound or 0), finding.rule, finding.subject


def _as_json(finding: Finding, origin: int) -> dict[str, Any]:
    evidence = [
        {
            "table": row.table,
            "id": row.id,
            "start_ns": row.start - origin,
            "duration_ns": row.end - row.start,
            "process": row.process,
            "thread": row.thread,
            "device": row.device,
            "text": row.text,
            "values": dict(row.values),
        }
        for row in finding.evidence
    ]
    return {
        "rule": finding.rule,
        "subject": finding.subject,
        "severity": finding.severity,
        "title": finding.title,
        "bound_ns": finding.bound,
        "estimate_ns": finding.estimate,
        "occurrences": finding.occurrences,
        "confidence": finding.confidence,
        "cause": finding.cause,
        "fix": finding.fix,
        "link": finding.link,
        "wrong_when": finding.wrong_when,
        "evidence": evidence,
    }
