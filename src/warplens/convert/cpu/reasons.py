"""Finds why threads were blocked: the OS call, or the wait for the GIL, at that time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import distinct
from warplens.convert.cpu.chosen import Chosen, Piece
from warplens.convert.cpu.python import WAIT
from warplens.convert.enclosing import Around, Columns, Stream
from warplens.convert.texts import UNKNOWN
from warplens.convert.words import labelled
from warplens.spool.strings import Strings

_GIL = -2


class Reasons:
    """The reasons of the rows of `thread_states`, whose pieces come in order.

    OS calls and the GIL are read beside them.
    """

    def __init__(self, states: Chosen, strings: Strings, calls: Chosen | None, lock: Chosen | None) -> None:
        self._strings = strings
        self._beside = [
            (Around(states.threads), Stream(ranges)) for ranges in (_ranges(calls), _ranges(lock, WAIT))
        ]

    def column(self, piece: Piece, blocked: npt.NDArray[np.bool_]) -> pa.DictionaryArray:
        """Return the reasons of the next rows; null where there is none."""
        calls, waits = (around.among(ranges, piece.thread, piece.start) for around, ranges in self._beside)
        # A thread waits for the GIL within a call, which tells less.
        reason = np.where(waits >= 0, _GIL, calls)
        words = {
            number: self._strings.get(number) or UNKNOWN for number in distinct(reason[reason >= 0]).tolist()
        }
        return labelled(reason, words | {_GIL: "GIL"}, absent=~blocked | (reason == -1))


def _ranges(chosen: Chosen | None, of: int | None = None) -> Iterator[Columns]:
    for piece in () if chosen is None else chosen.pieces():
        mine = slice(None) if of is None else piece.fields["domain"] == of
        start = np.ascontiguousarray(piece.start[mine])
        if len(start):
            yield {
                "thread": piece.thread[mine].astype(np.int64),
                "start": start,
                "end": np.ascontiguousarray(piece.end[mine]),
                "id": piece.fields["name"][mine].astype(np.int64),
                "style": np.zeros(len(start), np.int32),
            }
