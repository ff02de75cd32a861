"""The differences of two recordings, or two sets of them: equal names side by side.

With the noise that each has in itself.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, Literal

from warplens.analysis.comparison import compare as comparing
from warplens.flows import explaining
from warplens.flows.explaining import Explanation, Fact
from warplens.report.selection import Selection

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report
    from warplens.rules.base import Finding

Status = Literal[
    "same", "changed", "added", "removed", "renamed", "not recorded before", "not recorded after"
]
FindingStatus = Literal["appeared", "gone", "both", "not judged before", "not judged after"]
_CERTAIN = 3.0  # standard errors that a change must exceed: with two, some of hundreds of kernels would pass by chance
_ALIKE = 0.5  # how much of two steps must be the same for places in them to mean anything
_PER_RUN = (comparing.STEP, "gpu")


@dataclass(frozen=True)
class Figures:
    """The figures of one side for a kind and name, ns.

    `time`: per step where steps are compared, of a step its mean, else of the whole run.

    `error`: standard error of `time`; null if it cannot be known, since nothing was repeated.
    """

    count: float
    time: float
    mean: float
    p50: float
    p95: float
    max: float
    min: float
    error: float | None


@dataclass(frozen=True)
class Change:
    """One kind and name in both sides.

    `after_name`: what it is called in the second, if it was renamed.

    `lacks`: `before` or `after`, the side whose recording did not look at such things.
    """

    kind: str
    name: str
    before: Figures | None
    after: Figures | None
    after_name: str = ""
    lacks: Literal["", "before", "after"] = ""

    @property
    def delta(self) -> float:
        """By how much `time` grew, ns."""
        return (self.after.time if self.after else 0.0) - (self.before.time if self.before else 0.0)

    @property
    def relative(self) -> float | None:
        """By what part of itself `time` grew; null if there was none before."""
        return self.delta / self.before.time if self.before and self.before.time else None

    @property
    def noise(self) -> float | None:
        """The limit that a change must exceed, ns.

        Null if neither side says how steady it is.
        """
        if self.before is None or self.after is None:
            return 0.0
        if self.before.error is None or self.after.error is None:
            return None
        return _CERTAIN * math.hypot(self.before.error, self.after.error)

    @property
    def certain(self) -> bool:
        """Whether the change is more than noise."""
        return self.noise is not None and abs(self.delta) > self.noise

    @property
    def status(self) -> Status:
        """The status of the change."""
        if self.lacks:
            return "not recorded before" if self.lacks == "before" else "not recorded after"
        if self.before is None or self.after is None:
            return "added" if self.before is None else "removed"
        if self.after_name:
            return "renamed"
        return "changed" if self.certain or (self.noise is None and self.delta) else "same"


@dataclass(frozen=True)
class FindingChange:
    """A finding of one side, or of both, with its bound in each, ns. Null: not there, or no price.

    `not judged before` and `not judged after`: that side lacks the data that the rule needs.
    """

    rule: str
    subject: str
    title: str
    before: int | None
    after: int | None
    status: FindingStatus


@dataclass(frozen=True)
class Difference:
    """The changes, greatest first within their kind.

    `per`: what times are of, `step` or `run`. `steps`: how many each side has.

    `run`: figures of the whole runs. `explained`: what the difference of their time consists of; None: the reports do not say.
    """

    per: Literal["step", "run"]
    steps: tuple[int, int]
    changes: tuple[Change, ...]
    findings: tuple[FindingChange, ...]
    notes: tuple[str, ...] = field(default=())
    run: tuple[Fact, ...] = field(default=())
    explained: Explanation | None = None

    def of(self, kind: str) -> list[Change]:
        """Return the changes of one kind."""
        return [change for change in self.changes if change.kind == kind]


def diff(
    before: Report | Sequence[Report],
    after: Report | Sequence[Report],
    *,
    selection: Selection | None = None,
    steps: str | None = None,
    rules: bool = True,
) -> Difference:
    """Compare two reports, or two sets of reports of the same program.

    Args:
        before: the first side; several reports are repeats of one another.
        after: the second side.
        selection: which part of each, default all.
        steps: name of the NVTX range of one step, if it is not recognised.
        rules: also compare what the rules find.

    Raises MissingData if a report has no range of the name `steps`.
    """
    chosen = selection or Selection()
    sides = [[side] if not isinstance(side, Sequence) else list(side) for side in (before, after)]
    steps_of = [[comparing.training_steps(report, chosen, steps) for report in side] for side in sides]
    counts = [[0 if table is None else table.num_rows for table in side] for side in steps_of]
    per: Literal["step", "run"] = "step" if all(count for side in counts for count in side) else "run"
    tables = [
        [
            _read(report, chosen, table if per == "step" else None)
            for report, table in zip(side, own, strict=True)
        ]
        for side, own in zip(sides, steps_of, strict=True)
    ]
    first, second = (
        _side([table for table, _ in own], count, per) for own, count in zip(tables, counts, strict=True)
    )
    lacks = {kind: _lacks(kind, *sides) for kind in comparing.KINDS}
    changes = [
        Change(*key, first.get(key), second.get(key), lacks=lacks[key[0]])
        for key in sorted(first.keys() | second.keys())
    ]
    changes = _renamed(changes, *(own[0][1] for own in tables))
    changes.sort(key=lambda change: (comparing.KINDS.index(change.kind), -abs(change.delta), change.name))
    judged = _findings(sides[0], sides[1], chosen) if rules else ()
    total = tuple(sum(count) for count in counts)
    return Difference(
        per,
        (total[0], total[1]),
        tuple(changes),
        findings=judged,
        notes=tuple(_notes(per, counts)),
        run=explaining.facts(sides[0], sides[1], chosen, steps=steps),
        explained=explaining.explain(sides[0], sides[1], chosen, steps=steps),
    )


def _lacks(kind: str, before: Sequence[Report], after: Sequence[Report]) -> Literal["", "before", "after"]:
    """Return which side's recording did not look at what is of a kind.

    Empty: both did, or neither.
    """
    could = [any(comparing.looked_at(report, kind) for report in side) for side in (before, after)]
    return "" if could[0] == could[1] else "before" if could[1] else "after"


def _notes(per: str, counts: Sequence[Sequence[int]]) -> Iterable[str]:
    if per == "run" and any(map(any, counts)):
        yield "one side has no steps: times are of whole runs, which may have done a different number of them."
    if per == "run":
        yield "times are of whole runs; --steps NAME compares the time in each NVTX range of that name."


def _read(
    report: Report, selection: Selection, steps: pa.Table | None
) -> tuple[dict[tuple[str, str], dict[str, Any]], list[str]]:
    """Return the figures by kind and name, and the kernels of a typical step in order of launch."""
    table, order = comparing.figures(report, selection, steps)
    return {(row["kind"], row["name"]): row for row in table.to_pylist()}, order


def _side(
    tables: Sequence[Mapping[tuple[str, str], Mapping[str, Any]]], steps: Sequence[int], per: str
) -> dict[tuple[str, str], Figures]:
    """Join the reports of one side.

    Sums, counts and quantiles are means over them, and the greatest is the greatest.
    """
    result = {}
    for key in {key for table in tables for key in table}:
        own = [(table[key], count) for table, count in zip(tables, steps, strict=True) if key in table]
        times = [_time(row, count, per) for row, count in own] + [0.0] * (len(tables) - len(own))
        within = [_error(row, count, per) for row, count in own]
        known = [error for error in within if error is not None]
        error = (
            math.sqrt(fmean(error * error for error in known) / len(known))
            if len(known) == len(within)
            else None
        )
        if len(times) > 1:  # repeats of the whole run tell more than those within one
            error = max(error or 0.0, stdev(times) / math.sqrt(len(times)))
        rows = [row for row, _ in own]
        number = fmean(
            [row["count"] / (count if per == "step" and key[0] not in _PER_RUN else 1) for row, count in own]
        )
        same = {name: fmean(row[name] for row in rows) for name in ("mean", "p50", "p95")}
        result[key] = Figures(
            number,
            fmean(times),
            max=max(row["max"] for row in rows),
            min=min(row["min"] for row in rows),
            error=error,
            **same,
        )
    return result


def _time(row: Mapping[str, Any], steps: int, per: str) -> float:
    if row["kind"] == comparing.STEP:
        return float(row["mean"])
    if per == "run" or row["kind"] in _PER_RUN:
        return float(row["total"])
    return float(row["steps"] * row["step_mean"]) / steps


def _error(row: Mapping[str, Any], steps: int, per: str) -> float | None:
    """Return the standard error of a row's time.

    From its time in each step, else from its single runs.
    """
    if per == "step" and row["kind"] not in _PER_RUN:
        part, mean = row["steps"] / steps, row["step_mean"]  # in the other steps it took no time
        variance = part * row["step_variance"] + part * (1 - part) * mean * mean
        return math.sqrt(variance / (steps - 1)) if steps > 1 else None
    if row["deviation"] is None or math.isnan(row["deviation"]):
        return None
    spread = float(row["deviation"]) / math.sqrt(row["count"])
    return spread if row["kind"] == comparing.STEP else spread * float(row["count"])


def _renamed(changes: Sequence[Change], before: Sequence[str], after: Sequence[str]) -> list[Change]:
    """Pair what was removed with what was added in its place, as often as before.

    That is the same function with other template arguments, else what was launched where it was: `before` and `after` are the kernels of
    a typical step in order.
    """
    gone, new = (
        {c.name: c for c in changes if c.kind == "kernel" and c.status == status}
        for status in ("removed", "added")
    )
    pairs = {}
    for name, change in new.items():
        mates = [mate.name for mate in gone.values() if _alike(mate, change)]
        if len(mates) == 1 and sum(_alike(gone[mates[0]], other) for other in new.values()) == 1:
            pairs[name] = mates[0]
    same = {old: name for name, old in pairs.items()}
    for old, name in by_position([same.get(name, name) for name in before], after).items():
        if (
            old in gone
            and name in new
            and name not in pairs
            and old not in pairs.values()
            and _often(gone[old]) == _often(new[name])
        ):
            pairs[name] = old
    used = set(pairs.values())
    result = []
    for change in changes:
        if change.kind == "kernel" and change.name in pairs and change.before is None:
            mate = gone[pairs[change.name]]
            result.append(
                Change(change.kind, mate.name, mate.before, after=change.after, after_name=change.name)
            )
        elif not (change.kind == "kernel" and change.name in used and change.after is None):
            result.append(change)
    return result


def by_position(before: Sequence[str], after: Sequence[str]) -> dict[str, str]:
    """Return what each name became, where the names of a step, in order, show it.

    Between what is the same in both, stretches of one length stand for one another. What became different things in different places
    became neither, and nothing is what two became. Where less than half is the same, nothing shows it.
    """
    met: dict[str, set[str]] = {}
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    for what, first, last, begin, end in matcher.get_opcodes() if matcher.ratio() >= _ALIKE else ():
        if what == "replace" and last - first == end - begin:
            for old, new in zip(before[first:last], after[begin:end], strict=True):
                met.setdefault(old, set()).add(new)
    became = {old: next(iter(new)) for old, new in met.items() if len(new) == 1}
    taken = Counter(became.values())
    return {old: new for old, new in became.items() if taken[new] == 1}


def _alike(gone: Change, new: Change) -> bool:
    return _function(gone.name) == _function(new.name) and _often(gone) == _often(new)


def _function(name: str) -> str:
    return name.partition("<")[0].partition("(")[0]


def _often(change: Change) -> int:
    figures = change.before or change.after
    return round(figures.count * 1000) if figures else 0


def _findings(
    before: Sequence[Report], after: Sequence[Report], selection: Selection
) -> tuple[FindingChange, ...]:
    from warplens.rules.judging import judge

    judged = [[judge(report, selection) for report in side] for side in (before, after)]
    sides = [{(f.rule, f.subject): f for one in side for f in one.findings} for side in judged]
    blind = [set.intersection(*(set(one.not_judged) for one in side)) for side in judged]
    changes = []
    for key in sorted(sides[0].keys() | sides[1].keys()):
        own = [side.get(key) for side in sides]
        told = next(finding for finding in reversed(own) if finding is not None)
        first, second = (None if finding is None else finding.bound for finding in own)
        changes.append(
            FindingChange(*key, told.title, before=first, after=second, status=_became(key[0], own, blind))
        )
    return tuple(
        sorted(
            changes,
            key=lambda change: (change.status == "both", -abs((change.after or 0) - (change.before or 0))),
        )
    )


def _became(rule: str, own: Sequence[Finding | None], blind: Sequence[set[str]]) -> FindingStatus:
    if own[0] is None:
        return "not judged before" if rule in blind[0] else "appeared"
    if own[1] is None:
        return "not judged after" if rule in blind[1] else "gone"
    return "both"
