"""The recorder on the host, for interpreters and simulators of kernels.

The same bytes at the same places, and a clock of the host.

Its cycles are twice its nanoseconds, so that what forgets to fit them is seen.
"""

from __future__ import annotations

import ctypes
import struct
import threading
import time

from warplens.intrakernel.plan import WANTED_AT, Plan
from warplens.model import intrakernel_layout as layout

_LOW = 0xFFFFFFFF
_CLAIMING = threading.Lock()
_ENDED = layout.VERSION | layout.ENDED << 16


def clocks() -> tuple[int, int]:
    """Read both clocks: nanoseconds and cycles."""
    now = time.perf_counter_ns()
    return now, 2 * now


def now(plan: Plan) -> int:
    """Read the plan's clock: its low 32 bits."""
    return clocks()[plan.clock == "clock"] & _LOW


class SimulatedUnit:
    """What one thread records with.

    A thread that is no leader, or whose unit has no place, writes nothing.

    Args:
        pointer: address of the buffer, in memory of the host.
        plan: of the kernel.
        cta: linear number of its CTA.
        thread: its linear number within the CTA.
    """

    def __init__(self, pointer: int, plan: Plan, cta: int, thread: int) -> None:
        began, cycles = clocks()
        self.plan = plan
        self.records = 0
        self._slots = 0
        self._ring: list[tuple[int, int]] = []
        warp, lane = divmod(thread, 32)
        place = _place(plan, warp)
        block, rest = divmod(cta, plan.sample_blocks)
        if lane or place is None or rest:
            return
        head = (ctypes.c_char * layout.HEADER_BYTES).from_address(pointer)
        units, slots, stride = struct.unpack_from("<III", head, 16)
        if not units:  # a launch that is not to be recorded
            return
        (self._generation,) = struct.unpack_from("<I", head, layout.GENERATION_AT)
        unit = block * plan.warps + place
        if plan.mode == "claim":
            with _CLAIMING:  # simulators run threads side by side
                (unit,) = struct.unpack_from("<I", head, layout.CLAIMED_AT)
                struct.pack_into("<I", head, layout.CLAIMED_AT, unit + 1)
        if unit >= units:
            if plan.mode != "claim":
                with _CLAIMING:
                    (wanted,) = struct.unpack_from("<Q", head, WANTED_AT)
                    struct.pack_into("<Q", head, WANTED_AT, max(wanted, self._generation << 32 | unit + 1))
            return
        self._slots = slots
        self._memory = (ctypes.c_char * stride).from_address(pointer + layout.HEADER_BYTES + unit * stride)
        struct.pack_into(
            "<IIIIIIII",
            self._memory,
            0,
            layout.UNIT_MAGIC,
            layout.VERSION,
            self._generation,
            cta,
            warp,
            0,
            0,
            0,
        )
        struct.pack_into("<QQQQ", self._memory, 32, began, 0, cycles, 0)

    def record(self, word: int, start: int | None, payload: int | None = None) -> None:
        """Write a region that began at `start`, or a mark; one that has no place is counted."""
        stamp = now(self.plan)
        began = stamp if start is None else start & _LOW
        self.records += 1
        if not self._slots:
            return
        if self.plan.mode == "smem":
            length = 0 if start is None else min((stamp - began) & _LOW, layout.RING_LONGEST)
            self._ring = (
                [*self._ring[1 - self._slots :], (began, word | length)]
                if self._slots > 1
                else [(began, word | length)]
            )
        elif self.records <= self._slots:
            if self.plan.generation:
                word |= (self._generation & 0xFF) << 24
            at = layout.UNIT_HEADER_BYTES + layout.RECORD_BYTES * (self.records - 1)
            struct.pack_into(
                "<IIII", self._memory, at, began, stamp, word, word if payload is None else payload & _LOW
            )

    def finish(self) -> None:
        """Write the end of the unit's header."""
        if not self._slots:
            return
        first = self.records - len(self._ring)
        for number, record in enumerate(self._ring, first):
            at = layout.UNIT_HEADER_BYTES + layout.RING_RECORD_BYTES * (number % self._slots)
            struct.pack_into("<II", self._memory, at, *record)
        ended, cycles = clocks()
        struct.pack_into("<II", self._memory, 24, 0, self.records)
        struct.pack_into("<Q", self._memory, 40, ended)
        struct.pack_into("<Q", self._memory, 56, cycles)
        struct.pack_into("<I", self._memory, 4, _ENDED)


def _place(plan: Plan, warp: int) -> int | None:
    """The index of a warp among those that record; None if it does not."""
    if not plan.warp_mask:
        return warp if warp < plan.warps else None
    if not plan.warp_mask >> warp & 1:
        return None
    return bin(plan.warp_mask & ((1 << warp) - 1)).count("1")
