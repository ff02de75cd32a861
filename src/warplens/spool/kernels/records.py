"""Takes the records out of a buffer's slices and unwraps their 32-bit times, for many units at once."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from warplens.model import intrakernel_layout as layout
from warplens.spool.kernels.decoded import Array

_WRAP = 1 << 32
_SLACK = 1024  # ns or cycles by which timers of different SMs, and so of a unit that moved, may disagree
_BACK = 1 << 20  # going back by more than this is a wrap, by less a timer that disagrees
_GENERATION = layout.HAS_GENERATION << 16  # in the word of a record


@dataclass
class Slices:
    """Units of one launch, a row each, and what is needed to read their records.

    Attributes:
        raw: the buffer's bytes; mode, slots and stride as its head has them.
        rows: numbers of the units in the buffer.
        ended: which of them came to their end; `cursor` of those counts.
        begin: of each unit on the buffer's clock; `span`: ticks that it lasted (ended units); `limit`: ticks after its
            begin within which its records lie.
        counts: records to look at for each unit.
    """

    raw: Array
    slots: int
    stride: int
    generation: int
    rows: Array
    ended: Array
    cursor: Array
    begin: Array
    span: Array
    limit: Array
    counts: Array

    def part(self, first: int, last: int) -> Slices:
        """The units of these rows."""
        names = ("rows", "ended", "cursor", "begin", "span", "limit", "counts")
        return replace(self, **{name: getattr(self, name)[first:last] for name in names})


@dataclass
class Records:
    """Columns of records, those of a unit together, in the order in which they ended.

    `unit` is the row of its unit, `word` tag | flags << 16, `offset` when it ended in ticks from the unit's begin, `length` its ticks;
    `counts` is by unit, `garbled` how many were left out because they cannot be of this launch.
    """

    unit: Array
    word: Array
    payload: Array
    offset: Array
    length: Array
    counts: Array
    garbled: int = 0


def gather(units: Slices) -> Records:
    """Take the 16-byte records of slices."""
    words = _take(units).view(np.uint32).reshape(-1, 4)
    unit = np.repeat(np.arange(len(units.rows), dtype=np.uint32), units.counts)
    word = words[:, 2].copy()
    other = bool(np.bitwise_or.reduce(word) & _GENERATION) and _of_another(word, units.generation).any()
    ends = words[:, 1].copy()
    length = ends - words[:, 0]
    ends -= np.repeat(
        units.begin.astype(np.uint32), units.counts
    )  # several times as fast as looking up by `unit`
    offset = ends
    long = units.ended & (units.span >= _WRAP)
    if long.any():
        offset = offset.astype(np.int64)
        offset += _wraps(offset, unit, units.counts, long=long)
    limit = units.limit if long.any() else np.minimum(units.limit, _WRAP - 1).astype(np.uint32)
    records = Records(
        unit, word & np.uint32(0xFFFFFF), words[:, 3], offset=offset, length=length, counts=units.counts
    )
    suspect = (offset > np.repeat(limit, units.counts)) | (length > offset)
    if other or suspect.any() or not units.ended.all() or ((word & 0xFFFF) == layout.RESERVED_TAG).any():
        return _sift(records, words, word, units=units, limit=limit)
    return records


def _take(units: Slices) -> Array:
    """The records' bytes, 16 at a time, one unit behind the other."""
    head = layout.HEADER_BYTES + layout.UNIT_HEADER_BYTES
    if not len(units.rows):
        return np.zeros(0, np.complex128)
    count, first = int(units.counts[0]), int(units.rows[0])
    if (units.counts == count).all() and int(units.rows[-1]) - first + 1 == len(
        units.rows
    ):  # all alike, without a gap
        shape, steps = (len(units.rows), count), (units.stride, layout.RECORD_BYTES)
        words = np.ndarray(shape, np.complex128, units.raw.data, head + first * units.stride, steps)
        return np.ascontiguousarray(words).reshape(-1)
    places = np.repeat(
        (head + units.rows * units.stride) // layout.RECORD_BYTES - _starts(units.counts), units.counts
    )
    places += np.arange(len(places))
    return units.raw[: len(units.raw) // 16 * 16].view(np.complex128).take(places)


def _of_another(word: Array, generation: int) -> Array:
    """Marks records that belong to another launch."""
    foreign: Array = ((word & _GENERATION) != 0) & (word >> np.uint32(24) != generation & 0xFF)
    return foreign


def _starts(counts: Array) -> Array:
    """The begin of each unit's records."""
    return np.cumsum(counts) - counts


def _at_starts(total: Array, counts: Array) -> Array:
    """A running total's value at each unit's first record."""
    marks = np.zeros(len(counts), np.int64)
    some = counts > 0
    marks[some] = total[_starts(counts)[some]]
    return marks


def _wraps(offset: Array, unit: Array, counts: Array, long: Array) -> Array:
    """Return the ticks of whole turns of the 32-bit timer before each record.

    Records of a unit are in order, so going back is a turn.
    """
    # The 32-bit timer turns every 2^32 ticks. Offsets [5, 4e9, 7] of one unit fall once by more
    # than _BACK, so one turn lies before the third: it is at 7 + 2^32. Smaller steps back are
    # records that were written out of order, not turns.
    turned = np.zeros(len(offset), np.int64)
    turned[1:] = (np.diff(offset) < -_BACK) & (unit[1:] == unit[:-1])
    total = np.cumsum(turned)
    return np.where(
        np.repeat(long, counts), (total - np.repeat(_at_starts(total, counts), counts)) * _WRAP, 0
    )


def _sift(records: Records, words: Array, word: Array, units: Slices, limit: Array) -> Records:
    """Leave out what cannot be of this launch."""
    unit, offset, length = records.unit, records.offset.astype(np.int64), records.length.astype(np.int64)
    wrong = offset > limit.astype(np.int64)[unit]
    early = (
        wrong & (offset >= _WRAP - _SLACK) & (offset < _WRAP) & units.ended[unit]
    )  # a timer that disagrees
    offset[early] = length[early] = 0
    wrong &= ~early
    wrong |= length > offset + _SLACK
    wrong |= _of_another(word, units.generation)
    wrong |= (word & 0xFFFF) == layout.RESERVED_TAG
    ended = units.ended[unit]
    if not ended.all():
        wrong |= _behind_the_last(words, offset, wrong, unit=unit, counts=units.counts) & ~ended
    np.minimum(length, offset, out=length)
    right = ~wrong
    unit, word, payload = unit[right], records.word[right], records.payload[right]
    counts = np.bincount(unit, minlength=len(units.rows))
    return Records(
        unit,
        word,
        payload,
        offset=offset[right],
        length=length[right],
        counts=counts,
        garbled=int(np.count_nonzero(wrong & ended)),
    )


def _behind_the_last(words: Array, offset: Array, wrong: Array, unit: Array, counts: Array) -> Array:
    """Say of each record whether to drop it: never written, or behind the first one of another launch."""
    bad: Array = wrong | ~words.any(axis=1)
    bad[1:] |= (np.diff(offset) < 0) & (unit[1:] == unit[:-1])
    total = np.cumsum(bad)
    before = _at_starts(total - bad, counts)
    behind: Array = total - before[unit] > 0
    return behind


def gather_ring(units: Slices) -> Records:
    """Take the 8-byte records of rings: the latest are there, the oldest of them first."""
    head = layout.HEADER_BYTES + layout.UNIT_HEADER_BYTES
    unit = np.repeat(np.arange(len(units.rows), dtype=np.uint32), units.counts)
    # A ring of 4 slots after 6 records (cursor 6) holds the records 2, 3, 4, 5. Record n is in slot
    # n & 3, so they are read from the slots 2, 3, 0, 1. `slots` is a power of two.
    oldest = units.cursor.astype(np.int64) - units.counts
    places = np.repeat(oldest - _starts(units.counts), units.counts)
    places += np.arange(len(places))
    places &= units.slots - 1
    places += np.repeat((head + units.rows * units.stride) // layout.RING_RECORD_BYTES, units.counts)
    pieces = units.raw[: len(units.raw) // 8 * 8].view(np.uint64).take(places)
    words = pieces.view(np.uint32).reshape(-1, 2)
    length = words[:, 1] & np.uint32(layout.RING_LONGEST)
    last = np.repeat((units.begin + units.span).astype(np.uint32), units.counts)
    # The first word has the low 32 bits of the record's start, so start + length is its end. The
    # distance of that end from the unit's end, modulo 2^32, is the age of the record. Whole turns
    # of the timer are added below, counted backwards from the end.
    age = (last - words[:, 0] - length).astype(np.int64)  # before the unit's end: the latest are kept
    long = units.ended & (units.span >= _WRAP)
    if long.any():
        age += _wraps(age[::-1], unit[::-1], units.counts[::-1], long=long[::-1])[::-1]
    offset = np.repeat(units.span.astype(np.int64), units.counts) - age
    word = words[:, 1] >> np.uint32(24)
    word |= (length == 0).astype(np.uint32) << np.uint32(16)  # layout.MARK
    records = Records(
        unit, word, np.zeros(len(unit), np.uint32), offset=offset, length=length, counts=units.counts
    )
    if not ((offset < 0) | (length > offset)).any():
        return records
    wrong = (offset < -_SLACK) | (length > offset + _SLACK)
    np.maximum(offset, 0, out=offset)
    records.length = np.minimum(length, offset)
    right = ~wrong
    for name in ("unit", "word", "payload", "offset", "length"):
        setattr(records, name, getattr(records, name)[right])
    records.counts, records.garbled = (
        np.bincount(records.unit, minlength=len(units.rows)),
        int(np.count_nonzero(wrong)),
    )
    return records
