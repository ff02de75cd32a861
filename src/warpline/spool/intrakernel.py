"""Decodes buffers that kernels recorded into (docs/dev/formats/intrakernel.md): array operations only, no loop over records."""

from __future__ import annotations

from typing import Any

import numpy as np

from warpline.errors import SpoolError
from warpline.model import intrakernel_layout as layout
from warpline.spool.intrakernel_decoded import EVENT, UNIT, Array, Decoded
from warpline.spool.intrakernel_nuggets import decode_nuggets
from warpline.spool.intrakernel_records import gather, gather_ring
from warpline.spool.intrakernel_times import ns_per_tick

__all__ = ["Decoded", "decode"]


def _dtype(fields: tuple[layout.Field, ...], size: int) -> np.dtype[Any]:
    names, formats, offsets = zip(*fields, strict=True)
    return np.dtype({"names": list(names), "formats": list(formats), "offsets": list(offsets), "itemsize": size})


_HEADER = _dtype(layout.HEADER, layout.HEADER_BYTES)
_UNIT = _dtype(layout.UNIT, layout.UNIT_HEADER_BYTES)


def decode(data: Any, *, generation: int | None = None, layout: str = "warpline") -> Decoded:
    """Decode the bytes of a buffer.

    Args:
        data: the bytes, anything with a buffer.
        generation: of the launch that is wanted; None: the one that the head of the buffer names.
        layout: `warpline`, or `nuggets`: the reference design's int64 words, a count and start, duration, tag and thread of each event.

    Raises:
        SpoolError: these bytes are no such buffer, are of a later version, or its head contradicts itself. A buffer that is cut off or
            has rubbish in it gives what can be read, and says so in `notes` and `garbled`.
    """
    view = memoryview(data)
    if not view.c_contiguous:
        raise SpoolError("the bytes of a buffer have to be in one piece")
    raw = np.frombuffer(view, np.uint8)
    if layout == "nuggets":
        return decode_nuggets(raw)
    if layout != "warpline":
        raise SpoolError(f"no buffer layout {layout!r}; there are `warpline` and `nuggets`")
    head = _head(raw)
    return _decode(raw, head, int(head["generation"]) if generation is None else generation)


def _head(raw: Array) -> Array:
    if len(raw) < layout.HEADER_BYTES:
        raise SpoolError(f"no in-kernel buffer: {len(raw)} bytes, and its head alone has {layout.HEADER_BYTES}")
    head: Array = np.frombuffer(raw, _HEADER, 1)[0]
    if head["magic"] != layout.MAGIC:
        raise SpoolError(f"no in-kernel buffer: it begins with {head['magic']:#010x}, not {layout.MAGIC:#010x}; was it overwritten?")
    if head["version"] != layout.VERSION:
        raise SpoolError(
            f"an in-kernel buffer of version {head['version']}, and this warpline reads {layout.VERSION}: use that which wrote it"
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
        numbers = ", ".join(f"{name} {head[name]}" for name in ("header_bytes", "mode", "clock", "units", "slots", "stride"))
        raise SpoolError(f"the head of this in-kernel buffer contradicts itself ({numbers}): was it overwritten?")
    return head


def _decode(raw: Array, head: Array, generation: int) -> Decoded:
    stride, slots, ring = int(head["stride"]), int(head["slots"]), head["mode"] == layout.MODES.index("smem")
    there = min(int(head["units"]), (len(raw) - layout.HEADER_BYTES) // stride)
    found = Decoded(
        np.zeros(0, UNIT),
        np.zeros(0, EVENT),
        mode=layout.MODES[head["mode"]],
        clock=layout.CLOCKS[head["clock"]],
        generation=generation,
        slots=slots,
        units_lost=max(0, int(head["claimed"]) - int(head["units"])) if found_claim(head) else 0,
    )
    if there < head["units"]:
        found.notes.append(f"the buffer is cut off: {there} of {head['units']} units are there")
    heads = np.ndarray((there,), _UNIT, raw.data, layout.HEADER_BYTES, (stride,))
    rows = _ran(heads, generation, found)
    if not len(rows):
        return found
    own = np.ascontiguousarray(heads[rows])
    ended, begin, span = _spans(own, found)
    rate = ns_per_tick(own, ended, found) if found.clock == "clock" else None
    records = (gather_ring if ring else gather)(raw, own, rows, ended, span, head, generation)
    found.garbled += records.garbled
    _fill(found, own, rows, ended, records, begin, rate)
    keep = int(head["keep"])
    if keep and len(found.events) > keep:
        first = np.sort(np.argsort(found.events["start"], kind="stable")[:keep])
        found.surplus = len(found.events) - keep
        found.events = found.events[first]
        found.units["events"] = np.bincount(found.events["unit"], minlength=len(found.units))
    return found


def found_claim(head: Array) -> bool:
    """Whether units claim their slices."""
    return bool(head["mode"] == layout.MODES.index("claim"))


def _ran(heads: Array, generation: int, found: Decoded) -> Array:
    """The numbers of the units that ran in the launch."""
    begun = heads["magic"] == layout.UNIT_MAGIC
    known = begun & (heads["version"] == layout.VERSION)
    strange = int(np.count_nonzero((heads["magic"] != 0) & ~known))
    if strange:
        found.notes.append(f"{strange} units have a head that is none: something else wrote into the buffer")
    rows: Array = np.flatnonzero(known & (heads["generation"] == generation))
    return rows


def _spans(own: Array, found: Decoded) -> tuple[Array, Array, Array]:
    """Which units ended, when each began in ticks of the buffer's clock, and how many ticks it lasted (0: not known)."""
    ended = (own["flags"] & layout.ENDED) != 0
    backwards = ended & ((own["time_end"] < own["time_begin"]) | (own["clock_end"] < own["clock_begin"]))
    if backwards.any():
        found.notes.append(f"{np.count_nonzero(backwards)} units end before they begin, and are taken as not ended")
        ended = ended & ~backwards
    name = "time" if found.clock == "globaltimer" else "clock"
    begin = own[f"{name}_begin"]
    return ended, begin, np.where(ended, own[f"{name}_end"] - begin, 0)


def _fill(found: Decoded, own: Array, rows: Array, ended: Array, records: Any, begin: Array, rate: Array | None) -> None:
    events = np.empty(len(records.unit), EVENT)
    events["unit"], events["tag"], events["flags"], events["payload"] = records.unit, records.tag, records.flags, records.payload
    events["reserved"] = 0
    base = own["time_begin"].astype(np.int64)
    if rate is None:
        end = base[records.unit] + records.offset
        events["start"] = end - records.length
    else:
        scale, base = rate[records.unit], base[records.unit]
        end = base + np.rint(records.offset * scale).astype(np.int64)
        events["start"] = base + np.rint((records.offset - records.length) * scale).astype(np.int64)
    events["end"] = end
    units = np.zeros(len(rows), UNIT)
    units["index"] = rows
    for name in ("cta", "warp", "sm_begin", "sm_end"):
        units[name] = own[name]
    units["ended"], units["start"] = ended, own["time_begin"]
    units["events"], units["dropped"] = records.counts, records.dropped
    units["end"] = np.where(ended, own["time_end"].astype(np.int64), units["start"])
    units["sm_end"] = np.where(ended, own["sm_end"], own["sm_begin"])
    if not ended.all() and len(events):
        last = np.cumsum(records.counts) - 1
        left = ~ended & (records.counts > 0)
        units["end"][left] = end[last[left]]
    found.units, found.events = units, events
    found.dropped = int(records.dropped.sum())
    cursors = np.where(ended, own["cursor"], records.counts)
    found.needed_slots = max(1, int(cursors.max()))
    if found.mode == "smem":
        found.needed_slots = max(2, 1 << (found.needed_slots - 1).bit_length())
    del begin
