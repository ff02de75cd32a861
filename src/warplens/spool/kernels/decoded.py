"""The result of decoding a buffer of in-kernel records: units, events, and losses."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.model.words import counted, was

Array = npt.NDArray[Any]

UNIT = np.dtype(
    [
        ("index", "<u4"),
        ("cta", "<u4"),
        ("warp", "<u4"),
        ("sm_begin", "<u4"),
        ("sm_end", "<u4"),
        ("ended", "?"),
        ("start", "<i8"),
        ("end", "<i8"),
        ("events", "<u4"),
        ("dropped", "<u4"),
    ],
    align=True,
)
EVENT = np.dtype(
    [
        ("unit", "<u4"),
        ("tag", "<u2"),
        ("flags", "u1"),
        ("reserved", "u1"),
        ("start", "<i8"),
        ("end", "<i8"),
        ("payload", "<u4"),
    ],
    align=True,
)


@dataclass(repr=False)
class Decoded:
    """One launch out of a buffer.

    Times are ns of the GPU's global timer (or of whatever clock a simulator has).

    Attributes:
        units: a row for each unit that ran in the launch: its number (`index`), CTA, warp, SM at begin and end, whether it came to its
            end, `start` and `end`, how many events are here and how many were dropped. A unit without end ends with its last event.
        events: a row for each region and mark: the row of its unit, tag, flags (1 mark, 2 asynchronous, 8 it has a payload),
            `start`, `end`, `payload`. Those of a unit are together, in the order in which they ended.
        mode, clock, generation, slots: what the head of the buffer says.
        dropped: records that did not fit, of all units; `surplus` more were left out because fewer were requested (`keep`).
        units_lost: units for which there was no slice (mode `claim`).
        garbled: records that cannot be of this launch, left out.
        needed_slots: slots with which nothing would have been dropped.
        notes: what else there is to say, a sentence each.
    """

    units: Array
    events: Array
    mode: str = "slices"
    clock: str = "globaltimer"
    generation: int = 1
    slots: int = 0
    dropped: int = 0
    surplus: int = 0
    units_lost: int = 0
    garbled: int = 0
    needed_slots: int = 1
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        """Say how much there is in a line, and what is missing."""
        took = f"{(self.end - self.start) / 1000:.1f} us" if len(self.units) else "nothing recorded"
        return f"<{counted(len(self.events), 'event')} of {counted(len(self.units), 'unit')}, {'; '.join([took, *self.losses()])}>"

    @property
    def start(self) -> int:
        """When the first unit began; 0 if none did."""
        return int(self.units["start"].min()) if len(self.units) else 0

    @property
    def end(self) -> int:
        """When the last unit ended; 0 if none began."""
        return int(self.units["end"].max()) if len(self.units) else 0

    @property
    def unended(self) -> int:
        """Units that never came to their end: they left early, or were killed."""
        return int(np.count_nonzero(~self.units["ended"]))

    def losses(self) -> list[str]:
        """Say what is missing and what would have kept it; empty if nothing is."""
        said = []
        if self.dropped:
            hit = int(np.count_nonzero(self.units["dropped"]))
            kept = "the latest are kept" if self.mode == "smem" else "the first are kept"
            said.append(
                f"{counted(self.dropped, 'record')} of {counted(hit, 'unit')} did not fit into "
                f"{self.slots} slots, {kept}; slots={self.needed_slots} holds all"
            )
        if self.units_lost:
            said.append(
                f"{counted(self.units_lost, 'unit')} found no slice; allocate with units={len(self.units) + self.units_lost}"
            )
        if self.surplus:
            said.append(f"{counted(self.surplus, 'event')} came after the requested ones")
        if self.garbled:
            said.append(
                f"{counted(self.garbled, 'record')} cannot belong to this launch and {was(self.garbled)} left out"
            )
        if len(self.units) and not (len(self.events) or self.dropped or self.surplus or self.garbled):
            said.append(
                "no region or mark was recorded: a region counts once it ends (each start has its stop), before `finish`"
            )
        if self.unended:
            said.append(
                f"{counted(self.unended, 'unit')} did not reach the end (an early exit without `finish`, or a killed kernel)"
            )
        return said + self.notes
