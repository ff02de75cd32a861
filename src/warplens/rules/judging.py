"""Asks all rules, or some: returns their findings, the silent rules, and those that could not judge.

Rules judge the main loop where a run has one: a program that imports and compiles for 10 s and trains for 3 s will train for hours. Its
start-up is a separate finding (`startup`). Rules with `SCOPE = "run"` look at the whole run. Where the user selected a part, all rules
look at that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from warplens import catalog
from warplens.analysis.intervals import Cover
from warplens.analysis.steps.loops import MainLoop, main_loop
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.report.selection import Selection
from warplens.rules.alike import one_for_each_subject
from warplens.rules.base import SEVERITIES, Finding, graded, priced
from warplens.rules.idle_time import IdleLedger
from warplens.rules.what_if import WhatIf

if TYPE_CHECKING:
    from warplens.report import Report

_ALL = 0.8  # of the run: a loop that holds so much of it is the run
_LEAST = 200_000_000  # ns: what lies outside of the loop and is shorter matters to nobody
# Rules that say that time was lost, whatever the reason: one that names the reason has the time.
_GENERAL = {"cuda_api_sync": 1, "gpu_waits_for_cpu": 1, "gpu_gaps": 2, "gpu_time_util": 2}
FAMILY = "rules.checks"
SCHEMA = "warplens.findings/1"


@dataclass(frozen=True)
class Judgement:
    """`findings`: most serious first, then by what a fix wins.

    Last those about the same time as another (`same_as`).

    `silent`: rules without a finding. `not_judged`: rule to what it lacked.

    `begin`, `end`: the selected time, ns on the report's clock; `origin`: printed times count from here. `loop`: the part of it that
    rules looked at, but for those about the whole run; None: all of it.
    """

    findings: tuple[Finding, ...]
    silent: tuple[str, ...]
    not_judged: Mapping[str, str]
    begin: int
    end: int
    origin: int
    loop: MainLoop | None = None

    @property
    def distinct(self) -> tuple[Finding, ...]:
        """The findings without those that are about the same time as another one."""
        return tuple(finding for finding in self.findings if finding.same_as is None)

    @property
    def scope(self) -> str:
        """The judged time in words; empty: everything.

        `the main loop, 152 iterations of 21.4 ms each: 3.17 s of 14.9 s`.
        """
        if self.loop is None:
            return ""
        each = f"{counted(self.loop.iterations, self.loop.name or 'iteration')} of {duration(self.loop.usual)} each"
        return f"the main loop, {each}: {duration(self.loop.end - self.loop.begin)} of {duration(self.span)}"

    @property
    def span(self) -> int:
        """Length of the time that was looked at, ns."""
        return self.end - self.begin

    def as_json(self) -> dict[str, Any]:
        """Return the judgement as plain values, in the schema that docs/explain/findings.md describes."""
        return {
            "schema": SCHEMA,
            "begin_ns": self.begin - self.origin,
            "span_ns": self.span,
            "main_loop": None if self.loop is None else _loop_as_json(self.loop, self.origin),
            "findings": [_as_json(finding, self.origin) for finding in self.findings],
            "silent": list(self.silent),
            "not_judged": [{"rule": rule, "reason": reason} for rule, reason in self.not_judged.items()],
        }


def judge(
    report: Report,
    selection: Selection,
    names: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
) -> Judgement:
    """Ask the rules called `names`, or all, about the selected part of a report.

    `options`: of a rule, by its name.

    Raises UsageError for a rule that does not exist.
    """
    asked = catalog.units(FAMILY) if names is None else [catalog.find(FAMILY, name) for name in names]
    begin, end = selection.window(report) or report.span
    if end <= begin:
        nothing = dict.fromkeys((unit.id for unit in asked), f"lasts no time{selection.place(report)}.")
        return Judgement((), (), nothing, begin=begin, end=end, origin=report.origin)
    findings: list[Finding] = []
    silent, not_judged = [], {}
    modules = {unit.id: unit.load() for unit in asked}
    scopes = {id_: getattr(module, "SCOPE", None) for id_, module in modules.items()}
    loop = judged_loop(report, selection) if any(scope != "run" for scope in scopes.values()) else None
    inner = (
        selection if loop is None else Selection(time=(loop.begin - report.origin, loop.end - report.origin))
    )
    engines: dict[Selection, WhatIf] = {}
    idle_causes = {id_: getattr(module, "IDLE", ()) for id_, module in modules.items()}
    ledger = IdleLedger.of(report, inner)
    for unit in asked:
        scope, looked_at = (
            (selection, end - begin)
            if loop is None or scopes[unit.id] == "run"
            else (inner, loop.end - loop.begin)
        )
        try:
            own = modules[unit.id].check(report, scope, **(options or {}).get(unit.id, {}))
        except MissingData as missing:
            not_judged[unit.id] = str(missing)
            continue
        if not own:
            silent.append(unit.id)
            continue
        constants = {
            "link": modules[unit.id].LINK,
            "wrong_when": " ".join(unit.sections["When it does not apply"].split()),
        }
        engine = engines.setdefault(scope, WhatIf(report, scope))
        priced_own = [ledger.cut(_priced_again(finding, engine), idle_causes[unit.id]) for finding in own]
        for finding in one_for_each_subject(report, priced_own):
            empty = {name: text for name, text in constants.items() if not getattr(finding, name)}
            finding = replace(finding, severity=graded(finding, looked_at), within=looked_at, **empty)
            findings.append(replace(finding, wrong_when=f"Does not apply i{finding.wrong_when[1:]}"))  # If …
    ordered = sorted(marked_repeats(findings), key=_weight)
    return Judgement(
        tuple(
            finding if finding.same_as else ledger.share(finding, idle_causes[finding.rule])
            for finding in ordered
        ),
        tuple(silent),
        not_judged,
        begin=begin,
        end=end,
        origin=report.origin,
        loop=loop,
    )


def _priced_again(finding: Finding, engine: WhatIf) -> Finding:
    """Return the finding with an estimate of the run without its cost, or with the reason why that is not known."""
    if finding.bound is None:
        return finding
    if finding.without is None:
        return replace(finding, priced_by="interval: the graph of calls and GPU work does not have this cost")
    saving = engine.saving(finding.without)
    if isinstance(saving, str):
        return replace(finding, priced_by=f"interval: {saving}")
    return replace(finding, estimate=min(saving, finding.bound), priced_by="what-if")


def judged_loop(report: Report, selection: Selection) -> MainLoop | None:
    """Return the main loop if rules shall look at that alone.

    Not where a part was selected, nor where nearly all of the run is loop.
    """
    if selection != Selection() or report.windowed:
        return None
    loop = main_loop(report, selection)
    begin, end = report.span
    if loop is None:
        return None
    outside = end - begin - (loop.end - loop.begin)
    return loop if outside > max((1 - _ALL) * (end - begin), _LEAST) else None


def marked_repeats(findings: Sequence[Finding]) -> list[Finding]:
    """Set `same_as` in findings that repeat others: they are about the same time and save less.

    A finding repeats others when these claim four fifths of its time. Savings stay as they are: each is what its fix alone
    wins. A program whose host computes for 7 ms and then waits for 4 ms in a copy can win either.
    """
    result = [finding for finding in findings if finding.claim is None]
    owners: list[tuple[str, Cover]] = []
    taken: list[
        Cover
    ] = []  # without what the others have; each is longer than the next, so that few are united again
    for finding in sorted((finding for finding in findings if finding.claim is not None), key=_by_saving):
        claim = finding.claim
        assert claim is not None
        rest = claim
        for cover in taken:
            rest = rest.without(cover)
        if owners and rest.total * 5 < claim.total:
            result.append(
                replace(finding, same_as=max(owners, key=lambda owner: owner[1].both(claim).total)[0])
            )
            continue
        owners.append((finding.rule, claim))
        taken.append(rest)
        while len(taken) > 1 and len(taken[-2].start) <= len(taken[-1].start):
            last, before = taken.pop(), taken.pop()
            taken.append(
                Cover(np.concatenate((before.start, last.start)), np.concatenate((before.end, last.end)))
            )
        result.append(finding)
    return result


def _by_saving(finding: Finding) -> tuple[int, bool, int, int, str]:
    return (
        _GENERAL.get(finding.rule, 0),
        finding.estimate is None,
        -(priced(finding) or 0),
        SEVERITIES.index(finding.severity or "info"),
        finding.rule,
    )


def _weight(finding: Finding) -> tuple[bool, int, bool, int, int, str, str]:
    return (
        finding.same_as is not None,
        SEVERITIES.index(finding.severity or "info"),
        finding.estimate is None,
        -(priced(finding) or 0),
        -(finding.bound or 0),
        finding.rule,
        finding.subject,
    )


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
        "within_ns": finding.within,
        "same_as": finding.same_as,
        "title": finding.title,
        "bound_ns": finding.bound,
        "estimate_ns": finding.estimate,
        "priced_by": finding.priced_by,
        "idle": [asdict(share) for share in finding.idle],
        "shared_ns": finding.shared,
        "occurrences": finding.occurrences,
        "confidence": finding.confidence,
        "cause": finding.cause,
        "fix": finding.fix,
        "link": finding.link,
        "wrong_when": finding.wrong_when,
        "evidence": evidence,
    }


def _loop_as_json(loop: MainLoop, origin: int) -> dict[str, Any]:
    return {
        "begin_ns": loop.begin - origin,
        "span_ns": loop.end - loop.begin,
        "iterations": loop.iterations,
        "usual_ns": loop.usual,
        "name": loop.name,
    }
