"""Divides time by function, by package and by the cause of waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.frames import Frame
from warplens.analysis.cpu.native_places import FunctionKey, NativePlaces
from warplens.analysis.cpu.own_code import OwnCode, package_called, package_of
from warplens.arrays import Float64Array, Int64Array
from warplens.model.words import percent

if TYPE_CHECKING:
    from warplens.report.report import Report

_Name = TypeVar("_Name")
_MOST = 8
_OWN = 0.2  # least share of the time in its own code for a program to have any
_LOADER = "<frozen importlib"
MOSTLY = 0.5  # share of a function from which on what it calls, or its line, is worth naming
# Where Python waits, by the file of its innermost function.
WAITS = (
    (("selectors.py", "asyncio/"), "for events: sockets, timers"),
    (("threading.py", "queue.py", "concurrent/"), "for other threads"),
    (("subprocess.py", "multiprocessing/", "popen_fork.py", "joblib/", "loky/"), "for other processes"),
    (("socket.py", "ssl.py", "http/client.py", "socketserver.py"), "for the network"),
)


@dataclass(frozen=True)
class Piece:
    """A part of the time: `ns`, what it was, and where.

    `kind`: function, package, imports, startup, waiting, cpu, other; of other threads: others, part, waited.
    """

    ns: int
    kind: str
    text: str
    place: str = ""


_AROUND: FunctionKey = ("", "", None)  # code around the program's own


@dataclass
class _Spent:
    """Time spent in one function: in total, by line, and by called package."""

    ns: float = 0.0
    lines: dict[int, float] = field(default_factory=dict)
    below: dict[str, float] = field(default_factory=dict)

    def add(self, ns: float, line: int, package: str) -> None:
        """Add a stack."""
        self.ns += ns
        self.lines[line] = self.lines.get(line, 0.0) + ns
        self.below[package] = self.below.get(package, 0.0) + ns


def _most(sums: Mapping[_Name, float]) -> tuple[_Name, float]:
    """The largest of some sums, which are not none."""
    return max(sums.items(), key=lambda item: item[1])


def _summed(stack: Int64Array, weight: Float64Array) -> Iterator[tuple[int, float]]:
    """Each stack with what it weighs in all."""
    known, code = np.unique(stack, return_inverse=True)
    return zip(known.tolist(), np.bincount(code, weight, len(known)).tolist(), strict=True)


def functions(code: OwnCode, stack: Int64Array, weight: Float64Array, native: NativePlaces) -> list[Piece]:
    """Return time by own function.

    By package if the program has no functions itself (an installed tool).
    """
    own = code.own[stack]
    if float(weight[own >= 0].sum()) < _OWN * float(weight.sum()):
        return packages(code, stack, weight)
    spent: dict[FunctionKey, _Spent] = {}
    for position, ns in _summed(stack, weight):
        anchor = int(code.own[position])
        if anchor < 0:
            spent.setdefault(_AROUND, _Spent()).add(ns, 0, _package_at(code, position))
            continue
        frame = code.frames.frame(anchor)
        key = (frame.function, frame.file or "", frame.first_line)
        spent.setdefault(key, _Spent()).add(ns, frame.line or 0, package_called(code, position, anchor))
    pieces = []
    for key, one in sorted(spent.items(), key=lambda item: -item[1].ns)[:_MOST]:
        callee, in_callee = _most(one.below)
        if key == _AROUND:
            pieces.append(
                Piece(round(one.ns), "package", "outside your functions", place=f"most in {callee}")
            )
            continue
        line, at_line = _most(one.lines)
        name = key[1].rpartition("/")[2]
        place = f"{name}:{line}" if at_line >= MOSTLY * one.ns else name
        inside = f"in {callee}" if callee and in_callee >= MOSTLY * one.ns else native.where(key)
        pieces.append(
            Piece(round(one.ns), "function", key[0], place=f"{place}{', ' + inside if inside else ''}")
        )
    return pieces


def _shown_at(code: OwnCode, position: int) -> int:
    """The innermost frame of Python of a stack, -1: none. What only passes a call on for `import` and `compile` is not meant."""
    at = int(code.python[position])
    while at >= 0 and (code.frames.frame(at).file or "").startswith(_LOADER):
        above = int(code.frames.parent[at])
        at = int(code.python[above]) if above >= 0 else -1
    return at if at >= 0 else int(code.python[position])


def _package_at(code: OwnCode, position: int) -> str:
    """The package that a stack ended in."""
    at = _shown_at(code, position)
    return package_of(code.frames.frame(at).file or "") if at >= 0 else "?"


def packages(code: OwnCode, stack: Int64Array, weight: Float64Array) -> list[Piece]:
    """Time by package, with the function that has most of it."""
    spent: dict[str, dict[str, float]] = {}
    for position, ns in _summed(stack, weight):
        at = _shown_at(code, position)
        functions = spent.setdefault(_package_at(code, position), {})
        name = code.frames.frame(at).function if at >= 0 else "?"
        functions[name] = functions.get(name, 0.0) + ns
    sums = {package: sum(functions.values()) for package, functions in spent.items()}
    largest = sorted(sums, key=lambda package: -sums[package])[:_MOST]
    return [
        Piece(round(sums[package]), "package", package, place=f"most in {_most(spent[package])[0]}")
        for package in largest
    ]


def waits(code: OwnCode, stack: Int64Array, weight: Float64Array) -> list[Piece]:
    """Waiting by its kind, with the place that has most of it: of own code where that is on the stack."""
    spent: dict[str, dict[str, float]] = {}
    for position, ns in _summed(stack, weight):
        at, own = int(code.python[position]), int(code.own[position])
        frame = code.frames.frame(at) if at >= 0 else Frame("python", "?")
        kind = next(
            (text for files, text in WAITS if any(part in (frame.file or "") for part in files)),
            "(sleep, file or lock)",
        )
        shown = code.frames.frame(own) if own >= 0 else frame
        place = f"{shown.function}  {(shown.file or '').rpartition('/')[2]}:{shown.line}"
        place += f", in {package_of(frame.file or '')}" if own >= 0 and at != own else ""
        places = spent.setdefault(kind, {})
        places[place] = places.get(place, 0.0) + ns
    return [
        Piece(round(sum(places.values())), "waiting", f"waits {kind}", place=_most(places)[0])
        for kind, places in spent.items()
    ]


def imported(report: Report, threads: Collection[int]) -> str:
    """Return the packages whose modules took these threads longest, with their shares."""
    if not report.tables["imports"]:
        return ""
    rows = report.table("imports", ["thread", "name", "self"])
    rows = rows.filter(pc.is_in(rows["thread"], value_set=pa.array(threads, pa.int64())))
    sums: Counter[str] = Counter()
    for name, spent in zip(
        pc.cast(rows["name"], "string").to_pylist(), rows["self"].to_pylist(), strict=True
    ):
        sums[(name or "").partition(".")[0]] += spent
    whole = max(sums.total(), 1)
    shown = [
        f"{name} {percent(spent / whole)}" for name, spent in sums.most_common(3) if spent >= 0.05 * whole
    ]
    return ", ".join(shown)
