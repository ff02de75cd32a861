"""Reads rows of one table of a foreign database. Absent columns read as null."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import BoolArray, Int64Array

FLAG = "?"  # behind a column's name: the column that says where it has a value


class NsysRows:
    """Rows of one table: integers and reals as NumPy, texts as Arrow.

    `texts`: which of the columns `names` are texts.

    Columns that `table` lacks are null throughout.
    """

    def __init__(self, table: pa.Table, names: Collection[str], texts: Collection[str]) -> None:
        self._table = table
        self._names = names
        self._texts = texts
        self._there = frozenset(table.column_names)

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def valid(self, name: str) -> BoolArray:
        """Say which rows have a value."""
        if name not in self._there:
            return np.zeros(len(self), bool)
        if name + FLAG in self._there:
            return np.asarray(self.ints(name + FLAG) != 0)
        return np.asarray(self._column(name).is_valid())

    def ints(self, name: str, default: int = 0) -> Int64Array:
        """Return an integer column; rows without a value have `default`."""
        if name not in self._there:
            return np.full(len(self), default, np.int64)
        return np.asarray(
            self._column(name).cast(pa.int64()).fill_null(default).to_numpy(zero_copy_only=False), np.int64
        )

    def reals(self, name: str) -> npt.NDArray[np.float64]:
        """Return a real column; rows without a value have 0."""
        if name not in self._there:
            return np.zeros(len(self))
        return np.asarray(
            self._column(name).cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False), np.float64
        )

    def texts(self, name: str) -> pa.Array:
        """Return a text column with nulls; bytes that are not UTF-8 are replaced."""
        if name not in self._there or not len(self):  # the driver takes empty columns for integers
            return pa.nulls(len(self), pa.string())
        data = self._column(name).cast(pa.binary())
        try:
            texts = data.cast(pa.string())
        except pa.ArrowInvalid:
            texts = pa.array(
                [bytes(value).decode(errors="replace") for value in data.to_pylist()], pa.string()
            )
        return (
            pc.if_else(pa.array(self.valid(name)), texts, pa.scalar(None, pa.string()))
            if name + FLAG in self._there
            else texts
        )

    def dictionaries(self) -> list[dict[str, Any]]:
        """Return the rows one by one, None if there is no value; for small tables."""
        columns: dict[str, list[Any]] = {}
        for name in self._names:
            if name in self._texts:
                columns[name] = self.texts(name).to_pylist()
            else:
                numbers, valid = self.ints(name).tolist(), self.valid(name).tolist()
                columns[name] = [value if ok else None for value, ok in zip(numbers, valid, strict=True)]
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def taken(self, which: npt.NDArray[Any]) -> NsysRows:
        """Return the rows with these indices, or where a mask is true."""
        if which.dtype == bool:
            return (
                self
                if which.all()
                else NsysRows(self._table.filter(pa.array(which)), self._names, self._texts)
            )
        return NsysRows(self._table.take(pa.array(which)), self._names, self._texts)

    def _column(self, name: str) -> pa.Array:
        column = self._table.column(name)
        return column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
