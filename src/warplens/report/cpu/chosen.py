"""The records of one type that become rows: those with possible times that a window lets in, in order of start."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.report.chosen import sane
from warplens.report.enclosing import Columns, Enclosing
from warplens.report.place import Place, groups
from warplens.spool.wide import WideRecords

_WORD = 8  # bytes; records begin at multiples of it
NONE = 0xFFFFFFFF


class Chosen:
    """Some records of the process `place`: row after row its thread and start (of the spool's clock), and where it lies."""

    def __init__(self, records: WideRecords, place: Place, *, of: tuple[int, ...] | None = None) -> None:
        """`of`: only records of these domains."""
        self._records, self._place = records, place
        start, end = records.column("start"), records.column("end")
        kept = sane(start, end)
        mine = None if of is None else _among(records.column("domain"), of)
        place.tally.damaged += int((~kept if mine is None else ~kept & mine).sum())
        kept &= place.spans.overlap(start, end)
        if mine is not None:
            kept &= mine
        order = np.flatnonzero(kept)
        del kept, mine
        start = start[order]
        if (start[1:] < start[:-1]).any():
            sort = np.argsort(start, kind="stable")
            order, start = order[sort], start[sort]
            del sort
        # What is around another row comes first where both begin at once.
        tied = np.zeros(len(start) + 1, bool)
        tied[1:-1] = start[1:] == start[:-1]
        tied = np.flatnonzero(tied[1:] | tied[:-1])
        order[tied] = order[tied[np.lexsort((-end[order[tied]], start[tied]))]]
        del end, tied
        self.start: npt.NDArray[np.int64] = start
        words = records.offsets()[order] // _WORD
        self._words = words if len(words) and int(words.max()) > NONE else words.astype(np.uint32)  # memory is what limits how many
        del words
        self.thread: npt.NDArray[np.int32] = place.threads.match(records.column("tid")[order], start)
        self.around: Enclosing | None = None

    def __len__(self) -> int:
        return len(self.start)

    def watch(self) -> None:
        """Look for the range of NVTX around each row, in what `pass_by` gets."""
        self.around = Enclosing(self.thread, self._place.clock(self.start), self._place.thread_base)

    def pass_by(self, ranges: Columns) -> None:
        """Take the ranges of NVTX in the current slice."""
        if self.around is not None:
            self.around.pass_by(ranges)

    def groups(self) -> Iterator[tuple[slice, npt.NDArray[Any], dict[str, pa.Array]]]:
        """Return piece by piece which rows they are, their records, and the columns that all tables have."""
        if self.around is not None:
            self.around.finish()
        for rows in groups(len(self)):
            found = self._records.rows(self._words[rows].astype(np.int64) * _WORD)
            columns = self._place.ids(rows) | self.times(rows, found)
            if self.around is not None:
                columns["range"] = self.around.column(rows)
            yield rows, found, columns

    def ends(self) -> npt.NDArray[np.int64]:
        """Return when each row ends, of the spool's clock."""
        ends = [self._records.rows(self._words[rows].astype(np.int64) * _WORD)["end"].astype(np.int64) for rows in groups(len(self))]
        return np.concatenate([np.empty(0, np.int64), *ends])

    def times(self, rows: slice, found: npt.NDArray[Any]) -> dict[str, pa.Array]:
        """Return thread, start and end."""
        place = self._place
        return {
            "thread": pa.array(place.thread_base + self.thread[rows].astype(np.int64)),
            "start": pa.array(place.clock(self.start[rows])),
            "end": pa.array(place.clock(found["end"].astype(np.int64))),
        }


def _among(values: npt.NDArray[np.int64], wanted: tuple[int, ...]) -> npt.NDArray[np.bool_]:
    """Say which values are wanted, faster than np.isin for the few that there are in a short process."""
    found: npt.NDArray[np.bool_] = np.zeros(len(values), bool)
    for one in wanted:
        found |= values == one
    return found
