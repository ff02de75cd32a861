"""Joins pieces of many small launches into one buffer.

Decoding is by arrays, and costs as much for ten warps as for a thousand.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.errors import SpoolError
from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoded import Decoded
from warplens.spool.kernels.decoding import decode

Array = npt.NDArray[Any]
_SMALL = 1 << 18  # bytes; larger pieces are worth decoding by themselves
_MOST = 1 << 20  # bytes of a batch
_MODE, _UNITS, _SLOTS, _STRIDE, _GENERATION, _KEEP, _WANTED = (
    layout.HEADER_WORDS[name] for name in ("mode", "units", "slots", "stride", "generation", "keep", "wanted")
)
_OWN_GENERATION, _CURSOR = layout.UNIT_PLACES["generation"], layout.UNIT_PLACES["cursor"]


class Batch:
    """Pieces, each with the launch that it is of."""

    def __init__(self) -> None:
        self.pieces: list[tuple[Array, int, int]] = []
        self._size = 0
        self._alike: tuple[int, ...] = ()

    @property
    def is_full(self) -> bool:
        """Whether it is worth decoding."""
        return self._size >= _MOST

    def add(self, piece: Array, launch: int, generation: int, apart: int) -> bool:
        """Take a piece; False: it has to be decoded by itself, or after this batch.

        `apart`: what may not be mixed.
        """
        if not layout.HEADER_BYTES < len(piece) <= _SMALL:
            return False
        head = piece[: layout.HEADER_BYTES].view("<u4")
        mode, clock, units, slots, stride = head[_MODE : _STRIDE + 1].tolist()
        plain = (
            stride == layout.UNIT_HEADER_BYTES + layout.RECORD_BYTES * slots
            and len(piece) >= layout.HEADER_BYTES + units * stride
        )
        if not plain or head[0] != layout.MAGIC or mode > 1 or clock != 0 or head[_KEEP] or head[_WANTED]:
            return False
        alike = (mode, apart)
        if self.pieces and alike != self._alike:
            return False
        self._alike = alike
        self.pieces.append((piece, launch, generation))
        self._size += len(piece)
        return True

    def decoded(self) -> tuple[Decoded, Array] | None:
        """Return what all pieces hold, and the launch of each unit.

        None if something is odd, and each has to be looked at alone.
        """
        heads = np.stack([piece[: layout.HEADER_BYTES] for piece, _, _ in self.pieces]).view("<u4")
        units, slots, stride = (heads[:, word].astype(np.int64) for word in (_UNITS, _SLOTS, _STRIDE))
        edges = np.append(0, np.cumsum(units))
        # The units of all pieces become the rows of one matrix, each padded to the widest stride.
        # Pieces of 2 and 3 units have edges [0, 2, 5], and unit i of piece p is row edges[p] + i.
        wide = int(stride.max())
        raw = np.zeros(layout.HEADER_BYTES + int(edges[-1]) * wide, np.uint8)
        body = raw[layout.HEADER_BYTES :].reshape(-1, wide)
        for number, (piece, _, _) in enumerate(self.pieces):
            own = piece[layout.HEADER_BYTES :][: units[number] * stride[number]].reshape(-1, stride[number])
            body[edges[number] : edges[number + 1], : stride[number]] = own
        head = raw[: layout.HEADER_BYTES].view("<u4")
        head[:] = heads[0]
        head[[_UNITS, _SLOTS, _STRIDE, _GENERATION]] = edges[-1], slots.max(), wide, 1
        cursor, generation = (
            body[:, at : at + 4].copy().view("<u4").reshape(-1) for at in (_CURSOR, _OWN_GENERATION)
        )
        wanted = np.array([generation for _, _, generation in self.pieces], np.int64)
        if (cursor > np.repeat(slots, units)).any() or (generation != np.repeat(wanted, units)).any():
            return None
        body[:, _OWN_GENERATION : _OWN_GENERATION + 4] = np.array([1], "<u4").view(np.uint8)
        try:
            answer = decode(raw)
        except SpoolError:
            return None
        if len(answer.units) != edges[-1] or answer.garbled or answer.unended or answer.notes:
            return None
        return answer, np.repeat(np.array([launch for _, launch, _ in self.pieces], np.int64), units)
