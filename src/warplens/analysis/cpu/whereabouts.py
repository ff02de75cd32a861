"""Where the time of a program went, from samples of Python: the functions that hold it, imports, start-up, waiting, waiting for a CPU.

Asked of one thread: the main thread of the Python process that was there longest. Its wall time is divided among what its samples saw;
what the scheduler says of it, where that is known, divides it into running, waiting for a CPU, and waiting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

import numpy as np

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.frames import Frame
from warplens.analysis.cpu.native_places import FunctionKey, NativePlaces
from warplens.analysis.cpu.own_code import OwnCode, package_called, package_of
from warplens.analysis.cpu.thread_time import ThreadTime, of_kind, own_code, read_samples, thread_times
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report

_Name = TypeVar("_Name")
_MOST = 8
_LEAST = 0.02  # share of the whole below which an item gets no line
_REST = 0.005  # share of the whole from which on what remains has one
_OWN = 0.2  # least share of the time in its own code for a program to have any
_MOSTLY = 0.5  # share of a function from which on what it calls, or its line, is worth naming
# Where Python waits, by the file of its innermost function.
_WAITS = (
    (("selectors.py", "asyncio/"), "for events: sockets, timers"),
    (("threading.py", "queue.py", "concurrent/"), "for other threads"),
    (("subprocess.py", "multiprocessing/", "popen_fork.py"), "for other processes"),
    (("socket.py", "ssl.py", "http/client.py", "socketserver.py"), "for the network"),
)


@dataclass(frozen=True)
class Piece:
    """A part of the time: `ns`, what it was (`kind`: function, package, imports, startup, waiting, cpu, other, others), and where."""

    ns: int
    kind: str
    text: str
    place: str = ""


@dataclass(frozen=True)
class Whereabouts:
    """`whole`: wall time (ns) of the main thread of the process `pid`, divided into `pieces`, the largest first.

    What is small is together in the piece `other`. A piece `others` is what other threads did meanwhile, and no part of the whole.
    """

    pid: int
    whole: int
    pieces: tuple[Piece, ...]

    @property
    def hot(self) -> Piece | None:
        """The function of the program's own code that holds most, if any."""
        return next((piece for piece in self.pieces if piece.kind == "function"), None)


def whereabouts(report: Report, low: int = 0, high: int = 1 << 62, most: int = _MOST) -> Whereabouts | None:
    """Return where the time of the processes with keys from `low` to `high` went; None where no Python was sampled."""
    threads = thread_times(report, (low, high))
    main = next((time for time in threads if time.main), None)
    if main is None:
        return None
    code = own_code(report)
    native = NativePlaces(code, _native(read_samples(report, low, high), main.thread))
    pieces = _pieces(report, code, main, native, most)
    waits = sum(piece.ns for piece in pieces if piece.kind == "waiting")
    if (
        waits >= _MOSTLY / 2 * main.whole
        and (others := _others(code, [time for time in threads if time is not main])) is not None
    ):
        pieces = (*_fewer(pieces, main.whole, most - 1), others)
    return Whereabouts(main.pid, main.whole, pieces)


def _native(samples: pa.Table, thread: int) -> pa.Table:
    return of_kind(samples.filter(pc.equal(samples["thread"], thread)), "native")


def _others(code: OwnCode, threads: list[ThreadTime]) -> Piece | None:
    """What all other threads ran meanwhile, in one piece; None where they did next to nothing."""
    stack = np.concatenate([np.zeros(0, np.int64), *(time.stack for time in threads)])
    ran = np.concatenate([np.zeros(0), *(time.ran for time in threads)])
    whole = float(ran.sum())
    if whole < 1:
        return None
    loading = code.importing[stack]
    parts = [(float(ran[loading].sum()), "imports")]
    parts += [
        (float(piece.ns), f"{piece.text} {piece.place}")
        for piece in _packages(code, stack[~loading], ran[~loading])
    ]
    shown = [
        f"{spent / whole:.0%} {text}".replace("%", " %")
        for spent, text in sorted(parts, reverse=True)[:2]
        if spent >= 0.1 * whole
    ]
    number = sum(bool(time.ran.any()) for time in threads)
    return Piece(
        round(whole), "others", f"{number} other thread{'s' if number > 1 else ''} ran", ", ".join(shown)
    )


def _pieces(
    report: Report, code: OwnCode, time: ThreadTime, native: NativePlaces, most: int
) -> tuple[Piece, ...]:
    loading = code.importing[time.stack]
    stack = time.stack[~loading]
    pieces = [
        Piece(time.begun, "startup", "Python starts"),
        Piece(
            round((time.ran + time.waited)[loading].sum()),
            "imports",
            "imports",
            _imported(report, time.thread),
        ),
        Piece(time.starved, "cpu", "waits for a CPU"),
        *_functions(code, stack, time.ran[~loading], native),
        *_waits(code, stack, time.waited[~loading]),
    ]
    least = _LEAST * max(time.whole - time.starved, 0)
    kept = sorted(
        (piece for piece in pieces if piece.ns >= least and piece.ns > 0), key=lambda piece: -piece.ns
    )
    return _fewer(tuple(kept), time.whole, most)


def _fewer(pieces: tuple[Piece, ...], whole: int, most: int) -> tuple[Piece, ...]:
    """Return the largest pieces, and what remains of the whole as the last one: `most` pieces in all."""
    named = [piece for piece in pieces if piece.kind != "other"]
    for number in (most, most - 1):
        kept = named[:number]
        rest = whole - sum(piece.ns for piece in kept)
        if rest < _REST * whole:
            return tuple(kept)
    return (*kept, Piece(rest, "other", "other"))


_AROUND: FunctionKey = ("", "", None)  # code around the program's own


@dataclass
class _Spent:
    """What was spent in one function: in all, by its line, and by the package that it called."""

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


def _functions(code: OwnCode, stack: Int64Array, weight: Float64Array, native: NativePlaces) -> list[Piece]:
    """Time by own function; by package if the program has no functions itself (an installed tool)."""
    own = code.own[stack]
    if float(weight[own >= 0].sum()) < _OWN * float(weight.sum()):
        return _packages(code, stack, weight)
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
            pieces.append(Piece(round(one.ns), "package", "around your code", f"most in {callee}"))
            continue
        line, at_line = _most(one.lines)
        name = key[1].rpartition("/")[2]
        place = f"{name}:{line}" if at_line >= _MOSTLY * one.ns else name
        inside = f"in {callee}" if callee and in_callee >= _MOSTLY * one.ns else native.where(key)
        pieces.append(Piece(round(one.ns), "function", key[0], f"{place}{', ' + inside if inside else ''}"))
    return pieces


def _package_at(code: OwnCode, position: int) -> str:
    """The package that a stack ended in."""
    at = int(code.python[position])
    return package_of(code.frames.frame(at).file or "") if at >= 0 else "?"


def _packages(code: OwnCode, stack: Int64Array, weight: Float64Array) -> list[Piece]:
    spent: dict[str, dict[str, float]] = {}
    for position, ns in _summed(stack, weight):
        at = int(code.python[position])
        functions = spent.setdefault(_package_at(code, position), {})
        name = code.frames.frame(at).function if at >= 0 else "?"
        functions[name] = functions.get(name, 0.0) + ns
    sums = {package: sum(functions.values()) for package, functions in spent.items()}
    largest = sorted(sums, key=lambda package: -sums[package])[:_MOST]
    return [
        Piece(round(sums[package]), "package", package, f"most in {_most(spent[package])[0]}")
        for package in largest
    ]


def _waits(code: OwnCode, stack: Int64Array, weight: Float64Array) -> list[Piece]:
    spent: dict[str, dict[str, float]] = {}
    for position, ns in _summed(stack, weight):
        at, own = int(code.python[position]), int(code.own[position])
        frame = code.frames.frame(at) if at >= 0 else Frame("python", "?")
        kind = next(
            (text for files, text in _WAITS if any(part in (frame.file or "") for part in files)),
            "(sleep, file or lock)",
        )
        shown = code.frames.frame(own) if own >= 0 else frame
        place = f"{shown.function}  {(shown.file or '').rpartition('/')[2]}:{shown.line}"
        place += f", in {package_of(frame.file or '')}" if own >= 0 and at != own else ""
        places = spent.setdefault(kind, {})
        places[place] = places.get(place, 0.0) + ns
    return [
        Piece(round(sum(places.values())), "waiting", f"waits {kind}", _most(places)[0])
        for kind, places in spent.items()
    ]


def _imported(report: Report, thread: int) -> str:
    """The packages whose modules took longest, with their shares."""
    if not report.tables["imports"]:
        return ""
    rows = report.table("imports", ["thread", "name", "self"])
    rows = rows.filter(pc.equal(rows["thread"], thread))
    sums: Counter[str] = Counter()
    for name, spent in zip(
        pc.cast(rows["name"], "string").to_pylist(), rows["self"].to_pylist(), strict=True
    ):
        sums[(name or "").partition(".")[0]] += spent
    whole = max(sums.total(), 1)
    shown = [
        f"{name} {spent / whole:.0%}".replace("%", " %")
        for name, spent in sums.most_common(3)
        if spent >= 0.05 * whole
    ]
    return ", ".join(shown)
