"""Takes the records out of a buffer's slices and unwraps their 32-bit times, for all units at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from warpline.model import intrakernel_layout as layout
from warpline.spool.intrakernel_decoded import Array

_WRAP = 1 << 32
_SLACK = 1024  # ns or cycles by which timers of different SMs, and so of a unit that moved, may disagree
_BACK = 1 << 20  # going back by more than this is a wrap, by less a timer that disagrees
_AHEAD = 1_000_000_000  # ticks by which a unit without end may have outlived those with one


@dataclass
class Records:
    """Columns of the records, those of a unit together: its row, tag, flags, payload, end in ticks from the unit's begin, and length.

    `counts` and `dropped` are by unit; `garbled` is how many were left out because they cannot be of this launch.
    """

    unit: Array
    tag: Array
    flags: Array
    payload: Array
    offset: Array
    length: Array
    counts: Array
    dropped: Array
    garbled: int = 0


def _positions(first: Array, counts: Array) -> tuple[Array, Array]:
    """Row of its unit for every record, and its position in the buffer, both counted in records."""
    rows = np.repeat(np.arange(len(counts), dtype=np.uint32), counts)
    places = np.repeat(first - (np.cumsum(counts) - counts), counts)
    places += np.arange(len(places))
    return rows, places


def gather(raw: Array, own: Array, rows: Array, ended: Array, span: Array, head: Array, generation: int) -> Records:
    """Take the records of slices of 16-byte records."""
    slots, stride = int(head["slots"]), int(head["stride"])
    clock = "clock" if head["clock"] else "time"
    counts = np.where(ended, np.minimum(own["cursor"], slots), slots).astype(np.int64)
    dropped = np.where(ended, own["cursor"] - np.minimum(own["cursor"], slots), 0).astype(np.int64)
    first = (layout.HEADER_BYTES + layout.UNIT_HEADER_BYTES + rows * stride) // layout.RECORD_BYTES
    unit, places = _positions(first, counts)
    pieces = raw[: len(raw) // 16 * 16].view(np.complex128).take(places)  # 16 bytes at once
    words = pieces.view(np.uint32).reshape(-1, 4)
    flags = pieces.view(np.uint8).reshape(-1, 16)[:, 10]
    ends = words[:, 1]
    offset = (ends - own[f"{clock}_begin"].astype(np.uint32)[unit]).astype(np.int64)
    length = (ends - words[:, 0]).astype(np.int64)
    starts = np.cumsum(counts) - counts
    long = ended & (span >= _WRAP)
    if long.any():
        offset += _wraps(offset, unit, counts, starts, long)
    limit = np.where(ended, span + _SLACK, 0).astype(np.int64)
    if not ended.all():
        limit[~ended] = _reach(own, ended, clock)[~ended]
    wrong = offset > limit[unit]
    if wrong.any():  # a timer that disagrees may lie a little before the begin
        early = wrong & (offset >= _WRAP - _SLACK) & (offset < _WRAP)
        offset[early] = 0
        length[early] = 0
        wrong &= ~early
    wrong |= length > offset + _SLACK
    if (flags & layout.HAS_GENERATION).any():
        other = pieces.view(np.uint8).reshape(-1, 16)[:, 11] != generation & 0xFF
        wrong |= ((flags & layout.HAS_GENERATION) != 0) & other
    wrong |= (words[:, 2] & 0xFFFF) == layout.RESERVED_TAG
    if not ended.all():
        wrong |= _behind_the_last(words, offset, wrong, unit, counts, starts, ended)
    np.minimum(length, offset, out=length)
    tag = pieces.view(np.uint16).reshape(-1, 8)[:, 4]
    garbled = 0
    if wrong.any():
        right = ~wrong
        garbled = int(np.count_nonzero(wrong & ended[unit]))
        unit, tag, flags, offset, length = unit[right], tag[right], flags[right], offset[right], length[right]
        payload = words[right, 3]
        counts = np.bincount(unit, minlength=len(own))
    else:
        payload = words[:, 3]
    return Records(unit, tag, flags, payload, offset, length, counts, dropped, garbled)


def _wraps(offset: Array, unit: Array, counts: Array, starts: Array, long: Array) -> Array:
    """Whole turns of the 32-bit timer before each record: records of a unit are in order, so going back is a turn."""
    turned = np.zeros(len(offset), np.int64)
    turned[1:] = (np.diff(offset) < -_BACK) & (unit[1:] == unit[:-1])
    total = np.cumsum(turned)
    before = np.zeros(len(counts), np.int64)
    some = counts > 0
    before[some] = total[starts[some]]
    return np.where(long[unit], (total - before[unit]) * _WRAP, 0)


def _reach(own: Array, ended: Array, clock: str) -> Array:
    """How many ticks after its begin a unit without end may have recorded: what is farther is left from an older launch."""
    limit: Array = np.full(len(own), _WRAP // 2, np.int64)
    if clock == "time" and ended.any():
        last = int(own["time_end"][ended].max())
        lasted = np.maximum(last - own["time_begin"].astype(np.int64), 0)
        np.minimum(limit, 2 * lasted + _AHEAD, out=limit)
    return limit


def _behind_the_last(words: Array, offset: Array, wrong: Array, unit: Array, counts: Array, starts: Array, ended: Array) -> Array:
    """For units without end: what was never written, or lies behind the first record that is not of this launch."""
    bad = wrong | ~words.any(axis=1)
    bad[1:] |= (np.diff(offset) < 0) & (unit[1:] == unit[:-1])
    total = np.cumsum(bad)
    before = np.zeros(len(counts), np.int64)
    some = counts > 0
    before[some] = total[starts[some]] - bad[starts[some]]
    behind: Array = (total - before[unit] > 0) & ~ended[unit]
    return behind


def gather_ring(raw: Array, own: Array, rows: Array, ended: Array, span: Array, head: Array, generation: int) -> Records:
    """Take the records of rings of 8-byte records: the latest are there, the oldest of them first."""
    del generation  # a ring is written out whole at the end of its launch
    slots, stride = int(head["slots"]), int(head["stride"])
    cursor = np.where(ended, own["cursor"], 0).astype(np.int64)
    counts = np.minimum(cursor, slots)
    first = (layout.HEADER_BYTES + layout.UNIT_HEADER_BYTES + rows * stride) // layout.RING_RECORD_BYTES
    unit, places = _positions(np.zeros(len(rows), np.int64), counts)
    places = first[unit] + (places + (cursor - counts)[unit] & slots - 1)
    pieces = raw[: len(raw) // 8 * 8].view(np.uint64).take(places)
    words = pieces.view(np.uint32).reshape(-1, 2)
    length = (words[:, 1] & layout.RING_LONGEST).astype(np.int64)
    last = own["clock_end" if head["clock"] else "time_end"].astype(np.uint32)[unit]
    age = (last - words[:, 0] - length.astype(np.uint32)).astype(np.int64)  # before the unit's end: the latest are kept
    long = ended & (span >= _WRAP)
    if long.any():
        turned = np.zeros(len(age), np.int64)
        turned[:-1] = (np.diff(age) > _BACK * 32) & (unit[1:] == unit[:-1])
        total = np.cumsum(turned[::-1])[::-1]
        after = np.zeros(len(counts), np.int64)
        ends, some = np.cumsum(counts), counts > 0
        after[some] = total[ends[some] - 1]
        age += np.where(long[unit], (total - after[unit]) * _WRAP, 0)
    offset = span.astype(np.int64)[unit] - age
    wrong = (offset < -_SLACK) | (length > offset + _SLACK)
    np.maximum(offset, 0, out=offset)
    np.minimum(length, offset, out=length)
    tag = pieces.view(np.uint8).reshape(-1, 8)[:, 7].astype(np.uint16)
    right = ~wrong
    nothing = np.zeros(len(unit), np.uint8)
    flags, payload = nothing | (length == 0), nothing.astype(np.uint32)
    garbled = int(np.count_nonzero(wrong))
    if garbled:
        unit, tag, flags, payload, offset, length = (part[right] for part in (unit, tag, flags, payload, offset, length))
        counts = np.bincount(unit, minlength=len(own))
    return Records(unit, tag, flags, payload, offset, length, counts, cursor - np.minimum(cursor, slots), garbled)
