"""Decodes the buffers that kernels recorded into (docs/dev/formats/intrakernel.md).

Array operations only, no loop over records.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from warplens.errors import SpoolError
from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoded import EVENT, UNIT, Array, Decoded
from warplens.spool.kernels.nuggets import decode_nuggets
from warplens.spool.kernels.records import Records, Slices, gather, gather_ring
from warplens.spool.kernels.times import ns_per_tick

_BLOCK = 1 << 14  # records at a time
_SLACK = 1024  # ns or cycles by which timers may disagree
_AHEAD = 1_000_000_000  # ns by which a unit without end may have outlived those with one


def _dtype(fields: tuple[layout.Field, ...], size: int) -> np.dtype[Any]:
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype(
        {"names": list(names), "formats": list(formats), "offsets": list(offsets), "itemsize": size}
    )


_HEADER = _dtype(layout.HEADER, layout.HEADER_BYTES)
_UNIT = _dtype(layout.UNIT, layout.UNIT_HEADER_BYTES)


def decode(data: Any, *, generation: int | None = None, layout: str = "warplens") -> Decoded:
    """Decode the bytes of a buffer.

    Args:
        data: the bytes, anything with a buffer.
        generation: of the launch that is wanted; None: the one that the head of the buffer names.
        layout: `warplens`, or `nuggets`: the reference design's int64 words, a count and start, duration, tag and thread of each event.

    Raises:
        SpoolError: these bytes are no such buffer, are of a later version, or its head contradicts itself. A buffer that is cut off or
            has rubbish in it gives what can be read, and says so in `notes` and `garbled`.
    """
    view = memoryview(data)
    if not view.c_contiguous:
        raise SpoolError("the bytes of a buffer must be contiguous")
    raw = np.frombuffer(view, np.uint8)
    if layout == "nuggets":
        return decode_nuggets(raw)
    if layout != "warplens":
        raise SpoolError(f"unknown buffer layout {layout!r}; choose from `warplens` and `nuggets`")
    head = _head(raw)
    return _decode(raw, head, int(head["generation"]) if generation is None else generation)


def _head(raw: Array) -> Array:
    if len(raw) < layout.HEADER_BYTES:
        raise SpoolError(
            f"not an in-kernel buffer: {len(raw)} bytes, but its header alone has {layout.HEADER_BYTES}"
        )
    head: Array = np.frombuffer(raw, _HEADER, 1)[0]
    if head["magic"] != layout.MAGIC:
        raise SpoolError(
            f"not an in-kernel buffer: it begins with {head['magic']:#010x}, not "
            f"{layout.MAGIC:#010x}; was it overwritten?"
        )
    if head["version"] != layout.VERSION:
        raise SpoolError(
            f"an in-kernel buffer of version {head['version']}, but this warplens reads "
            f"{layout.VERSION}: use the version that wrote it"
        )
    ring = head["mode"] == layout.MODES.index("smem")
    size = layout.RING_RECORD_BYTES if ring else layout.RECORD_BYTES
    fits = (
        head["header_bytes"] == layout.HEADER_BYTES
        and head["mode"] < len(layout.MODES)
        and head["clock"] < len(layout.CLOCKS)
        and head["slots"] > 0
        and int(head["stride"]) == layout.UNIT_HEADER_BYTES + size * int(head["slots"])
        and not (ring and int(head["slots"]) & (int(head["slots"]) - 1))
    )
    if not fits:
        numbers = ", ".join(
            f"{name} {head[name]}" for name in ("header_bytes", "mode", "clock", "units", "slots", "stride")
        )
        raise SpoolError(
            f"the head of this in-kernel buffer contradicts itself ({numbers}): was it overwritten?"
        )
    return head


def _decode(raw: Array, head: Array, generation: int) -> Decoded:
    stride, slots, ring = int(head["stride"]), int(head["slots"]), head["mode"] == layout.MODES.index("smem")
    there = min(int(head["units"]), (len(raw) - layout.HEADER_BYTES) // stride)
    decoded = Decoded(
        np.zeros(0, UNIT),
        np.zeros(0, EVENT),
        mode=layout.MODES[head["mode"]],
        clock=layout.CLOCKS[head["clock"]],
        generation=generation,
        slots=slots,
        units_lost=max(0, int(head["claimed"]) - int(head["units"]))
        if _claims(head)
        else _beyond(head, generation),
    )
    if _wanted(head, generation) == layout.MISMATCH:
        decoded.notes.append(
            "the kernel was compiled for another mode or ring: none, or not all, of its warps "
            "could record into this buffer"
        )
    if there < head["units"]:
        decoded.notes.append(f"the buffer is truncated: it has {there} of {head['units']} units")
    pieces = np.ndarray(
        (there, 4), np.complex128, raw.data, layout.HEADER_BYTES, (stride, 16)
    )  # 16 bytes at once
    heads = pieces.copy().view(_UNIT)[:, 0]
    rows = _ran(heads, generation, decoded)
    if not len(rows):
        return decoded
    own = heads if len(rows) == there else heads.view(np.complex128).reshape(-1, 4)[rows].view(_UNIT)[:, 0]
    ended, begin, span = _spans(own, decoded)
    counts = np.where(ended, np.minimum(own["cursor"], slots), 0 if ring else slots).astype(np.int64)
    units = Slices(
        raw,
        slots,
        stride,
        generation=generation,
        rows=rows,
        ended=ended,
        cursor=own["cursor"],
        begin=begin,
        span=span,
        limit=_limits(own, ended, span, decoded=decoded),
        counts=counts,
    )
    rate = ns_per_tick(own, ended, decoded) if decoded.clock == "clock" else None
    _fill(decoded, own, units, take=gather_ring if ring else gather, rate=rate)
    keep = int(head["keep"])
    if keep and len(decoded.events) > keep:
        first = np.sort(np.argsort(decoded.events["start"], kind="stable")[:keep])
        decoded.surplus = len(decoded.events) - keep
        decoded.events = decoded.events[first]
        decoded.units["events"] = np.bincount(decoded.events["unit"], minlength=len(decoded.units))
    return decoded


def _claims(head: Array) -> bool:
    """Whether units claim their slices."""
    return bool(head["mode"] == layout.MODES.index("claim"))


def _wanted(head: Array, generation: int) -> int:
    """Return how many slices the launch wanted, as far as a kernel reported it.

    The highest number of a unit without a slice, plus one.
    """
    generation_then, wanted = divmod(int(head["wanted"]), 1 << 32)
    return wanted if generation_then == generation else 0


def _beyond(head: Array, generation: int) -> int:
    """Units that had no slice because the launch had more of them than the buffer."""
    wanted = _wanted(head, generation)
    return 0 if wanted == layout.MISMATCH else max(0, wanted - int(head["units"]))


def _ran(heads: Array, generation: int, decoded: Decoded) -> Array:
    """The numbers of the units that ran in the launch."""
    begun = heads["magic"] == layout.UNIT_MAGIC
    known = begun & (heads["version"] == layout.VERSION)
    strange = int(np.count_nonzero((heads["magic"] != 0) & ~known))
    if strange:
        decoded.notes.append(
            f"{strange} units have a head that is none: something else wrote into the buffer"
        )
    rows: Array = np.flatnonzero(known & (heads["generation"] == generation))
    return rows


def _spans(own: Array, decoded: Decoded) -> tuple[Array, Array, Array]:
    """Return which units ended, when each began, and how long it lasted.

    In ticks of the buffer's clock; 0: unknown.
    """
    ended = (own["flags"] & layout.ENDED) != 0
    backwards = ended & ((own["time_end"] < own["time_begin"]) | (own["clock_end"] < own["clock_begin"]))
    if backwards.any():
        decoded.notes.append(
            f"{np.count_nonzero(backwards)} units end before they begin, and count as not ended"
        )
        ended = ended & ~backwards
    name = "time" if decoded.clock == "globaltimer" else "clock"
    begin = own[f"{name}_begin"]
    return ended, begin, np.where(ended, own[f"{name}_end"] - begin, 0)


def _limits(own: Array, ended: Array, span: Array, decoded: Decoded) -> Array:
    """The maximum distance of a record from its unit's begin, in ticks.

    Of one without end, what is farther is left from an older launch.
    """
    limit = np.where(ended, span + np.uint64(_SLACK), np.uint64(1 << 31)).astype(np.int64)
    if decoded.clock == "globaltimer" and ended.any() and not ended.all():
        last = int(own["time_end"][ended].max())
        lasted = np.maximum(last - own["time_begin"].astype(np.int64), 0)
        np.minimum(limit, 2 * lasted + _AHEAD, out=limit, where=~ended)
    return limit


def _blocks(counts: Array) -> list[tuple[int, int]]:
    """Cut the units into runs whose records fit into the processor's caches."""
    # A cut behind the first unit that brings the total to a multiple of _BLOCK: for counts [3, 3,
    # 3] and _BLOCK 4 the totals are [3, 6, 9], and the runs [0, 2), [2, 3).
    total = np.cumsum(counts)
    cuts = np.searchsorted(total, np.arange(_BLOCK, int(total[-1]) + _BLOCK, _BLOCK), side="left") + 1
    edges = np.unique(np.concatenate([[0], np.minimum(cuts, len(counts)), [len(counts)]]))
    return list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))


def _fill(
    decoded: Decoded, own: Array, units: Slices, take: Callable[[Slices], Records], rate: Array | None
) -> None:
    """Fill in the units, and the events block by block."""
    base = own["time_begin"].astype(np.int64)
    counts = np.zeros(len(own), np.int64)
    ends = np.where(units.ended, own["time_end"].astype(np.int64), base)
    events, at = np.zeros(int(units.counts.sum()), EVENT), 0
    numbers = events.view("<u4").reshape(
        -1, EVENT.itemsize // 4
    )  # unit in 0, tag, flags and nothing in 1, payload in 6
    for first, last in _blocks(units.counts):
        records = take(units.part(first, last))
        rows, words = events[at : at + len(records.unit)], numbers[at : at + len(records.unit)]
        at += len(rows)
        np.add(records.unit, np.uint32(first), out=words[:, 0])
        words[:, 1], words[:, 6] = records.word, records.payload
        zero, end = np.repeat(base[first:last], records.counts), rows["end"]
        if rate is None:
            np.add(zero, records.offset, out=end)
            np.subtract(end, records.length, out=rows["start"])
        else:
            scale = np.repeat(rate[first:last], records.counts)
            end[:] = zero + np.rint(records.offset * scale).astype(np.int64)
            rows["start"] = zero + np.rint((records.offset.astype(np.int64) - records.length) * scale).astype(
                np.int64
            )
        counts[first:last] = records.counts
        decoded.garbled += records.garbled
        if not units.ended[first:last].all():
            # A unit without an end lasts until its last record: the end of its stretch of records
            # is the running sum of the counts.
            some = np.flatnonzero(~units.ended[first:last] & (records.counts > 0))
            ends[first + some] = end[np.cumsum(records.counts)[some] - 1]
    decoded.events = events[:at] if 2 * at > len(events) else events[:at].copy()
    decoded.units = _units(own, units, counts, ends=ends)
    decoded.dropped = int(decoded.units["dropped"].sum())
    needed = max(1, int(np.where(units.ended, own["cursor"], counts).max()))
    decoded.needed_slots = needed if decoded.mode != "smem" else max(2, 1 << (needed - 1).bit_length())


def _units(own: Array, units: Slices, counts: Array, ends: Array) -> Array:
    table = np.zeros(len(own), UNIT)
    table["index"] = units.rows
    for name in ("cta", "warp", "sm_begin", "sm_end"):
        table[name] = own[name]
    table["sm_end"] = np.where(units.ended, own["sm_end"], own["sm_begin"])
    table["ended"], table["start"], table["end"], table["events"] = (
        units.ended,
        own["time_begin"],
        ends,
        counts,
    )
    table["dropped"] = np.where(units.ended, own["cursor"] - np.minimum(own["cursor"], units.slots), 0)
    return table
