"""Shared by the tables of one process: its keys, threads, clock, and a tally of odd records."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.chosen import Spans
from warplens.convert.threads import Threads
from warplens.spool.strings import Strings

ROWS_PER_GROUP = 1 << 16  # at most


@dataclass
class Tally:
    """`damaged`: records with impossible times.

    `early`: pieces of work that began before their calls did, by `early_ns` at most.
    """

    damaged: int = 0
    early: int = 0
    early_ns: int = 0


@dataclass
class Place:
    """One process.

    `first`: the id of the first row of each table; `clock` corrects times of the spool.
    """

    process: int
    first: int
    thread_base: int
    clock: Callable[[Int64Array], Int64Array]
    strings: Strings
    spans: Spans
    threads: Threads
    most: int | None = None  # rows that are made and written at once; None: ROWS_PER_GROUP
    tally: Tally = field(default_factory=Tally, kw_only=True)

    def groups(self, count: int) -> Iterator[slice]:
        """Return the rows that are made and written at once."""
        pieces = max(round(count / self.step), 1)  # none is small
        for number in range(pieces if count else 0):
            yield slice(count * number // pieces, count * (number + 1) // pieces)

    @property
    def step(self) -> int:
        """About how many rows that are."""
        return min(self.most or ROWS_PER_GROUP, ROWS_PER_GROUP)

    def ids(self, rows: slice) -> dict[str, pa.Array]:
        """Return the first columns of some rows."""
        count = rows.stop - rows.start
        return {
            "id": pa.array(np.arange(self.first + rows.start, self.first + rows.stop, dtype=np.int64)),
            "process": pa.array(np.full(count, self.process, np.int64)),
        }


def ordered(kept: npt.NDArray[np.bool_], start: Int64Array) -> Int64Array:
    """Return the numbers of the records that are kept, in order of start."""
    rows = np.flatnonzero(kept)
    return rows[np.argsort(start[rows], kind="stable")]
