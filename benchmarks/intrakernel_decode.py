"""Decodes buffers of in-kernel records: records per second for each mode, clock and buffer layout.

Held against copying as many bytes as the events have with NumPy, and against a loop in Python over the records, which is what other
in-kernel profilers do. CPU time of one thread, the best of several rounds.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from harness import Row, interleave
from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoded import EVENT
from warplens.spool.kernels.decoding import decode
from warplens.testing.kernel_buffers import BufferUnit, buffer_bytes

PER_SECOND = 2e7
SLOTS = 512
LOOPED = 20_000  # records that are decoded one by one


def buffer(
    units: int,
    *,
    mode: str = "slices",
    clock: str = "globaltimer",
    ragged: bool = False,
    numbered: bool = False,
) -> tuple[bytearray, int]:
    """A buffer whose units are full, or hold any number of records; and how many records that are."""
    span = 100 * SLOTS + 10_000
    one = BufferUnit(begin=1_000_000, end=1_000_000 + span, clock_begin=5_000, clock_end=5_000 + 2 * span)
    data = buffer_bytes([one] * units, slots=SLOTS, mode=mode, clock=clock)
    ring = mode == "smem"
    size = layout.RING_RECORD_BYTES if ring else layout.RECORD_BYTES
    slices = np.frombuffer(data, np.uint8)[layout.HEADER_BYTES :].reshape(
        units, layout.UNIT_HEADER_BYTES + size * SLOTS
    )
    counts = np.random.default_rng(1).integers(0, SLOTS + 1, units) if ragged else np.full(units, SLOTS)
    slices[:, 12:16] = np.arange(units, dtype="<u4").view(np.uint8).reshape(units, 4)
    slices[:, 28:32] = counts.astype("<u4").view(np.uint8).reshape(units, 4)
    words = slices[:, layout.UNIT_HEADER_BYTES :].view("<u4").reshape(units, SLOTS, size // 4)
    scale, begin = (2, 5_000) if clock == "clock" else (1, 1_000_000)
    start = begin + scale * 100 * np.arange(SLOTS)
    words[:, :, 0] = start
    tags = np.arange(SLOTS) % 5
    if ring:
        words[:, :, 1] = tags << 24 | scale * 90
    else:
        words[:, :, 1] = start + scale * 90
        words[:, :, 2] = (
            tags
            | (layout.HAS_PAYLOAD | (layout.HAS_GENERATION if numbered else 0)) << 16
            | int(numbered) << 24
        )
        words[:, :, 3] = np.arange(SLOTS)
    return data, int(counts.sum())


def looped(data: bytearray, units: int, _: int) -> list[Any]:
    """Decode the records of the first units one by one."""
    found = []
    stride = layout.UNIT_HEADER_BYTES + layout.RECORD_BYTES * SLOTS
    for unit in range(units):
        at = layout.HEADER_BYTES + unit * stride
        (begin,) = struct.unpack_from("<Q", data, at + 32)
        for slot in range(SLOTS):
            t0, t1, word, payload = struct.unpack_from(
                "<IIII", data, at + layout.UNIT_HEADER_BYTES + slot * layout.RECORD_BYTES
            )
            end = begin + (t1 - begin & 0xFFFFFFFF)
            found.append((unit, word & 0xFFFF, word >> 16 & 0xFF, end - (t1 - t0 & 0xFFFFFFFF), end, payload))
    return found


def run(quick: bool) -> list[Row]:
    """Measure 10^6 records of each kind, and 10^7 of the usual one unless `quick`."""
    cases: dict[str, dict[str, Any]] = {
        "full slices": {},
        "slices filled to any height": {"ragged": True},
        "with generations": {"numbered": True},
        "cycles": {"clock": "clock"},
        "rings": {"mode": "smem"},
    }
    rows = []
    for name, options in cases.items():
        rows += measured(
            name,
            2048,
            budget=PER_SECOND if name in ("full slices", "slices filled to any height") else None,
            **options,
        )
    if not quick:
        rows += measured("full slices, 10^7", 20480, budget=PER_SECOND)
    return rows


def measured(name: str, units: int, *, budget: float | None, **options: Any) -> list[Row]:
    """Measure one kind of buffer."""
    data, count = buffer(units, **options)
    assert len(decode(data).events) == count
    source = np.zeros(count, EVENT)

    def times(calls: int, function: Callable[[int], object]) -> float:
        return interleave({"it": function}, calls=calls, rounds=7)["it"].best

    ours = times(count, lambda _: decode(data))
    copy = times(count, lambda _: source.copy())
    found = [
        Row(f"{name}: decoded per second", 1e9 / ours, "records/s", budget=budget, budget_on="at least"),
        Row(f"{name}: CPU", ours, "ns/record", "NumPy copies the events", copy),
    ]
    if not options and units <= 2048:
        few = LOOPED // SLOTS
        found.append(
            Row(
                f"{name}: CPU",
                ours,
                "ns/record",
                "a loop in Python",
                times(few * SLOTS, partial(looped, data, few)),
            )
        )
    return found
