"""Decodes the buffers of launches in order. Small pieces together, others one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.convert.intrakernel.batch import Batch
from warplens.convert.intrakernel.kept import Kept
from warplens.convert.intrakernel.regions import Regions, Where
from warplens.convert.intrakernel.tally import Tally
from warplens.errors import SpoolError
from warplens.model.intrakernel_layout import HEADER_WORDS
from warplens.spool.kernels.decoded import Decoded
from warplens.spool.kernels.decoding import decode

_UNITS, _SAMPLE_BLOCKS, _KEEP = (HEADER_WORDS[name] for name in ("units", "sample_blocks", "keep"))


@dataclass
class Places:
    """Of each launch: its id, offset, the edges of its kernel, and the text of its tags.

    `names`: the names in each text.
    """

    id: Int64Array
    offset: Int64Array
    first: Int64Array
    last: Int64Array
    text: Int64Array
    names: Mapping[int, Mapping[int, str]]

    def where(self, launch: int | Int64Array, text: int) -> Where:
        """Return where times of a launch, or those of each unit, belong."""
        own = (self.id[launch], self.offset[launch], self.first[launch], self.last[launch])
        id_, offset, first, last = (int(value) for value in own) if isinstance(launch, int) else own
        return Where(id_, offset, first=first, last=last, tags=self.names[text])


class Gather:
    """Fills regions and tally."""

    def __init__(self, places: Places, regions: Regions, tally: Tally) -> None:
        self._places, self._regions, self._tally = places, regions, tally
        self._batch = Batch()

    def launch(self, pieces: Iterator[npt.NDArray[np.uint8]], launch: int, generation: int) -> None:
        """Take the pieces of a launch."""
        text = int(self._places.text[launch])
        kept = Kept()
        for piece in pieces:
            if self._batch.is_full:
                self.flush()
            if self._batch.add(piece, launch, generation, text):
                continue
            self.flush()
            if not self._batch.add(piece, launch, generation, text):
                self._alone(piece, launch, generation, kept=kept)
        for decoded in kept.pieces():
            self._take(decoded, launch)
        self._tally.surplus += kept.surplus

    def flush(self) -> None:
        """Decode what waits."""
        batch, self._batch = self._batch, Batch()
        if not batch.pieces:
            return
        together = batch.decoded()
        if together is None:
            for piece, launch, generation in batch.pieces:
                self._alone(piece, launch, generation, kept=None)
            return
        whole, of = together
        tally, events = self._tally, whole.units["events"].astype(np.int64)
        for piece, launch, _ in batch.pieces:
            tally.sampled[launch] = int(piece[: 4 * _KEEP].view("<u4")[_SAMPLE_BLOCKS])
            tally.mode[launch], tally.clock[launch] = whole.mode, whole.clock
        np.add.at(tally.units, of, 1)
        np.add.at(tally.events, of, events)
        np.maximum.at(tally.needed, of, np.maximum(events, 1))
        self._regions.add(whole, self._places.where(of, int(self._places.text[of[0]])))

    def _alone(self, piece: npt.NDArray[np.uint8], launch: int, generation: int, kept: Kept | None) -> None:
        tally = self._tally
        try:
            decoded = decode(piece, generation=generation)
        except SpoolError:
            tally.broken += 1
            return
        head = piece[: 4 * _KEEP + 4].view("<u4")
        tally.sampled[launch] = int(head[_SAMPLE_BLOCKS])
        tally.mode[launch], tally.clock[launch] = decoded.mode, decoded.clock
        tally.units[launch] += len(decoded.units)
        tally.dropped[launch] += decoded.dropped
        tally.unended[launch] += decoded.unended
        tally.needed[launch] = max(tally.needed[launch], decoded.needed_slots)
        tally.garbled += decoded.garbled
        if decoded.units_lost:
            tally.wanted[launch] = decoded.units_lost + int(head[_UNITS])
        keep = int(head[_KEEP])
        if keep and kept is not None:
            kept.add(decoded, keep)
        else:
            self._take(decoded, launch)

    def _take(self, decoded: Decoded, launch: int) -> None:
        self._tally.events[launch] += len(decoded.events)
        self._regions.add(decoded, self._places.where(launch, int(self._places.text[launch])))
