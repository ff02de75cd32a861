"""Sums the work of other threads and processes while the main thread waited."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.cpu.native_places import NativePlaces
from warplens.analysis.cpu.own_code import OwnCode
from warplens.analysis.cpu.pieces import Piece, functions, imported, waits
from warplens.analysis.cpu.samples import waiting_threads
from warplens.analysis.cpu.thread_time import ThreadTime, own_code
from warplens.arrays import Float64Array, Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

_PARTS = 3
_LEAST = 0.1  # share of what ran from which on a part has a line
_LEAST_WAIT = 0.1  # share of the run
_ELSEWHERE = 0.8  # share of what ran from which on other processes did it
_WORTH = (
    "(sleep, file or lock)",
    "for the network",
)  # who waits for other threads or for events waits for work


def others(report: Report, native: NativePlaces, main: ThreadTime, threads: list[ThreadTime]) -> list[Piece]:
    """Return what other threads ran, its largest parts, and where own code waited in them.

    Nothing where they hardly ran.
    """
    code = own_code(report)
    stack, ran = _joined(threads, [time.ran for time in threads])
    whole = float(ran.sum())
    if whole < 1:
        return []
    active = [time for time in threads if time.ran.any()]
    loading = code.importing[stack]
    parts = [
        Piece(
            round(ran[loading].sum()),
            "part",
            "imports",
            place=imported(report, [time.thread for time in active]),
        ),
        *functions(code, stack[~loading], ran[~loading], native=native),
    ]
    shown = sorted((part for part in parts if part.ns >= _LEAST * whole), key=lambda part: -part.ns)[:_PARTS]
    return [
        Piece(round(whole), "others", f"{_who(main, active)} ran"),
        *(Piece(part.ns, "part", part.text, place=part.place) for part in shown),
        *_waited(code, main, [time for time in threads if time.thread not in waiting_threads(report)]),
    ]


def _who(main: ThreadTime, threads: list[ThreadTime]) -> str:
    """Name the threads: as processes, where nearly all of it ran in others than that of the main thread."""
    number, what = len(threads), "thread"
    elsewhere = [time for time in threads if time.process != main.process]
    ran = sum(float(time.ran.sum()) for time in threads)
    if sum(float(time.ran.sum()) for time in elsewhere) >= _ELSEWHERE * ran:
        number, what = len({time.process for time in elsewhere}), "process"
    plural = "" if number == 1 else "es" if what == "process" else "s"
    return f"{number} other {what}{plural}"


def _waited(code: OwnCode, main: ThreadTime, threads: list[ThreadTime]) -> list[Piece]:
    """Return the wait of the program's own code in other threads that held them up longest."""
    stack, waited = _joined(threads, [time.waited for time in threads])
    own = code.own[stack] >= 0
    for piece in sorted(waits(code, stack[own], waited[own]), key=lambda piece: -piece.ns):
        kind = piece.text.removeprefix("waits ")
        if kind in _WORTH and piece.ns >= _LEAST_WAIT * main.whole:
            return [Piece(piece.ns, "waited", f"waited {kind}", place=piece.place)]
    return []


def _joined(threads: list[ThreadTime], weights: list[Float64Array]) -> tuple[Int64Array, Float64Array]:
    return (
        np.concatenate([np.zeros(0, np.int64), *(time.stack for time in threads)]),
        np.concatenate([np.zeros(0), *weights]),
    )
