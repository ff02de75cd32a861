"""Batches for the native Perfetto encoder: rows as C arrays, with their texts numbered."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.dictionaries import codes
from warplens.exporters.protobuf import message, number, text


class Notes(ctypes.Structure):
    """`Notes` of native/reader/perfetto/encoder.cpp: one detail of all events of a batch."""

    _fields_ = [
        ("name", ctypes.c_uint64),
        ("values", ctypes.c_void_p),
        ("has", ctypes.c_void_p),
        ("ids", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
    ]


class Batch(ctypes.Structure):
    """`Batch` of native/reader/perfetto/encoder.cpp."""

    _fields_ = [
        ("rows", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in (
                *(
                    "family",
                    "id",
                    "parent",
                    "start",
                    "end",
                    "name",
                    "name_ids",
                    "domain",
                    "domain_ids",
                    "category",
                    "category_ids",
                ),
                *(
                    "color",
                    "has_color",
                    "payload_int",
                    "has_int",
                    "payload_float",
                    "has_float",
                    "flags",
                    "more",
                    "more_offsets",
                    "notes",
                ),
            )
        ),
        ("note_columns", ctypes.c_int64),
        ("flow", ctypes.c_void_p),
        ("flow_ends", ctypes.c_int64),
    ]


class SampleBatch(ctypes.Structure):
    """`Samples` there."""

    _fields_ = [
        ("rows", ctypes.c_int64),
        *((name, ctypes.c_void_p) for name in ("track", "time", "whole", "real", "is_float")),
    ]


class Columns:
    """A `Batch`, and the arrays it points into."""

    def __init__(self, rows: int) -> None:
        self.struct = Batch(rows=rows)
        self._kept: list[npt.NDArray[Any]] = []

    def put(self, name: str, array: npt.NDArray[Any]) -> None:
        """Set a field to an array, which is kept alive."""
        self._kept.append(array)
        setattr(self.struct, name, array.ctypes.data)

    def codes(self, name: str, column: pa.Array, interned: Interned, missing: str | None) -> None:
        """Set a text column; nulls become `missing`."""
        if column.null_count == len(column) and missing is None:
            return
        numbers, texts = codes(column)
        self.put(name, numbers)
        self.put(
            f"{name}_ids", np.array([interned.id(text) for text in [missing, *texts.to_pylist()]], np.uint64)
        )

    def optional(self, name: str, column: pa.Array, mask: str, kind: type[np.generic]) -> None:
        """Set a column of numbers, and the mask that says where it has some."""
        if column.null_count == len(column):
            return
        filled = pc.fill_null(column, 0) if column.null_count else column
        self.put(name, np.ascontiguousarray(filled.to_numpy(zero_copy_only=False), kind))
        if column.null_count:
            self.put(mask, column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8))

    def more(self, texts: list[bytes]) -> None:
        """Put encoded fields behind the events of the rows."""
        if any(texts):
            self.put("more_offsets", np.cumsum([0, *map(len, texts)], dtype=np.int64))
            self.put("more", np.frombuffer(b"".join(texts), np.uint8))

    def notes(self, details: list[tuple[str, pa.Array]], names: Interned, texts: Interned) -> None:
        """Set the details of the events: numbers, bools and texts, with their names."""
        array = (Notes * len(details))()
        for note, (name, column) in zip(array, details, strict=True):
            note.name = names.id(name)
            note.kind, held = _held(column)
            if note.kind == _TEXT:
                numbers, dictionary = codes(column)
                held = numbers
                note.ids = self._keep(
                    np.array([texts.id(text) for text in ["", *dictionary.to_pylist()]], np.uint64)
                )
            note.values = self._keep(held)
            if column.null_count:
                note.has = self._keep(column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8))
        self._notes = array
        self.struct.notes, self.struct.note_columns = ctypes.addressof(array), len(details)

    def flow(self, arrows: npt.NDArray[np.uint64], *, ends: bool) -> None:
        """Set the arrow that begins or ends at each event; 0: none."""
        self.put("flow", arrows)
        self.struct.flow_ends = ends

    def _keep(self, array: npt.NDArray[Any]) -> int:
        self._kept.append(array)
        return array.ctypes.data


_INT, _DOUBLE, _BOOL, _TEXT = range(4)


def _held(column: pa.Array) -> tuple[int, npt.NDArray[Any]]:
    """Return the kind of a column of details and its values, nulls as 0; of texts none."""
    if pa.types.is_dictionary(column.type) or pa.types.is_string(column.type):
        return _TEXT, np.empty(0)
    kind, dtype = (
        (_BOOL, np.uint8)
        if pa.types.is_boolean(column.type)
        else (_DOUBLE, np.float64)
        if pa.types.is_floating(column.type)
        else (_INT, np.int64)
    )
    filled = pc.fill_null(column, False if kind == _BOOL else 0) if column.null_count else column
    return kind, np.ascontiguousarray(filled.to_numpy(zero_copy_only=False).astype(dtype))


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
        """Return what was numbered since the last call, encoded."""
        new, self._new = self._new, []
        return new
