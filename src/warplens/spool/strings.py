"""The interned strings of one process."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.spool.chunks import Chunk

NONE = 0xFFFFFFFF
_FEW = 1000  # strings that are taken one by one: Arrow's own taking needs pyarrow.compute, which takes longer to load


class Strings:
    """All strings of a spool; `lookup[id]` is the position in `values`, or NONE."""

    def __init__(self, memory: npt.NDArray[np.uint8], chunks: Iterable[Chunk]) -> None:
        blocks = [_block(memory, chunk) for chunk in chunks]
        self.broken = sum(block[3] for block in blocks)
        ids = np.concatenate([np.empty(0, np.uint32), *(block[0] for block in blocks)])
        self.values = pa.concat_arrays(
            [pa.array([], pa.large_string()), *(_texts(block[1], block[2]) for block in blocks)]
        )
        # The agent counts ids up from 1: an id far beyond their number is damage, and not worth an array of its size.
        sane = ids <= 16 * len(ids) + 65536
        size = int(ids[sane].max()) + 1 if sane.any() else 1
        self.lookup = np.full(size, NONE, np.uint32)
        self.lookup[ids[sane]] = np.flatnonzero(sane).astype(np.uint32)
        self.broken += int((~sane).sum())

    @classmethod
    def of(cls, texts: Sequence[str]) -> Strings:
        """Return strings that are numbered from 1 on."""
        strings = cls(np.empty(0, np.uint8), ())
        strings.values = pa.array(texts, pa.large_string())
        strings.lookup = np.append(np.uint32(NONE), np.arange(len(texts), dtype=np.uint32))
        return strings

    def get(self, string_id: int) -> str | None:
        """Return one string; None for id 0 and for a lost one."""
        if string_id == 0 or string_id >= len(self.lookup) or self.lookup[string_id] == NONE:
            return None
        text: str = self.values[int(self.lookup[string_id])].as_py()
        return text

    def take(self, positions: npt.NDArray[np.uint32]) -> pa.Array:
        """Return the strings at positions in `values`, as a string array."""
        if len(positions) <= _FEW:
            return pa.array([self.values[at].as_py() for at in positions.tolist()], pa.string())
        return self.values.take(pa.array(positions)).cast(pa.string())


def _block(
    memory: npt.NDArray[np.uint8], chunk: Chunk
) -> tuple[npt.NDArray[np.uint32], Int64Array, npt.NDArray[np.uint8], int]:
    inside = memory[chunk.offset : chunk.offset + chunk.size]
    facts = np.zeros(2, np.uint64)
    count = native.call("count_strings", inside, facts)
    ids, ends, data = (
        np.zeros(count, np.uint32),
        np.zeros(count + 1, np.int64),
        np.zeros(int(facts[0]), np.uint8),
    )
    # A program that continues may add some in the meantime: no more than there were.
    copied = native.call("strings", inside, ids, ends[1:], data)
    return ids[:copied], ends[: copied + 1], data, int(facts[1])


def _texts(ends: Int64Array, data: npt.NDArray[np.uint8]) -> pa.Array:
    if len(ends) == 1:
        return pa.array([], pa.large_string())
    buffers: list[Any] = [None, pa.py_buffer(ends), pa.py_buffer(data)]
    texts = pa.Array.from_buffers(pa.large_string(), len(ends) - 1, buffers)
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:  # some are no UTF-8: programs may name ranges in any encoding
        raw = pa.Array.from_buffers(pa.large_binary(), len(ends) - 1, buffers)
        texts = pa.array(
            [item.decode("utf-8", errors="replace") for item in raw.to_pylist()], pa.large_string()
        )
    return texts
