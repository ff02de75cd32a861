"""Conditions on changes, such as `step.p50 > +5%`.

One that holds makes `warplens diff` fail in CI.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from warplens.analysis.comparison.compare import KINDS
from warplens.errors import UsageError
from warplens.flows.differing import Change, Difference, Figures
from warplens.model.words import percent
from warplens.report.selection import parse_duration

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
}
_VALUES = ("time", "total", "count", "mean", "p50", "p95", "max", "min")
_FINDINGS = ("appeared", "gone")
_CONDITION = re.compile(
    r"\s*(?P<kind>[a-z]+)(?:\[(?P<name>.*)\])?\.(?P<value>[a-z0-9]+)\s*(?P<operator>>=|<=|>|<)\s*(?P<sign>[+-]?)\s*(?P<limit>\S.*?)\s*"
)
_EXAMPLE = 'write for example "step.p50 > +5%", "kernel[*gemm*].time > +1ms", "gpu[GPU 0 idle].time > 20ms" or "finding.appeared > 0"'


@dataclass(frozen=True)
class Verdict:
    """A condition and what came of it: `met` fails the run; `told` says the figures.

    `judged`: false if nothing has that name.
    """

    text: str
    met: bool
    told: str
    judged: bool = True


@dataclass(frozen=True)
class Condition:
    """`KIND[NAME].VALUE OPERATOR LIMIT`.

    A limit with a sign is about the change, one with `%` about its part of what was before.

    NAME is a pattern (`*`, `?`); what several names have is added up, of quantiles the greatest is taken.
    """

    text: str
    kind: str
    name: str
    value: str
    operator: str
    limit: float
    relative: bool
    change: bool

    @classmethod
    def parse(cls, text: str) -> Condition:
        """Read a condition. Raises UsageError, with an example."""
        match = _CONDITION.fullmatch(text)
        if match is None:
            raise UsageError(f"{text!r} is not a condition; {_EXAMPLE}.")
        kind, name, value, sign, limit = (
            match[group] or "" for group in ("kind", "name", "value", "sign", "limit")
        )
        if kind not in (*KINDS, "finding"):
            raise UsageError(f"{text!r}: there is no kind {kind!r}; there are: {', '.join(KINDS)}, finding.")
        values = _FINDINGS if kind == "finding" else _VALUES
        if value not in values:
            raise UsageError(f"{text!r}: {kind} has no value {value!r}; it has: {', '.join(values)}.")
        relative = limit.endswith("%")
        number = float(_number(text, limit[:-1])) / 100 if relative else _amount(text, value, limit)
        return cls(
            text,
            kind,
            name or "*",
            value,
            match["operator"],
            -number if sign == "-" else number,
            relative,
            relative or bool(sign),
        )

    def judge(self, difference: Difference) -> Verdict:
        """Say whether the condition holds.

        A change within the noise of the recordings does not make it hold.
        """
        if self.kind == "finding":
            own = [
                f
                for f in difference.findings
                if f.status == self.value and fnmatchcase(f"{f.rule}: {f.subject}", self.name)
            ]
            told = f"{len(own)} {self.value}" + (
                f": {', '.join(sorted({f.rule for f in own}))}" if own else ""
            )
            return Verdict(self.text, _OPERATORS[self.operator](len(own), self.limit), told)
        own_changes = [change for change in difference.of(self.kind) if fnmatchcase(change.name, self.name)]
        if not own_changes:
            return Verdict(self.text, False, f"neither side has {self.kind} of that name", judged=False)
        before, after = (
            self._of(change.before for change in own_changes),
            self._of(change.after for change in own_changes),
        )
        value = (
            after
            if not self.change
            else after - before
            if not self.relative
            else (after - before) / before
            if before
            else float("inf")
        )
        if self.relative and not before and not after:
            value = 0.0
        met = _OPERATORS[self.operator](value, self.limit)
        told = f"{self.kind}.{self.value} {before:,.0f} -> {after:,.0f}" + (
            f" ({percent((after - before) / before, 1, sign=True)})" if before else ""
        )
        if (
            met
            and self.change
            and self.value in ("time", "total", "mean", "p50")
            and _within_noise(own_changes)
        ):
            return Verdict(self.text, False, f"{told}, within the noise")
        return Verdict(self.text, met, told)

    def _of(self, sides: Iterable[Figures | None]) -> float:
        values = [_value(side, self.value) for side in sides if side is not None]
        return sum(values) if self.value in ("time", "total", "count") else max(values, default=0.0)


def _value(side: Figures, name: str) -> float:
    return float(getattr(side, "time" if name == "total" else name))


def _within_noise(changes: list[Change]) -> bool:
    """Whether the change of all together is less than their noise; unknown noise hides nothing."""
    noises = [change.noise for change in changes]
    known = [noise for noise in noises if noise is not None]
    return (
        len(known) == len(noises)
        and abs(sum(change.delta for change in changes)) <= sum(noise * noise for noise in known) ** 0.5
    )


def _amount(text: str, value: str, limit: str) -> float:
    if value in ("count", *_FINDINGS):
        return _number(text, limit)
    if not re.search(r"[a-z]", limit):
        raise UsageError(f"{text!r}: a time needs its unit, as in 5ms (ns us ms s), or a percentage.")
    return float(parse_duration(limit))


def _number(text: str, limit: str) -> float:
    try:
        return float(limit)
    except ValueError:
        raise UsageError(f"{text!r}: {limit!r} is not a number; {_EXAMPLE}.") from None
