"""The launches of one process in order of time: the agent's note before each, and its records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.chosen import LATEST, Spans
from warplens.spool.kernels import buffers as kernel_buffers
from warplens.spool.wide import FIELDS, WideRecords

NO_READ = 0  # instead of an IntrakernelResult
_MOST_SPAN = 1 << 40  # ns: units that ran longer are damage


@dataclass
class Launches:
    """Rows of both records, side by side; `read` is -1 if there is none."""

    noted: npt.NDArray[Any]
    reads: npt.NDArray[Any]
    read: Int64Array

    def __len__(self) -> int:
        return len(self.noted)

    @property
    def launched(self) -> Int64Array:
        """Just before each launch."""
        return self.noted["start"].astype(np.int64)

    def of_read(self, name: str, nothing: int = 0) -> Int64Array:
        """Return a field of what was read, `nothing` if nothing was."""
        values = np.append(self.reads[name].astype(np.int64), nothing)
        return values[self.read]

    @property
    def result(self) -> Int64Array:
        """The result of each launch: an IntrakernelResult."""
        return self.of_read("domain", NO_READ)

    @property
    def over(self) -> Int64Array:
        """When each was known to be over."""
        return self.of_read("start", LATEST)

    @property
    def timed(self) -> npt.NDArray[np.bool_]:
        """Marks the launches that have times of the GPU."""
        first, last = self.of_read("first_ns"), self.of_read("last_ns")
        return (
            (first > 0)
            & (last >= first)
            & (last - first <= _MOST_SPAN)
            & (last <= LATEST)
            & (self.of_read("units") > 0)
        )


def read_launches(noted: WideRecords | None, reads: WideRecords | None, spans: Spans) -> Launches | None:
    """Return the launches within the windows; None if there are none."""
    if noted is None:
        return None
    mine = noted.rows(noted.offsets())
    start = mine["start"].astype(np.int64)
    good = (start > 0) & (start <= LATEST) & (spans.place(start) >= 0)
    mine = mine[good]
    mine = mine[np.argsort(mine["start"], kind="stable")]
    if not len(mine):
        return None
    theirs = reads.rows(reads.offsets()) if reads is not None else np.empty(0, _NOTHING)
    order = np.argsort(theirs["launch"], kind="stable")
    sought = theirs["launch"][order]
    # "right" - 1 is the last record with that number. A number that is absent lands on another one,
    # or on -1, and `known` drops it; the appended 0 and -1 are what index -1 reads.
    place = np.searchsorted(sought, mine["launch"], side="right") - 1  # the last one, should there be several
    known = (place >= 0) & (np.append(sought, 0)[place] == mine["launch"])
    return Launches(mine, theirs, np.where(known, np.append(order, -1)[place], -1))


_NOTHING = np.dtype([(name, "<u8") for name in ("domain", *FIELDS["intrakernel_read"].split())])
STORED = kernel_buffers.STORED
