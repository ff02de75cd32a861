"""The head of a buffer: what the host tells the kernel, packed and read back with the standard library."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

from warplens.errors import UsageError
from warplens.model import intrakernel_layout as layout

_CODES = {"<u2": "<H", "<u4": "<I", "<u8": "<Q"}


_MOST = 32 << 30  # kernels count in 16-byte steps, and dropped records beyond the end, in 32 bits


@dataclass(frozen=True)
class Shape:
    """How a buffer is divided, and what is recorded into it.

    Attributes:
        units: how many units (leaders of warps) have a slice.
        slots: records that fit into each slice; in mode `smem` the length of each ring, a power of two.
        warps: warps of a CTA that record; in mode `slices` the unit is `cta * warps + index of the warp among them`.
        mode: `slices`, `claim` or `smem`.
        clock: `globaltimer` (ns) or `clock` (cycles, fitted to ns when it is decoded).
        sample_blocks: only CTAs whose linear number is a multiple of it record.
        warp_mask: bit w lets warp w of a CTA record; 0 lets warps 0 … warps-1.
        keep: number of events to keep, those that began first; 0: all.
    """

    units: int
    slots: int
    warps: int = 1
    mode: str = "slices"
    clock: str = "globaltimer"
    sample_blocks: int = 1
    warp_mask: int = 0
    keep: int = 0

    def __post_init__(self) -> None:
        if self.mode not in layout.MODES:
            raise UsageError(f"unknown buffer mode {self.mode!r}; choose from {', '.join(layout.MODES)}")
        if self.clock not in layout.CLOCKS:
            raise UsageError(
                f"unknown clock {self.clock!r}; choose from {', '.join(layout.CLOCKS)}, and `auto` "
                "which picks one for the device"
            )
        for name, least in (("units", 1), ("slots", 1), ("warps", 1), ("sample_blocks", 1), ("keep", 0)):
            value = getattr(self, name)
            if not least <= value < 2**32:
                raise UsageError(f"{name}={value} of a buffer: at least {least}, below 2^32")
        if self.mode == "smem" and (self.slots < 2 or self.slots & (self.slots - 1)):
            raise UsageError(
                f"slots={self.slots}: a ring in shared memory needs a power of two, e.g. "
                f"{1 << self.slots.bit_length()}"
            )
        if self.stride >= 2**32:
            raise UsageError(f"slots={self.slots} makes a unit's slice larger than 4 GiB")
        if self.nbytes > _MOST:
            raise UsageError(
                f"{self.units} units of {self.slots} slots take {self.nbytes / 2**30:.0f} GiB, more than the 32 GiB that kernels reach: "
                "fewer slots, or sample_blocks to record some CTAs only"
            )

    @property
    def stride(self) -> int:
        """Bytes from one unit's slice to the next."""
        each = layout.RING_RECORD_BYTES if self.mode == "smem" else layout.RECORD_BYTES
        return layout.UNIT_HEADER_BYTES + each * self.slots

    @property
    def nbytes(self) -> int:
        """Bytes of the whole buffer."""
        return layout.HEADER_BYTES + self.units * self.stride

    def header(self, generation: int = 1) -> bytes:
        """Return the 256 bytes at the start of a buffer, for a launch with this generation."""
        values: dict[str, Any] = {
            "magic": layout.MAGIC,
            "version": layout.VERSION,
            "header_bytes": layout.HEADER_BYTES,
            "mode": layout.MODES.index(self.mode),
            "clock": layout.CLOCKS.index(self.clock),
            "units": self.units,
            "slots": self.slots,
            "stride": self.stride,
            "warps": self.warps,
            "generation": generation,
            "sample_blocks": self.sample_blocks,
            "warp_mask": self.warp_mask,
            "keep": self.keep,
            "claimed": 0,
            "wanted": 0,
        }
        data = bytearray(layout.HEADER_BYTES)
        for name, kind, at in layout.HEADER:
            struct.pack_into(_CODES[kind], data, at, values[name])
        return bytes(data)
