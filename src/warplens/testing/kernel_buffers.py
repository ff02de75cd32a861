"""Writes buffers as kernels would, from a list of units and their records: for tests that have no GPU."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from warplens.model import intrakernel_layout as layout

_HEAD = struct.Struct("<IHHIIIIIIIIQI")
_UNIT = struct.Struct("<IHHIIIIIIQQQQ")
_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class BufferEvent:
    """A region as the kernel saw it: 64-bit times of the buffer's clock."""

    tag: int
    start: int
    end: int
    payload: int | None = None
    flags: int = 0


@dataclass
class BufferUnit:
    """One unit: where it ran, its events in the order of their ends, and whether it came to its end."""

    events: Sequence[BufferEvent] = ()
    cta: int = 0
    warp: int = 0
    sm: int = 0
    begin: int = 1_000_000
    end: int = 2_000_000
    clock_begin: int = 0
    clock_end: int = 0
    ended: bool = True
    generation: int | None = None
    dropped_more: int = 0
    sm_end: int | None = None
    extra: bytes = field(default=b"", repr=False)


def buffer_bytes(
    units: Iterable[BufferUnit | None],
    *,
    slots: int = 8,
    mode: str = "slices",
    clock: str = "globaltimer",
    warps: int = 1,
    generation: int = 1,
    with_generation: bool = False,
    claimed: int | None = None,
    sample_blocks: int = 1,
    keep: int = 0,
    stale: bytes = b"\0",
) -> bytearray:
    """Return a buffer with these units; None is one that never began.

    `stale` fills what nobody wrote, repeated.
    """
    units = list(units)
    ring = mode == "smem"
    size = layout.RING_RECORD_BYTES if ring else layout.RECORD_BYTES
    stride = layout.UNIT_HEADER_BYTES + size * slots
    total = stride * len(units)
    data = bytearray(layout.HEADER_BYTES) + (stale * (total // len(stale) + 1))[:total]
    words = (
        layout.MODES.index(mode),
        layout.CLOCKS.index(clock),
        len(units),
        slots,
        stride,
        warps,
        generation,
        sample_blocks,
        0,
        keep,
    )
    _HEAD.pack_into(data, 0, layout.MAGIC, layout.VERSION, layout.HEADER_BYTES, *words)
    struct.pack_into(
        "<I",
        data,
        layout.CLAIMED_AT,
        claimed if claimed is not None else (len(units) if mode == "claim" else 0),
    )
    for number, unit in enumerate(units):
        at = layout.HEADER_BYTES + number * stride
        if unit is None:
            data[at : at + 4] = b"\0\0\0\0"
            continue
        own = generation if unit.generation is None else unit.generation
        cursor = len(unit.events) + unit.dropped_more
        last = (
            layout.ENDED,
            unit.sm if unit.sm_end is None else unit.sm_end,
            cursor,
            unit.end,
            unit.clock_end,
        )
        flags, sm_end, cursor, end, clock_end = last if unit.ended else (0, 0, 0, 0, 0)
        place = (own, unit.cta, unit.warp, unit.sm, sm_end, cursor)
        times = (unit.begin, end, unit.clock_begin, clock_end)
        _UNIT.pack_into(data, at, layout.UNIT_MAGIC, layout.VERSION, flags, *place, *times)
        for index, event in enumerate(unit.events):
            if ring:
                where = at + layout.UNIT_HEADER_BYTES + size * (index % slots)
                word = event.tag << 24 | min(event.end - event.start, layout.RING_LONGEST)
                struct.pack_into("<II", data, where, event.start & _LOW, word)
            elif index < slots:
                flags = event.flags | (layout.HAS_GENERATION if with_generation else 0)
                flags |= layout.HAS_PAYLOAD if event.payload is not None else 0
                word = event.tag | flags << 16 | ((own & 0xFF) << 24 if with_generation else 0)
                where = at + layout.UNIT_HEADER_BYTES + size * index
                struct.pack_into(
                    "<IIII", data, where, event.start & _LOW, event.end & _LOW, word, event.payload or 0
                )
    return data
