"""Keeps the first events of a launch (`keep` of its buffer): each piece knows only its own events."""

from __future__ import annotations

import numpy as np

from warplens.spool.kernels.decoded import Decoded


class Kept:
    """Holds the pieces of a launch until all were seen.

    No more events than twice as many as are wanted, and those of a piece.
    """

    def __init__(self) -> None:
        self.surplus = 0
        self._keep = 0
        self._pieces: list[Decoded] = []
        self._events = 0

    def add(self, decoded: Decoded, keep: int) -> None:
        """Take a piece.

        `keep`: how many events of the launch are wanted; the same for all of its pieces.
        """
        self._keep = keep
        self.surplus += decoded.surplus
        self._pieces.append(decoded)
        self._events += len(decoded.events)
        if self._events > 2 * keep:
            self._trim()

    def pieces(self) -> list[Decoded]:
        """Return the pieces with the events that are wanted."""
        self._trim()
        return self._pieces

    def _trim(self) -> None:
        if self._events <= self._keep:
            return
        # Which events are among the first `keep` of all pieces together; each piece then keeps its
        # part of them.
        edges = np.cumsum([0, *(len(piece.events) for piece in self._pieces)])
        start = np.concatenate([piece.events["start"] for piece in self._pieces])
        first = np.zeros(len(start), bool)
        first[np.argsort(start, kind="stable")[: self._keep]] = True
        for piece, begin, end in zip(self._pieces, edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            piece.events = piece.events[first[begin:end]]
            piece.units["events"] = np.bincount(piece.events["unit"], minlength=len(piece.units))
        self.surplus += self._events - self._keep
        self._events = self._keep
