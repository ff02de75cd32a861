"""Frees the pages of a process's spool whose records are rows now.

Their space goes back to the disk.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from warplens.arrays import Int64Array, distinct
from warplens.spool import packed
from warplens.spool.chunks import RECORDS, Chunk
from warplens.spool.events import Events
from warplens.spool.layout import PAGE, Layouts
from warplens.spool.packed import Span
from warplens.spool.reader import SpoolFile

# Slices look again at up to 4096 records around one that begins later, and at what is right behind a start/end range.
_LOOKED_AT_AGAIN = 4097
_LEAST = 64 << 10  # bytes that are worth a block
_AT_ONCE = 8 << 20  # bytes
_LATEST = 1 << 62
_TIMED = ("range", "start_end", "mark", "sample", "operation", "op")
_READ_ONCE = (*_TIMED, "thread_switch", "task_switch", "origin")


@dataclass
class GivingBack:
    """Of the spool at `path`.

    Pages with records that describe threads, domains and the like stay: each step reads them.
    """

    path: Path
    _looked: dict[int, int] = field(
        default_factory=dict
    )  # offset of a chunk -> the page in it where the next look begins
    _off: bool = field(default_factory=lambda: not packed.can_take_out())

    def step(self, spool: SpoolFile, events: Events, until: int) -> int:
        """Free pages whose records were all read and begin before `until`; return the freed bytes.

        `until`: ns, the raw clock.
        """
        if self._off:
            return 0
        spans: list[Span] = []
        looked: dict[int, int] = {}
        for chunk in spool.chunks:
            if chunk.kind == RECORDS and sum(end - begin for begin, end in spans) < _AT_ONCE:
                mine, looked[chunk.offset] = self._used(spool, chunk, events.scanned(chunk), until=until)
                spans += mine
        events.release()
        try:
            given = packed.take_out(self.path, spans, spool.layouts.stride) if spans else 0
        except OSError:
            self._off = True
            return 0
        if given:
            self._looked |= looked
        return given

    def _used(self, spool: SpoolFile, chunk: Chunk, scanned: int, until: int) -> tuple[list[Span], int]:
        """Return the pages of a chunk that may go, and where to look next."""
        stride = spool.layouts.stride
        begin = self._looked.get(chunk.offset, _up(chunk.offset))
        if begin + PAGE > chunk.offset + scanned:
            return [], begin
        first = (begin - chunk.offset) // stride
        records = spool.records_of(chunk, first, scanned // stride - first)
        later = np.flatnonzero(records["start"] >= until)
        later = later[
            _table(spool.layouts, _TIMED)[records["type"][later]] & (records["start"][later] <= _LATEST)
        ]
        end = chunk.offset + scanned
        if len(later):
            end = chunk.offset + (first + int(later[0]) - _LOOKED_AT_AGAIN) * stride
        end = end // PAGE * PAGE
        if end - begin < (PAGE if scanned + stride > chunk.size else _LEAST):
            return [], begin
        again = np.flatnonzero(~_table(spool.layouts, _READ_ONCE)[records["type"]])
        places = chunk.offset + (first + again) * stride
        return _without(begin, end, np.concatenate([places, places + stride - 1]) // PAGE * PAGE), end


def _table(layouts: Layouts, names: tuple[str, ...]) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    table = np.zeros(256, bool)
    table[[layouts.ids[name] for name in names if name in layouts.ids]] = True
    return table


def _without(begin: int, end: int, kept: Int64Array) -> list[Span]:
    """Return the stretches between `begin` and `end` that have none of the pages `kept`."""
    inside = distinct(kept[(kept >= begin) & (kept < end)]).tolist()
    edges = [begin, *(edge for page in inside for edge in (page, page + PAGE)), end]
    return [(edges[at], edges[at + 1]) for at in range(0, len(edges), 2) if edges[at] < edges[at + 1]]


def _up(offset: int) -> int:
    return -(-offset // PAGE) * PAGE
