"""The table `nvtx_counter_samples`, slice by slice.

A sample of a structure becomes one row per number in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.nvtx.counters import Counter, Counters
from warplens.convert.nvtx.payloads import Payloads
from warplens.spool.events import SAMPLES, Blobs, Events
from warplens.spool.payload_schema import Leaf
from warplens.storage import schema

_REASONS = pa.array(["zero", "unchanged", "unavailable", "unknown"])
_TABLE = "nvtx_counter_samples"


@dataclass
class _Piece:
    """Some samples as rows: their places in the slice, keys, values."""

    row: Int64Array
    counter: Int64Array
    ints: Int64Array
    floats: npt.NDArray[np.float64]
    kind: npt.NDArray[np.int8]  # of the value: 0 none, 1 an integer, 2 a float


@dataclass
class Samples:
    """Makes the rows of one process."""

    first: int
    events: Events
    counters: Counters
    payloads: Payloads
    write: Callable[[str, pa.Table], None]
    undecoded: int = 0
    _count: int = 0

    def add(self, rows: int) -> None:
        """Write the samples of the current slice."""
        samples, payloads = self.events.table(SAMPLES), self.events.payloads(SAMPLES)
        counter = samples.column("counter")
        used = [(pair >> 32, pair & 0xFFFFFFFF) for pair in counter.dictionary.to_pylist()]
        code = counter.indices.to_numpy()
        known = [self.counters.get(*pair) for pair in used]
        structured = np.array([one is not None and bool(one.fields) for one in known], bool)[code]
        blob_row = payloads.column("row").to_numpy()
        has_blob = np.zeros(rows, bool)
        has_blob[blob_row] = True
        ints, floats = (_values(samples.column(name)) for name in ("value_int", "value_float"))
        kind = ints[1].astype(np.int8) + 2 * floats[1].astype(np.int8)
        plain = np.flatnonzero(~has_blob & ~(structured & (kind == 0)))
        keys = np.zeros((len(used), 3), np.int64)
        for mixed in np.unique(code[plain].astype(np.int64) * 4 + kind[plain]).tolist():
            domain, number = used[mixed // 4]
            keys[mixed // 4, mixed % 4] = self.counters.single(
                domain, number, "float64" if mixed % 4 == 2 else "int64"
            )
        pieces = [
            _Piece(
                plain,
                keys[code[plain], kind[plain]],
                ints[0][plain],
                floats=floats[0][plain],
                kind=kind[plain],
            )
        ]
        left: Blobs | None = None
        if len(blob_row):
            blobs = self.events.blobs(payloads.column("offset").to_numpy())
            more, left = self._from_blobs(used, known, code, row=blob_row, blobs=blobs)
            pieces += more
        silent = np.flatnonzero(structured & (kind == 0) & ~has_blob)
        pieces += [
            piece
            for number, one in enumerate(known)
            if one is not None
            for piece in _silent(one, silent[code[silent] == number])
        ]
        before = self.first + self._count
        written = self._write(samples, pieces, has_blob)
        if left is not None and len(left.event):
            event = before + np.searchsorted(written, blob_row).astype(np.int64)
            self.payloads.add("sample", event, payloads.column("domain").to_numpy(), left)

    def _from_blobs(
        self,
        used: list[tuple[int, int]],
        known: list[Counter | None],
        code: npt.NDArray[np.int32],
        row: Int64Array,
        blobs: Blobs,
    ) -> tuple[list[_Piece], Blobs]:
        """Values from bytes.

        What holds no number that is known stays a payload of a sample without a value.
        """
        pieces = []
        at = row[blobs.event]
        left = np.ones(len(row), bool)
        for number, counter in enumerate(known):
            mine = np.flatnonzero(code[at] == number)
            if counter is None or not counter.fields or not len(mine):
                continue
            need = max(leaf.offset + leaf.scalar.size for leaf in counter.fields)
            mine = mine[blobs.size[mine] >= need]
            left[blobs.event[mine]] = False
            fixed = self.events.gather(blobs.offset[mine], np.full(len(mine), need, np.uint32)).reshape(
                -1, need
            )
            for key, leaf in zip(counter.keys, counter.fields, strict=True):
                pieces.append(_numbers(leaf, fixed, at[mine], key=key))
        lost = row[left]
        if len(lost):
            keys = np.zeros(len(used), np.int64)
            for number in np.unique(code[lost]).tolist():
                counter = known[number]
                keys[number] = (
                    counter.keys[0]
                    if counter
                    else self.counters.single(used[number][0], used[number][1], "int64")
                )
            nothing = np.zeros(len(lost), np.int64)
            pieces.append(
                _Piece(
                    lost,
                    keys[code[lost]],
                    nothing,
                    floats=nothing.astype(np.float64),
                    kind=nothing.astype(np.int8),
                )
            )
            self.undecoded += len(lost)
        return pieces, blobs.take(left[blobs.event])

    def _write(
        self, samples: pa.RecordBatch, pieces: list[_Piece], has_blob: npt.NDArray[np.bool_]
    ) -> Int64Array:
        """Write rows in order of the samples; returns which sample of the slice each one is of."""
        row, counter, ints, floats, kind = (
            np.concatenate([getattr(piece, name) for piece in pieces])
            for name in ("row", "counter", "ints", "floats", "kind")
        )
        if len(pieces) > 1:
            order = np.argsort(row, kind="stable")
            row, counter, ints, floats, kind = (
                row[order],
                counter[order],
                ints[order],
                floats[order],
                kind[order],
            )
        ids = self.first + self._count + np.arange(len(row), dtype=np.int64)
        self._count += len(row)
        reason = np.minimum(samples.column("reason").to_numpy()[row], 3).astype(np.int32)
        task, in_task = _values(samples.column("task"))
        columns = {
            "id": pa.array(ids),
            "process": pa.array(samples.column("process").to_numpy()[row]),
            "thread": pa.array(samples.column("thread").to_numpy()[row]),
            "counter": pa.array(counter),
            "start": pa.array(samples.column("start").to_numpy()[row]),
            "value_int": pa.array(ints, mask=kind != 1),
            "value_float": pa.array(floats, mask=kind != 2),
            "no_value": pa.DictionaryArray.from_arrays(
                pa.array(reason, mask=(kind != 0) | has_blob[row]), _REASONS
            ),
            "task": pa.array(task[row], mask=~in_task[row]),
        }
        self.write(_TABLE, schema.build(_TABLE, columns))
        return row


def _values(column: pa.Array) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """Return the values of a column, 0 if there is none, and where there are some."""
    return column.fill_null(0).to_numpy(), column.is_valid().to_numpy(zero_copy_only=False)


def _numbers(leaf: Leaf, fixed: npt.NDArray[np.uint8], row: Int64Array, key: int) -> _Piece:
    values = (
        np.ascontiguousarray(fixed[:, leaf.offset : leaf.offset + leaf.scalar.size])
        .reshape(-1)
        .view(leaf.scalar.type.format)
    )
    if leaf.scalar.type.name == "bfloat16":
        values = (values.astype(np.uint32) << 16).view(np.float32)
    is_float = values.dtype.kind == "f"
    ints = np.zeros(len(row), np.int64) if is_float else values.astype(np.int64)
    floats = values.astype(np.float64) if is_float else np.zeros(len(row))
    return _Piece(
        row,
        np.full(len(row), key, np.int64),
        ints,
        floats=floats,
        kind=np.full(len(row), 2 if is_float else 1, np.int8),
    )


def _silent(counter: Counter, row: Int64Array) -> list[_Piece]:
    """Samples of a structure that say there is no value: none of its numbers has one."""
    nothing = np.zeros(len(row), np.int64)
    if not counter.fields or not len(row):
        return []
    return [
        _Piece(
            row,
            np.full(len(row), key, np.int64),
            nothing,
            floats=nothing.astype(np.float64),
            kind=nothing.astype(np.int8),
        )
        for key in counter.keys
    ]
