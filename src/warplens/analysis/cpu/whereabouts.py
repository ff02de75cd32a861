"""Divides the time of a program: from samples of Python, else from native ones.

Functions, imports, start-up, waiting, waiting for a CPU.

Asked of one thread: the main thread of the Python process that was there longest. Its wall time is divided among what its samples saw;
what the scheduler says of it, where that is known, divides it into running, waiting for a CPU, and waiting.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.native_places import NativePlaces
from warplens.analysis.cpu.native_time import native_time
from warplens.analysis.cpu.others import others
from warplens.analysis.cpu.own_code import OwnCode
from warplens.analysis.cpu.pieces import MOSTLY, Piece, functions, imported, waits
from warplens.analysis.cpu.thread_time import ThreadTime, of_kind, own_code, read_samples, thread_times

if TYPE_CHECKING:
    from warplens.report.report import Report

_MOST = 8
_LEAST_PIECES = 4  # of the main thread, where other threads have lines, too
_LEAST = 0.02  # share of the whole below which an item gets no line
_REST = 0.005  # share of the whole from which on what remains has one


@dataclass(frozen=True)
class Whereabouts:
    """The wall time `whole` (ns) of the main thread of `pid`, divided into `pieces`, the largest first.

    What is small is together in the piece `other`. Pieces `others`, `part` and `waited` are what other threads and processes did
    meanwhile, and no part of the whole.
    """

    pid: int
    whole: int
    pieces: tuple[Piece, ...]
    python: bool = True  # whether samples of Python divide it, not native ones

    @property
    def hot(self) -> Piece | None:
        """The function of the program's own code that holds most, if any."""
        return next((piece for piece in self.pieces if piece.kind == "function"), None)


def whereabouts(report: Report, low: int = 0, high: int = 1 << 62, most: int = _MOST) -> Whereabouts | None:
    """Return where the time of the processes with keys from `low` to `high` went.

    None where neither Python was sampled nor the main thread of one program without it.
    """
    threads = thread_times(report, (low, high))
    main = next((time for time in threads if time.main), None)
    if main is None:
        return _without_python(report, low, high, most=most)
    code = own_code(report)
    samples = of_kind(read_samples(report, low, high), "native")
    mine = pc.equal(samples["thread"], main.thread)
    pieces = _pieces(report, code, main, native=NativePlaces.of(code, samples.filter(mine)), most=most)
    waited = sum(piece.ns for piece in pieces if piece.kind == "waiting")
    if waited >= MOSTLY / 2 * main.whole:
        rest = NativePlaces.of(code, samples.filter(pc.invert(mine)))
        beside = others(report, rest, main, threads=[time for time in threads if time is not main])
        pieces = (*_fewer(pieces, main.whole, max(most - len(beside), _LEAST_PIECES)), *beside)
    return Whereabouts(main.pid, main.whole, pieces)


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
            place=imported(report, [time.thread]),
        ),
        Piece(time.starved, "cpu", "waits for a CPU"),
        *functions(code, stack, time.ran[~loading], native=native),
        *waits(code, stack, time.waited[~loading]),
    ]
    return _largest(pieces, time.whole, time.starved, most=most)


def _without_python(report: Report, low: int, high: int, most: int) -> Whereabouts | None:
    native = native_time(report, low, high)
    if native is None:
        return None
    pid, whole, pieces = native
    starved = sum(piece.ns for piece in pieces if piece.kind == "cpu")
    return Whereabouts(pid, whole, _largest(pieces, whole, starved, most=most), python=False)


def _largest(pieces: list[Piece], whole: int, starved: int, most: int) -> tuple[Piece, ...]:
    """Return the pieces that are worth a line, the largest first, and what remains as the last one."""
    least = _LEAST * max(whole - starved, 0)
    kept = sorted(
        (piece for piece in pieces if piece.ns >= least and piece.ns > 0), key=lambda piece: -piece.ns
    )
    return _fewer(tuple(kept), whole, most)


def _fewer(pieces: tuple[Piece, ...], whole: int, most: int) -> tuple[Piece, ...]:
    """Return the largest pieces, and what remains of the whole as the last one: `most` pieces in all."""
    named = [piece for piece in pieces if piece.kind != "other"]
    for number in (most, most - 1):
        kept = named[:number]
        rest = whole - sum(piece.ns for piece in kept)
        if rest < _REST * whole:
            return tuple(kept)
    return (*kept, Piece(rest, "other", "other"))
