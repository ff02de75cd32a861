"""Rows of a timeline beside those of ranges, with the rows above them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.exporters.tracks import Tracks

if TYPE_CHECKING:
    from warplens.report import Report

NONE = -1
_PRIMES = np.array(
    [0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64
)


@dataclass(frozen=True)
class ExportRow:
    """A row of the timeline: below the row `above`, its thread or its process. Both by position.

    `place` orders the rows that have one above them; `gpu`: it shows a GPU, not the host; `full` is a name that says enough where rows
    cannot be nested; `about` names what is shown by the keys of the report.
    """

    name: str
    full: str
    process: int
    thread: int | None = None
    above: int | None = None
    place: int = 0
    gpu: bool = False
    about: Mapping[str, int] = field(default_factory=dict)


class ExportRows:
    """The rows of a report; rows come after the one they are below."""

    def __init__(self, report: Report, tracks: Tracks) -> None:
        self._report = report
        self._processes = {process.key: index for index, process in enumerate(tracks.processes)}
        self._threads = {thread.key: index for index, thread in enumerate(tracks.threads)}
        self._tracks = tracks
        self.rows: list[ExportRow] = []
        self._found: dict[tuple[str, int, int, int], int] = {}
        self._sorted: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]] = {}

    def find(
        self, what: str, process: Int64Array, first: Int64Array, second: Int64Array
    ) -> npt.NDArray[np.int32]:
        """Return the row of each event of a kind: by process, and thread or context and stream (-1: none)."""
        keys, rows = self._sorted[what]
        wanted = _mixed(process, first, second)
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        if not (keys[places] == wanted).all():
            raise ReportError(
                f"{self._report.path} is broken: the rows of {what} changed while they were read"
            )
        return rows[places]

    def place(self, what: str, process: int, first: int, second: int) -> int | None:
        """Return the row of one thing; None if it has none."""
        return self._found.get((what, process, first, second))

    def _sort(self) -> None:
        """Make what was put findable."""
        for what in {key[0] for key in self._found}:
            own = {key[1:]: row for key, row in self._found.items() if key[0] == what}
            mixed = _mixed(*(np.array(column, np.int64) for column in zip(*own, strict=True)))
            order = np.argsort(mixed)
            self._sorted[what] = mixed[order], np.array(list(own.values()), np.int32)[order]

    def _of_thread(self, what: str, name: str, record: dict[str, Any]) -> None:
        thread = record["thread"]
        if thread is not None and thread not in self._threads:
            raise ReportError(
                f"{self._report.path} is broken: its table {what.split()[0]} names the thread {thread}, which it lacks"
            )
        place = None if thread is None else self._threads[thread]
        full = name if place is None else f"{self._tracks.threads[place].name} {name}"
        key = (what, record["process"], NONE if thread is None else thread, NONE)
        about = {"process": record["process"], **({} if thread is None else {"thread": thread})}
        self._put(key, ExportRow(name, full, self._process(record["process"]), thread=place, about=about))

    def _process(self, key: int) -> int:
        if key not in self._processes:
            raise ReportError(
                f"{self._report.path} is broken: its tables name the process {key}, which it lacks"
            )
        return self._processes[key]

    def _put(self, key: tuple[str, int, int, int], row: ExportRow) -> int:
        if key not in self._found:
            self._found[key] = len(self.rows)
            self.rows.append(row)
        return self._found[key]


def _mixed(process: Int64Array, first: Int64Array, second: Int64Array) -> npt.NDArray[np.uint64]:
    """Return one number for three.

    Which of the few keys of a report meet in it is as good as never the case.
    """
    with np.errstate(over="ignore"):
        mixed: npt.NDArray[np.uint64] = process.astype(np.uint64) * _PRIMES[0]
        mixed = (mixed ^ mixed >> np.uint64(29)) + first.astype(np.uint64) * _PRIMES[1]
        mixed = (mixed ^ mixed >> np.uint64(31)) + second.astype(np.uint64) * _PRIMES[2]
        return mixed ^ mixed >> np.uint64(30)
