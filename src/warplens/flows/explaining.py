"""Explains why one run takes longer than another: the parts of their difference, the largest first.

Together they are all of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from warplens.analysis.comparison import accounts
from warplens.analysis.comparison.accounts import Account, AccountEntry
from warplens.analysis.comparison.comparable import without_numbers
from warplens.analysis.comparison.gpu_time import ALONE, COMPUTE
from warplens.analysis.comparison.run_facts import FACTS, PHASE, run_facts
from warplens.analysis.cpu.culprits import UNKNOWN
from warplens.analysis.gpu.kernel_classes import class_of
from warplens.analysis.steps.loops import MainLoop
from warplens.model.words import counted
from warplens.report.selection import Selection

if TYPE_CHECKING:
    from warplens.report.report import Report

_ALIKE = 1.3  # iterations that differ more in how many kernels they have are not the same thing
_CERTAIN = 3.0  # standard errors
_NOTHING = AccountEntry(0.0, 0.0, "")
_LINES = 12
_LEAST = 0.01  # of the longer side: a part below it has no line, unless it is a tenth of the difference
_TENTH = 0.1


@dataclass(frozen=True)
class Fact:
    """A figure of both runs: ns, bytes or a number (`unit` empty).

    None: that side does not know it.
    """

    name: str
    unit: str
    before: float | None
    after: float | None


@dataclass(frozen=True)
class DifferencePart:
    """A part of the difference: `kind` and `name` of a cause, `detail`, ns.

    `detail`: most of it (`before -> after` where that changed).

    `noise`: what the change must exceed to be one, where samples saw it, else 0. `lacks`: the side (`before`, `after`) whose recording
    could not see such time; there it is part of others. `kind` is empty for the sum of what has no separate line and is in no group.
    """

    kind: str
    name: str
    detail: str
    before: float
    after: float
    noise: float = 0.0
    lacks: str = ""

    @property
    def delta(self) -> float:
        """By how much the time grew, ns."""
        return self.after - self.before


@dataclass(frozen=True)
class Explanation:
    """`parts` that add up to `before` and `after`, ns: the time of one `per`.

    `per`: `run`, `iteration`, or the name of steps.

    `where`: whose time that is.
    """

    where: str
    per: str
    before: float
    after: float
    parts: tuple[DifferencePart, ...]
    notes: tuple[str, ...] = ()

    @property
    def delta(self) -> float:
        """By how much one took longer, ns."""
        return self.after - self.before


def facts(
    before: Sequence[Report], after: Sequence[Report], selection: Selection, steps: str | None = None
) -> tuple[Fact, ...]:
    """Return the figures of both sides; of several reports their mean.

    What neither side knows is left out.
    """
    sides = [
        [run_facts(report, selection, accounts.loop_of(report, selection, steps)) for report in side]
        for side in (before, after)
    ]
    result = []
    names = dict.fromkeys(name for side in sides for one in side for name in one)
    more = {name: "bytes" for name in names if name not in FACTS}  # the memory of processes by name
    for name, unit in {**FACTS, **more}.items():
        values = [_mean([one[name] for one in side if name in one]) for side in sides]
        if _is_worth_a_line(name, values):
            result.append(Fact(name, unit, *values))
    return tuple(result)


def _is_worth_a_line(name: str, values: Sequence[float | None]) -> bool:
    """Say whether to show a figure: of phases only those whose memory changed."""
    before, after = values
    if PHASE in name:
        return before is not None and after is not None and abs(after - before) > _TENTH * before
    return values != [None, None] and (name != "processes" or before != after)


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None


def explain(
    before: Sequence[Report], after: Sequence[Report], selection: Selection, steps: str | None = None
) -> Explanation | None:
    """Return what the difference of two sides consists of.

    None if a side is too large to be divided, or has nothing to divide.

    `steps`: the name of the ranges that are steps, as for `diff`.
    """
    reports = [*before, *after]
    if not all(map(accounts.divisible, reports)):
        return None
    loops, note = _loops(reports, selection, steps)
    subjects = [
        accounts.subject(report, selection, loop) for report, loop in zip(reports, loops, strict=True)
    ]
    known = [one for one in subjects if one is not None]
    if len(known) < len(subjects):
        return None
    gpu = all(one.device is not None for one in known)
    made = [
        accounts.account(report, selection, one, loop=loop, gpu=gpu)
        for report, one, loop in zip(reports, known, loops, strict=True)
    ]
    sides = [
        _together([one for one in own if one is not None])
        for own in (made[: len(before)], made[len(before) :])
    ]
    if sides[0] is None or sides[1] is None:
        return None
    return _explanation(sides[0], sides[1], before, after=after, notes=[note] if note else [])


def _loops(
    reports: Sequence[Report], selection: Selection, steps: str | None
) -> tuple[list[MainLoop | None], str]:
    """Return the main loops if all reports have one with equal iterations, else none and why."""
    loops = [accounts.loop_of(report, selection, steps) for report in reports]
    there = [loop for loop in loops if loop is not None]
    if len(there) < len(loops):
        why = "one side has no main loop: whole runs are compared." if there else ""
        return [None] * len(loops), why
    names = {loop.name for loop in there}
    sizes = [accounts.kernels_in(report, loop) for report, loop in zip(reports, there, strict=True)]
    if len(names) == 1 and None not in names:
        return loops, ""
    if max(sizes) > _ALIKE * max(min(sizes), 1e-9):
        told = f"iterations have {min(sizes):,.0f} to {max(sizes):,.0f} kernels"
        return [None] * len(loops), f"{told}: they are different ranges, so whole runs are compared."
    return loops, ""


def _together(side: Sequence[Account]) -> Account | None:
    """Return the mean of the accounts of repeats."""
    if len(side) < 2:
        return side[0] if side else None
    keys = list(dict.fromkeys(key for one in side for key in one.entries))
    entries = {}
    for key in keys:
        own = [one.entries.get(key, _NOTHING) for one in side]
        mean = fmean(entry.ns for entry in own)
        # Repeats of the whole run show more noise than samples do.
        between = sum((entry.ns - mean) ** 2 for entry in own) / (len(own) - 1)
        within = fmean(entry.variance for entry in own)
        entries[key] = AccountEntry(
            mean, max(between, within) / len(own), max(own, key=lambda entry: entry.ns).detail
        )
    first = side[0]
    return Account(
        first.where, first.per, first.units, whole=fmean(one.whole for one in side), entries=entries
    )


def _explanation(
    first: Account, second: Account, before: Sequence[Report], after: Sequence[Report], notes: list[str]
) -> Explanation:
    parts = []
    for key in dict.fromkeys((*first.entries, *second.entries)):
        own = [side.entries.get(key, _NOTHING) for side in (first, second)]
        noise = _CERTAIN * math.sqrt(own[0].variance + own[1].variance)
        lacks = _lacking(key[0], before, after)
        parts.append(
            DifferencePart(
                *key, detail=_detail(own), before=own[0].ns, after=own[1].ns, noise=noise, lacks=lacks
            )
        )
    for kind in dict.fromkeys(part.kind for part in parts if part.lacks):
        lacking = next(part.lacks for part in parts if part.kind == kind)
        notes.append(f"{kind}: not recorded {lacking}; there such time is part of others.")
    limit = max(_LEAST * max(first.whole, second.whole), 0)
    tenth = _TENTH * abs(second.whole - first.whole)
    parts.sort(
        key=lambda part: (bool(part.lacks), part.kind == UNKNOWN, -abs(part.delta), part.kind, part.name)
    )
    shown = [
        part
        for part in parts
        if abs(part.delta) > part.noise and abs(part.delta) >= min(limit, tenth or limit)
    ][:_LINES]
    groups, rest = _grouped([part for part in parts if part not in shown], min(limit, tenth or limit))
    shown = sorted(
        [*shown, *groups], key=lambda part: (bool(part.lacks), part.kind == UNKNOWN, -abs(part.delta))
    )
    # What remains of the whole, to the nanosecond: means of integers are rounded.
    left = [
        first.whole - sum(part.before for part in shown),
        second.whole - sum(part.after for part in shown),
    ]
    if rest:
        noise = math.hypot(*(part.noise for part in rest))
        most = max(rest, key=lambda part: abs(part.delta))
        detail = f"most in {most.name or most.kind}" if most.delta and not most.lacks else ""
        shown.append(
            DifferencePart(
                "", counted(len(rest), "other"), detail, before=left[0], after=left[1], noise=noise
            )
        )
    where = first.where if first.where == second.where else f"{first.where} -> {second.where}"
    return Explanation(
        where, first.per, first.whole, after=second.whole, parts=tuple(shown), notes=tuple(notes)
    )


def _grouped(
    parts: Sequence[DifferencePart], least: float
) -> tuple[list[DifferencePart], list[DifferencePart]]:
    """Join parts that are too small for a line; return the groups that change by `least` ns, and what is in none.

    First kernels of one class, and names that differ in numbers alone; then all of one kind. A group has the
    name of its largest part.
    """
    rest, groups = list(parts), []
    for family in (_family, lambda part: part.kind):
        members: dict[tuple[str, str], list[DifferencePart]] = {}
        for part in rest:
            if not part.lacks and part.kind:
                members.setdefault((part.kind, family(part)), []).append(part)
        for (kind, name), own in members.items():
            delta, noise = sum(part.delta for part in own), math.hypot(*(part.noise for part in own))
            if len(own) < 2 or abs(delta) < least or abs(delta) <= noise:
                continue
            most = max(own, key=lambda part: abs(part.delta)).name
            text = counted(len(own), "other") if name == kind else f"{len(own):,} of {name}"
            sums = {side: sum(getattr(part, side) for part in own) for side in ("before", "after")}
            groups.append(DifferencePart(kind, text, f"most in {most}" if most else "", **sums, noise=noise))
            rest = [part for part in rest if part not in own]
    return groups, rest


def _family(part: DifferencePart) -> str:
    """Return what parts have in common that one change concerns: the class of a kernel, else the name without numbers."""
    if part.kind in (COMPUTE, *ALONE.values()):
        return class_of(part.name)
    return without_numbers(part.name) or part.kind


def _detail(own: Sequence[AccountEntry]) -> str:
    texts = list(dict.fromkeys(entry.detail for entry in own if entry.ns))
    return " -> ".join(text or "itself" for text in texts) if any(texts) else ""


def _lacking(kind: str, before: Sequence[Report], after: Sequence[Report]) -> str:
    """Return which side could not see time of a kind; empty if both could, or neither."""
    could = [any(accounts.looked_at(report, kind) for report in side) for side in (before, after)]
    return "" if could[0] == could[1] else "before" if could[1] else "after"
