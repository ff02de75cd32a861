"""The contract of a rule: one file in `checks`, one function, a list of findings.

A rule is `rules/checks/<name>.py` with

    LINK: str                                   where the fix is explained
    IDLE: tuple[str, ...]                       optional: all that a fix wins is time in which GPUs did nothing, by these causes first
    SCOPE = "run"                               optional: judge the whole run, not only its main loop
    def check(report: Report, selection: Selection, *, opts...) -> list[Finding]

An empty list means: the rule looked, nothing applies. A report without the data raises MissingData with the words that follow "the report"
(`does not contain CUDA data.`): the rule is then *not judged*, never fine. A rule states costs by interval algebra over the rows that
it names: `bound` is time that no fix of this can win more than; `estimate` what a fix is expected to win.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report import Report, Selection

Severity = Literal["high", "medium", "low", "info"]
Confidence = Literal["high", "medium", "low"]
SEVERITIES: tuple[Severity, ...] = ("high", "medium", "low", "info")
EVIDENCE = 50  # rows that a finding names
_HIGH, _MEDIUM = 0.10, 0.02  # share of the selected time that a fix is expected to win


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """A row to jump to: `table` and `id`, its times, its label, and figures.

    `id` is null if a table has no ids; times in ns of the report's clock.
    """

    table: str
    id: int | None
    start: int
    end: int
    text: str
    process: int | None = None
    thread: int | None = None
    device: int | None = None
    values: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Without:
    """What a fix removes: the own time of `threads` in `time`, and the waits of the calls `waits` (ids of `cuda_api`)."""

    threads: frozenset[int] = frozenset()
    time: Cover = field(default_factory=lambda: Cover([], []))
    waits: Int64Array = field(default_factory=lambda: np.empty(0, np.int64))


@dataclass(frozen=True, kw_only=True)
class IdleShare:
    """What a finding has of the time (ns) in which one GPU of a process did nothing, of one cause of `gpu_utilization`."""

    process: int
    device: int
    cause: str
    ns: int


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that costs time.

    `subject` is what it is about, in words that are the same in the next recording (a kernel's name, `GPU 0`): rule and subject together
    are what `warplens diff` compares. `bound`, `estimate`: ns of the run's wall time, null if it has no cost in time. `within`: ns that
    the rule looked at, set by `judge`, and `severity`: by the share of the price in it. Only a finding without a price in time comes with
    a severity of its rule: calls that fail, memory that grows.
    `without`: what a fix removes, where a graph of the run can be worked out again without it: then `judge` makes the estimate of that,
    and `priced_by` is `what-if`; else `priced_by` says why there is only the interval from the estimate to the bound.
    `claim`: the time that a fix makes shorter; findings with the same claim are about the same thing; None: not known.
    `same_as`: the rule of an earlier finding about the same time, set by `judge`.
    `idle`: its part of the idle time of GPUs, set by `judge`: the parts of all findings add up to no more than there is. `shared`: ns of
    the estimate that findings before it win, too.
    `occurrences`: how many times; `evidence` holds the most expensive of them.
    """

    rule: str
    subject: str
    title: str
    cause: str
    fix: str
    evidence: tuple[Evidence, ...]
    occurrences: int
    bound: int | None = None
    estimate: int | None = None
    confidence: Confidence = "high"
    severity: Severity | None = None
    within: int | None = None
    claim: Cover | None = field(default=None, compare=False)
    without: Without | None = field(default=None, compare=False)
    priced_by: str = ""
    same_as: str | None = None
    idle: tuple[IdleShare, ...] = field(default=(), compare=False)
    shared: int = field(default=0, compare=False)
    link: str = ""
    wrong_when: str = ""

    def __post_init__(self) -> None:
        if self.bound is not None and self.estimate is not None and not 0 <= self.estimate <= self.bound:
            raise ValueError(
                f"{self.rule}: the estimate {self.estimate} is not between 0 and the bound {self.bound}"
            )
        if self.bound is not None and self.severity is not None and self.within is None:
            raise ValueError(f"{self.rule}: the price of a finding decides how severe it is, not the rule")
        if self.bound is None and self.estimate is not None:
            raise ValueError(f"{self.rule}: an estimate needs a bound")


class RuleCheck(Protocol):
    """What `check` in each unit is."""

    def __call__(self, report: Report, selection: Selection, **options: Any) -> list[Finding]:
        """Return what it finds, most expensive first; MissingData if the report cannot tell."""
        ...


def own_idle(finding: Finding) -> int:
    """Return how much idle time of GPUs a finding has, ns: that of the GPU of which it has most."""
    sums: Counter[tuple[int, int]] = Counter()
    for share in finding.idle:
        sums[share.process, share.device] += share.ns
    return max(sums.values(), default=0)


def most(evidence: Iterable[Evidence], number: int = EVIDENCE) -> tuple[Evidence, ...]:
    """Return the longest of the rows, longest first."""
    return tuple(sorted(evidence, key=lambda row: (row.start - row.end, row.start))[:number])


def graded(finding: Finding, span: int) -> Severity:
    """Return the weight of a finding in a run of `span` ns.

    The share of its estimate, else of its bound; of a finding without a price what its rule says.
    """
    won = priced(finding)
    if won is None:
        return finding.severity or "info"
    part = won / span if span > 0 else 0.0
    return "high" if part >= _HIGH else "medium" if part >= _MEDIUM else "low"


def priced(finding: Finding) -> int | None:
    """Return what a fix is expected to win, ns; the bound where no estimate was made.

    None if it costs no time.
    """
    return finding.bound if finding.estimate is None else finding.estimate
