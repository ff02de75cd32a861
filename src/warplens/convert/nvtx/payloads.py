"""The table `payloads`: the bytes that came with ranges, marks and samples, block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.nvtx.schemas import JSON, Schemas
from warplens.spool.events import Blobs, Events
from warplens.spool.payload_schema import Struct, leaves
from warplens.spool.payload_types import REGISTERED_STRING, TYPES
from warplens.spool.strings import Strings
from warplens.storage import schema

AT_END, CUT = 1, 2
_BLOCK_BYTES = 64 << 20
_EVENTS_AT_ONCE = 1 << 16
_MOST_STRINGS = 1 << 16  # registered strings that one schema's payloads name


@dataclass
class Payloads:
    """Makes the rows of one process."""

    process: int
    events: Events
    schemas: Schemas
    strings: Strings
    write: Callable[[str, pa.Table], None]

    def follow(
        self, kind: str, event: Int64Array, domain: npt.NDArray[np.uint32], first: npt.NDArray[np.uint64]
    ) -> None:
        """Write all payloads of events of one kind.

        `first`: where the first one of each lies in the spool.
        """
        for begin in range(0, len(first), _EVENTS_AT_ONCE):
            some = slice(begin, begin + _EVENTS_AT_ONCE)
            self.add(kind, event[some], domain[some], blobs=self.events.blobs(first[some]))

    def add(self, kind: str, event: Int64Array, domain: npt.NDArray[np.uint32], blobs: Blobs) -> None:
        """Write the payloads of events of one kind.

        `event` and `domain` are those of the events that `blobs` was called with.
        """
        for first, last in _blocks(blobs.size):
            block = blobs.take(slice(first, last))
            self.write("payloads", self._table(kind, event[block.event], domain[block.event], blobs=block))
            self.events.release()  # large payloads would fill the memory with the spool

    def _table(self, kind: str, event: Int64Array, domain: npt.NDArray[np.uint32], blobs: Blobs) -> pa.Table:
        rows = len(event)
        codes, kinds = distinct(domain, blobs.schema)
        places = [self.schemas.find(*pair) for pair in kinds]
        names = [self.schemas.name(*pair) for pair in kinds]
        keys = np.array([self.schemas.key(place) if place else 0 for place in places], np.int64)
        known = np.array([place is not None for place in places], bool)
        data = self.events.gather(blobs.offset, blobs.size)
        ends = np.zeros(rows + 1, np.int64)
        np.cumsum(blobs.size, out=ends[1:])
        for code, pair in enumerate(kinds):
            self._note_strings(pair, data, ends, rows=np.flatnonzero(codes == code))
        is_json = np.array([name == JSON for name in names], bool)[codes]
        whole = pa.Array.from_buffers(
            pa.binary(), rows, [None, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
        )
        columns = {
            "process": pa.array(np.full(rows, self.process, np.int64)),
            "event_type": pa.DictionaryArray.from_arrays(
                pa.array(np.zeros(rows, np.int32)), pa.array([kind])
            ),
            "event": pa.array(event),
            "schema": pa.array(keys[codes], mask=~known[codes]),
            "type": pa.DictionaryArray.from_arrays(pa.array(codes), pa.array(names, pa.string())),
            "at_end": pa.array((blobs.flags & AT_END) != 0),
            "cut": pa.array((blobs.flags & CUT) != 0),
            "data": whole if not is_json.any() else pa.array(whole.to_pylist(), pa.binary(), mask=is_json),
            "json": _texts(whole, is_json),
        }
        return schema.build("payloads", columns)

    def _note_strings(
        self, pair: tuple[int, int], data: npt.NDArray[np.uint8], ends: Int64Array, rows: Int64Array
    ) -> None:
        """Keep the texts of registered strings: their numbers mean nothing without the spool."""
        layout = self.schemas.layout(*pair)
        place = self.schemas.find(*pair)
        if place is None or not isinstance(layout, Struct):
            return
        handles = [
            leaf.offset for leaf in leaves(layout) or () if leaf.scalar.type is TYPES[REGISTERED_STRING]
        ]
        known = self.schemas.strings.setdefault(place, {}) if handles else {}
        for offset in handles:
            inside = rows[ends[rows] + offset + 8 <= ends[rows + 1]]
            at = (ends[inside] + offset)[:, None] + np.arange(8)
            for handle in np.unique(data[at].reshape(-1).view("<u8")).tolist():
                text = self.strings.get(handle)
                if text is not None and len(known) < _MOST_STRINGS:
                    known[handle] = text


def distinct(
    domain: npt.NDArray[np.uint32], number: npt.NDArray[np.uint64]
) -> tuple[npt.NDArray[np.int32], list[tuple[int, int]]]:
    """Return which of the distinct pairs (domain, number) each row has, and those pairs."""
    numbers, which = np.unique(number, return_inverse=True)
    mixed, codes = np.unique(which.reshape(-1).astype(np.int64) << 32 | domain, return_inverse=True)
    pairs = [(int(one) & 0xFFFFFFFF, int(numbers[int(one) >> 32])) for one in mixed]
    return codes.reshape(-1).astype(np.int32), pairs


def _texts(data: pa.Array, is_text: npt.NDArray[np.bool_]) -> pa.Array:
    if not is_text.any():
        return pa.nulls(len(data), pa.string())
    values = [
        raw.split(b"\0", 1)[0].decode("utf-8", errors="replace") if wanted else None
        for raw, wanted in zip(data.to_pylist(), is_text.tolist(), strict=True)
    ]
    return pa.array(values, pa.string())


def _blocks(size: npt.NDArray[np.uint32]) -> Iterator[tuple[int, int]]:
    """Cut rows into blocks that hold about `_BLOCK_BYTES`."""
    # A block ends before the row that would exceed _BLOCK_BYTES, but has at least one row, so a
    # payload above the limit is a block alone.
    ends = np.cumsum(size, dtype=np.int64)
    first = 0
    while first < len(size):
        begin = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, begin + _BLOCK_BYTES, "right")), first + 1)
        yield first, last
        first = last
