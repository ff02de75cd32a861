"""Batches for the native Perfetto encoder: columns by name, with their texts numbered."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.analysis.dictionaries import numbered
from warplens.exporters.protobuf import message, number, text


class EventColumns:
    """Events, and their annotations, as the encoder takes them (`Batch` of native/reader/perfetto/encoder.cpp)."""

    def __init__(self) -> None:
        self._columns: dict[str, pa.Array] = {}
        self._details: list[pa.Array] = []
        self._names: list[int] = []
        self._flow_ends = False

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Set a column of numbers."""
        self._columns[name] = pa.array(array)

    def texts(self, name: str, column: pa.Array, interned: Interned, missing: str | None) -> None:
        """Set a text column; nulls become `missing`."""
        if missing is not None or column.null_count < len(column):
            instead = None if missing is None else interned.id(missing)
            self._columns[name] = numbered(column, interned.id, pa.uint64(), missing=instead)

    def optional(self, name: str, column: pa.Array, kind: pa.DataType) -> None:
        """Set a column of numbers that some rows lack."""
        if column.null_count < len(column):
            self._columns[name] = column.cast(kind, safe=False)

    def more(self, texts: list[bytes]) -> None:
        """Put encoded fields behind the events of the rows."""
        if any(texts):
            self._columns["more"] = pa.array(texts, pa.large_binary())

    def notes(self, details: list[tuple[str, pa.Array]], names: Interned, texts: Interned) -> None:
        """Set the details of the events: numbers, bools and texts, with their names."""
        self._names = [names.id(name) for name, _ in details]
        self._details = [_detail(column, texts) for _, column in details]

    def flow(self, arrows: npt.NDArray[np.uint64], *, ends: bool) -> None:
        """Set the arrow that begins or ends at each event; 0: none."""
        self.put("flow", arrows)
        self._flow_ends = ends

    def encode(self, encoder: native.Handle, *, instants: bool) -> None:
        """Encode the events: marks, or ranges."""
        numbers = np.array(self._names, np.uint64)
        details = (
            pa.RecordBatch.from_arrays(self._details, [str(place) for place in range(len(numbers))])
            if self._details
            else None
        )
        rows, ends = pa.RecordBatch.from_pydict(self._columns), int(self._flow_ends)
        native.call(
            "perfetto_marks" if instants else "perfetto_ranges", encoder, rows, details, numbers, ends
        )


def _detail(column: pa.Array, texts: Interned) -> pa.Array:
    """Return a column of details: bools, codes of texts, float64 or int64."""
    kind = column.type
    if pa.types.is_boolean(kind):
        return column
    if pa.types.is_dictionary(kind) or pa.types.is_string(kind):
        return numbered(column, texts.id, pa.uint64())
    return column.cast(pa.float64() if pa.types.is_floating(kind) else pa.int64(), safe=False)


class Interned:
    """Numbers strings from 1 in one list of InternedData; 0 is none."""

    def __init__(self, field: int) -> None:
        self._field = field
        self._ids: dict[str, int] = {}
        self._new: list[bytes] = []

    def id(self, value: str | None) -> int:
        """Return the number of a text, 0 for None."""
        if value is None:
            return 0
        known = self._ids.get(value)
        if known is None:
            known = self._ids[value] = len(self._ids) + 1
            self._new.append(message(self._field, number(1, known), text(2, value)))
        return known

    def take_new(self) -> list[bytes]:
        """Return the entries numbered since the last call, encoded."""
        new, self._new = self._new, []
        return new
