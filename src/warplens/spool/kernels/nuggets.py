"""Decodes the reference design's buffers.

They hold int64 words: a count, then start, duration, tag and thread of each event.
"""

from __future__ import annotations

import numpy as np

from warplens.errors import SpoolError
from warplens.model.intrakernel_layout import HAS_PAYLOAD, RESERVED_TAG
from warplens.spool.kernels.decoded import EVENT, UNIT, Array, Decoded


def decode_nuggets(raw: Array) -> Decoded:
    """Decode the bytes of such a buffer.

    A unit for each thread number, which is the payload of its events, too.
    """
    # The layout: one word with the number of events, then four words for each event: start,
    # duration, tag, thread. The number may exceed the room: the kernel counts on when the buffer is
    # full.
    if len(raw) % 8 or len(raw) < 8 or (len(raw) // 8 - 1) % 4:
        raise SpoolError(f"no buffer of 1 + 4 x events int64 words: it has {len(raw)} bytes")
    words: Array = raw.view("<i8") if raw.ctypes.data % 8 == 0 else np.frombuffer(raw.tobytes(), "<i8")
    slots = len(words) // 4
    wanted = int(words[0])
    if wanted < 0:
        raise SpoolError(
            f"this buffer counts {wanted} events: it is not a buffer of this kind, or was overwritten"
        )
    rows = words[1 : 1 + 4 * min(wanted, slots)].reshape(-1, 4)
    written = (rows[:, 0] != 0) | (rows[:, 1] != 0)
    right = written & (rows[:, 1] >= 0) & (rows[:, 2] >= 0) & (rows[:, 2] < RESERVED_TAG)
    rows = rows[right]
    threads, unit, counts = np.unique(rows[:, 3], return_inverse=True, return_counts=True)
    order = np.lexsort((rows[:, 0] + rows[:, 1], unit))
    rows, unit = rows[order], unit[order]
    events = np.zeros(len(rows), EVENT)
    events["unit"], events["tag"], events["flags"] = unit, rows[:, 2], HAS_PAYLOAD
    events["start"], events["end"], events["payload"] = (
        rows[:, 0],
        rows[:, 0] + rows[:, 1],
        rows[:, 3].astype(np.uint32),
    )
    units = np.zeros(len(threads), UNIT)
    units["index"], units["cta"], units["ended"], units["events"] = (
        np.arange(len(threads)),
        threads.astype(np.uint32),
        True,
        counts,
    )
    if len(rows):
        units["start"] = np.minimum.reduceat(events["start"], np.cumsum(counts) - counts)
        units["end"] = np.maximum.reduceat(events["end"], np.cumsum(counts) - counts)
    return Decoded(
        units,
        events,
        mode="nuggets",
        slots=slots,
        dropped=max(0, wanted - slots),
        needed_slots=max(1, wanted),
        garbled=int(np.count_nonzero(written & ~right)),
    )
