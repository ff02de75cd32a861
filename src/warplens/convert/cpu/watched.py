"""Rows that get the innermost range of NVTX around them, made while the ranges go by slice by slice."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.cpu.chosen import Chosen, Piece
from warplens.convert.enclosing import Around, Columns
from warplens.convert.place import Place


class Watched:
    """The pieces of `chosen`, each with the id of the range around each of its rows, as soon as that is known. -1: none."""

    def __init__(self, chosen: Chosen, place: Place) -> None:
        self._pieces, self._clock = chosen.pieces(), place.clock
        self._around = Around(chosen.threads, place.thread_base)
        self._piece: Piece | None = None
        self._time = self._found = np.empty(0, np.int64)
        self._done = 0

    def pass_by(self, ranges: Columns) -> Iterator[tuple[Piece, Int64Array]]:
        """Take the next ranges, in order of start: later ones begin no earlier than the last of them."""
        begins = ranges["start"]
        taken = 0
        while taken < len(begins) and (piece := self._next()) is not None:
            behind = max(int(np.searchsorted(self._time, begins[-1], side="left")), self._done)
            whole = behind == len(self._time)
            until = int(np.searchsorted(begins, self._time[-1], side="right")) if whole else len(begins)
            until = max(until, taken)
            self._find({name: column[taken:until] for name, column in ranges.items()}, behind)
            taken = until
            if not whole:
                return
            yield self._whole(piece)

    def finish(self) -> Iterator[tuple[Piece, Int64Array]]:
        """Return the address after the last range."""
        while (piece := self._next()) is not None:
            self._find({}, len(self._time))
            yield self._whole(piece)

    def _next(self) -> Piece | None:
        if self._piece is None and (piece := next(self._pieces, None)) is not None:
            self._piece, self._time, self._done = piece, np.ascontiguousarray(self._clock(piece.start)), 0
            self._found = np.full(len(self._time), -1, np.int64)
        return self._piece

    def _find(self, ranges: Columns, behind: int) -> None:
        rows = slice(self._done, behind)
        assert self._piece is not None
        self._around.find(ranges, self._piece.thread[rows], self._time[rows], self._found[rows])
        self._done = behind

    def _whole(self, piece: Piece) -> tuple[Piece, Int64Array]:
        self._piece = None
        return piece, self._found
