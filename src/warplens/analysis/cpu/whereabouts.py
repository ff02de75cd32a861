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
from warplens.analysis.cpu.frames import Frame, FrameTable
from warplens.analysis.cpu.own_code import OwnCode, package_of
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report

_Name = TypeVar("_Name")
_MOST = 8
_LEAST = 0.02  # share of the whole below which nothing has a line of its own
_OWN = 0.2  # share of the time from which on a program has code of its own
_MOSTLY = 0.5  # share of a function from which on what it calls, or its line, is worth naming
_NATIVE = 8  # samples below which shares of native code say nothing
# Where Python waits, by the file of its innermost function.
_WAITS = (
    (("selectors.py", "asyncio/"), "for events: sockets, timers"),
    (("threading.py", "queue.py", "concurrent/"), "for other threads"),
    (("subprocess.py", "multiprocessing/", "popen_fork.py"), "for other processes"),
    (("socket.py", "ssl.py", "http/client.py", "socketserver.py"), "for the network"),
)
_INTERPRETER = ("python", "libpython", "libc.so", "libc-", "ld-linux", "libm.so", "libpthread")


@dataclass(frozen=True)
class Piece:
    """A part of the time: `ns`, what it was (`kind`: function, package, imports, startup, waiting, cpu), and where."""

    ns: int
    kind: str
    text: str
    place: str = ""


@dataclass(frozen=True)
class Whereabouts:
    """`whole`: wall time (ns) of the main thread of the process `pid`, divided into `pieces`; what is small is left out."""

    pid: int
    whole: int
    pieces: tuple[Piece, ...]

    @property
    def hot(self) -> Piece | None:
        """The function of the program's own code that holds most, if any."""
        return next((piece for piece in self.pieces if piece.kind == "function"), None)


def whereabouts(report: Report, low: int = 0, high: int = 1 << 62, most: int = _MOST) -> Whereabouts | None:
    """Return where the time of the processes with keys from `low` to `high` went; None where no Python was sampled."""
    if not report.tables["samples"]:
        return None
    samples = report.table("samples", ["process", "thread", "start", "end", "kind", "count", "weight", "on_cpu", "stack"])
    samples = samples.filter(pc.and_(pc.greater_equal(samples["process"], low), pc.less_equal(samples["process"], high)))
    main = _main_thread(report, samples)
    if main is None:
        return None
    thread, process = main
    mine = samples.filter(pc.equal(samples["thread"], thread))
    seen = mine.filter(pc.equal(pc.cast(mine["kind"], "string"), "python"))
    row = next(row for row in report.table("processes").to_pylist() if row["process"] == process)
    whole = row["end"] - row["start"]
    begun = min(max(pc.min(seen["start"]).as_py() - row["start"], 0), whole)
    code = OwnCode.of(FrameTable.of(report))
    pieces = _pieces(report, code, seen, _native(code, mine), thread, whole, begun, most)
    waits = sum(piece.ns for piece in pieces if piece.kind == "waiting")
    if waits >= _MOSTLY / 2 * whole and (others := _others(code, samples, thread)) is not None:
        pieces = (*pieces[: most - 1], others)
    return Whereabouts(row["pid"], whole, pieces)


def _others(code: OwnCode, samples: pa.Table, thread: int) -> Piece | None:
    """What all other threads ran meanwhile, in one piece; None where they did next to nothing."""
    python = pc.equal(pc.cast(samples["kind"], "string"), "python")
    rest = samples.filter(pc.and_(pc.and_(python, samples["on_cpu"]), pc.not_equal(samples["thread"], thread)))
    if not rest.num_rows:
        return None
    stack = code.frames.positions(rest["stack"])
    weight = np.asarray(rest["weight"].to_numpy(), np.float64)
    whole = float(weight.sum())
    loading = code.importing[stack]
    parts = [(float(weight[loading].sum()), "imports")]
    parts += [(float(piece.ns), f"{piece.text} {piece.place}") for piece in _packages(code, stack[~loading], weight[~loading])]
    shown = [f"{spent / whole:.0%} {text}".replace("%", " %") for spent, text in sorted(parts, reverse=True)[:2] if spent >= 0.1 * whole]
    threads = pc.count_distinct(rest["thread"]).as_py()
    return Piece(round(whole), "others", f"{threads} other thread{'s' if threads > 1 else ''} ran", ", ".join(shown))


def _main_thread(report: Report, samples: pa.Table) -> tuple[int, int] | None:
    """The main thread that was sampled longest, and its process."""
    pids = {row["process"]: row["pid"] for row in report.table("processes", ["process", "pid"]).to_pylist()}
    mains = {
        row["thread"]: row["process"]
        for row in report.table("threads", ["thread", "process", "tid"]).to_pylist()
        if pids.get(row["process"]) == row["tid"]
    }
    python = samples.filter(pc.equal(pc.cast(samples["kind"], "string"), "python"))
    threads, code = np.unique(python["thread"].to_numpy(), return_inverse=True)
    sums = np.bincount(code, python["weight"].to_numpy(), len(threads)).tolist()
    known = [(spent, thread) for spent, thread in zip(sums, threads.tolist(), strict=True) if thread in mains]
    if not known:
        return None
    thread = max(known)[1]
    return thread, mains[thread]


def _pieces(
    report: Report, code: OwnCode, seen: pa.Table, native: _Native, thread: int, whole: int, begun: int, most: int
) -> tuple[Piece, ...]:
    stack = code.frames.positions(seen["stack"])
    ran, waited, starved = _divided(report, thread, seen, whole - begun)
    loading = code.importing[stack]
    pieces = [
        Piece(begun, "startup", "Python starts"),
        Piece(round((ran + waited)[loading].sum()), "imports", "imports", _imported(report, thread)),
        Piece(starved, "cpu", "waits for a CPU"),
        *_functions(code, stack[~loading], ran[~loading], native),
        *_waits(code, stack[~loading], waited[~loading]),
    ]
    least = _LEAST * max(whole - starved, 0)
    kept = sorted((piece for piece in pieces if piece.ns >= least and piece.ns > 0), key=lambda piece: -piece.ns)
    return tuple(kept[:most])


_Key = tuple[str, str, int | None]  # function, file, first line; empty: code around the program's own
_AROUND: _Key = ("", "", None)


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


def _functions(code: OwnCode, stack: Int64Array, weight: Float64Array, native: _Native) -> list[Piece]:
    """Time by own function; where a program has none of its own (a tool that is installed), by package."""
    own = code.own[stack]
    if float(weight[own >= 0].sum()) < _OWN * float(weight.sum()):
        return _packages(code, stack, weight)
    spent: dict[_Key, _Spent] = {}
    for position, ns in _summed(stack, weight):
        anchor = int(code.own[position])
        if anchor < 0:
            spent.setdefault(_AROUND, _Spent()).add(ns, 0, _package_at(code, position))
            continue
        frame = code.frames.frame(anchor)
        key = (frame.function, frame.file or "", frame.first_line)
        spent.setdefault(key, _Spent()).add(ns, frame.line or 0, code.called(position, anchor))
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
    return [Piece(round(sums[package]), "package", package, f"most in {_most(spent[package])[0]}") for package in largest]


def _waits(code: OwnCode, stack: Int64Array, weight: Float64Array) -> list[Piece]:
    spent: dict[str, dict[str, float]] = {}
    for position, ns in _summed(stack, weight):
        at, own = int(code.python[position]), int(code.own[position])
        frame = code.frames.frame(at) if at >= 0 else Frame("python", "?")
        kind = next((text for files, text in _WAITS if any(part in (frame.file or "") for part in files)), "(sleep, file or lock)")
        shown = code.frames.frame(own) if own >= 0 else frame
        place = f"{shown.function}  {(shown.file or '').rpartition('/')[2]}:{shown.line}"
        place += f", in {package_of(frame.file or '')}" if own >= 0 and at != own else ""
        places = spent.setdefault(kind, {})
        places[place] = places.get(place, 0.0) + ns
    return [Piece(round(sum(places.values())), "waiting", f"waits {kind}", _most(places)[0]) for kind, places in spent.items()]


def _imported(report: Report, thread: int) -> str:
    """The packages whose modules took longest, with their shares."""
    if not report.tables["imports"]:
        return ""
    rows = report.table("imports", ["thread", "name", "self"])
    rows = rows.filter(pc.equal(rows["thread"], thread))
    sums: Counter[str] = Counter()
    for name, spent in zip(pc.cast(rows["name"], "string").to_pylist(), rows["self"].to_pylist(), strict=True):
        sums[(name or "").partition(".")[0]] += spent
    whole = max(sums.total(), 1)
    shown = [f"{name} {spent / whole:.0%}".replace("%", " %") for name, spent in sums.most_common(3) if spent >= 0.05 * whole]
    return ", ".join(shown)


def _divided(report: Report, thread: int, seen: pa.Table, whole: int) -> tuple[Float64Array, Float64Array, int]:
    """Divide `whole` ns: return what of it each sample stands for, running and waiting, and the time without a CPU that could have run.

    Samples are rarer where no CPU is free, for the sampler neither: so the scheduler's sums count, where they are there, and samples
    say only what was done in them.
    """
    weight = np.asarray(seen["weight"].to_numpy(), np.float64)
    if not report.tables["thread_states"]:
        on = np.asarray(seen["on_cpu"].to_numpy(zero_copy_only=False), bool)
        weight *= whole / max(weight.sum(), 1)
        return np.where(on, weight, 0), np.where(on, 0, weight), 0
    rows = report.table("thread_states", ["thread", "start", "end", "state"])
    rows = rows.filter(pc.equal(rows["thread"], thread))
    state = pc.cast(rows["state"], "string")
    start, end = (np.asarray(rows[name].to_numpy(), np.int64) for name in ("start", "end"))
    # each sample is one of the time since the tick before
    until = np.asarray(seen["end"].to_numpy(), np.int64)
    since = np.asarray(seen["start"].to_numpy(), np.int64) - (weight / np.maximum(seen["count"].to_numpy(), 1)).astype(np.int64)
    sums, parts = {}, {}
    for name in ("running", "runnable", "blocked"):
        mine = np.asarray(pc.equal(state, name).to_numpy(zero_copy_only=False), bool)
        sums[name] = int((end - start)[mine].sum())
        parts[name] = _within(start[mine], end[mine], until) - _within(start[mine], end[mine], since)
    known = max(sum(sums.values()), 1)
    ran, waited = parts["running"].astype(np.float64), parts["blocked"].astype(np.float64)
    ran *= sums["running"] / known * whole / max(ran.sum(), 1)
    waited *= sums["blocked"] / known * whole / max(waited.sum(), 1)
    return ran, waited, round(sums["runnable"] / known * whole)


def _within(start: Int64Array, end: Int64Array, time: Int64Array) -> Int64Array:
    """How much of the intervals, which are in order and apart, lies before each time."""
    if not len(start):
        return np.zeros(len(time), np.int64)
    before = np.concatenate(([0], np.cumsum(end - start)))
    at = np.searchsorted(start, time, side="right")
    last = np.maximum(at - 1, 0)
    inside = np.where(at > 0, np.clip(time - start[last], 0, (end - start)[last]), 0)
    return np.asarray(np.where(at > 0, before[last] + inside, 0), np.int64)


class _Native:
    """In which library the native samples of each own function ended."""

    def __init__(self, code: OwnCode, samples: pa.Table) -> None:
        self._modules: dict[tuple[str, str, int | None], Counter[str]] = {}
        modules, module = code.frames.texts("module")
        for position, count in zip(*np.unique(code.frames.positions(samples["stack"]), return_counts=True), strict=True):
            anchor = int(code.own[position])
            if anchor >= 0:
                frame = code.frames.frame(anchor)
                name = modules[module[position]] if 0 <= module[position] < len(modules) else ""
                self._modules.setdefault((frame.function, frame.file or "", frame.first_line), Counter())[_short(name)] += int(count)

    def where(self, key: tuple[str, str, int | None]) -> str:
        """Say where most of an own function's native samples ended; empty where there are too few."""
        counts = self._modules.get(key)
        if not counts or counts.total() < _NATIVE:
            return ""
        name, count = counts.most_common(1)[0]
        if count < _MOSTLY * counts.total():
            return ""
        return f"in {name}" if name else "Python's own bytecode"


def _native(code: OwnCode, samples: pa.Table) -> _Native:
    return _Native(code, samples.filter(pc.equal(pc.cast(samples["kind"], "string"), "native")))


def _short(module: str) -> str:
    """`libopenblas64_p-r0-1.so` as libopenblas64_p; empty for the interpreter and the C library below it."""
    name = module.rpartition("/")[2]
    if not name or name.startswith(_INTERPRETER) or name.startswith("["):
        return ""
    return name.partition(".so")[0].partition(".cpython-")[0].partition("-")[0]
