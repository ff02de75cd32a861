"""Converts columns of the native reader to those of a report.

Codes become dictionaries, missing values null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int32Array, Int64Array
from warplens.importers.kineto.layout import NULL, NULL32

ROWS_PER_GROUP = 1 << 18


class Texts:
    """The texts of a trace by their code."""

    def __init__(self, ends: Int64Array, data: bytes) -> None:
        self._begins = np.concatenate([np.zeros(1, np.int64), ends])
        self._data = data

    def __len__(self) -> int:
        return len(self._begins) - 1

    def __getitem__(self, code: int) -> str:
        return self._data[self._begins[code] : self._begins[code + 1]].decode()

    def column(self, codes: Int32Array, change: Callable[[str], str | None] = str) -> pa.DictionaryArray:
        """Return a dictionary column of the texts with these codes.

        Null if there is none, or where `change` gives none.
        """
        used, where = self.distinct(codes)
        values = [change(self[code]) for code in used.tolist()]
        unique = {
            value: number
            for number, value in enumerate(dict.fromkeys(value for value in values if value is not None))
        }
        numbers = np.array([-1 if value is None else unique[value] for value in values] + [-1], np.int32)
        return dictionary(numbers[where], list(unique))

    def distinct(self, codes: Int32Array) -> tuple[Int64Array, Int32Array]:
        """Return the codes that occur, in order, and the place of each row's code.

        One behind the last for rows without a code.
        """
        # Codes are small integers, so a table with an entry per text replaces a sort; the last entry stands for "no text".
        there = np.zeros(len(self) + 1, bool)
        there[np.where(codes < 0, len(self), codes)] = True
        there[len(self)] = False
        used = np.flatnonzero(there)
        places = np.full(len(self) + 1, len(used), np.int32)
        places[used] = np.arange(len(used), dtype=np.int32)
        return used, places[np.where(codes < 0, len(self), codes)]


def dictionary(codes: Int32Array, values: Sequence[str]) -> pa.DictionaryArray:
    """Return a dictionary column; null if the code is negative."""
    numbers = np.asarray(codes, np.int32)
    missing = numbers < 0
    return pa.DictionaryArray.from_arrays(
        pa.array(np.where(missing, 0, numbers), pa.int32(), mask=missing if missing.any() else None),
        pa.array(list(values), pa.string()),
    )


def constant(value: str, count: int) -> pa.DictionaryArray:
    """Return a dictionary column that is the same throughout."""
    return dictionary(np.zeros(count, np.int32), [value])


def optional(values: npt.NDArray[Any]) -> pa.Array:
    """Return an integer column, null if the reader has no value."""
    return pa.array(values, mask=values == (NULL if values.dtype == np.int64 else NULL32))


def filled(values: npt.NDArray[Any], default: int = 0) -> npt.NDArray[Any]:
    """Return an integer column with `default` where the reader has no value."""
    return np.where(
        values == (NULL if values.dtype == np.int64 else NULL32), values.dtype.type(default), values
    )


def where_known(values: Int64Array) -> pa.Array:
    """Return ids; null if they are negative."""
    return pa.array(values, pa.int64(), mask=values < 0)


def ordered(process: Int64Array, start: Int64Array, end: Int64Array | None = None) -> Int64Array | None:
    """Return the order by process and start, the longer first; None if that is how they come."""
    many = len(process) > 0 and bool((process != process[0]).any())
    if not many and len(start) and bool((start[1:] >= start[:-1]).all()):
        tied = start[1:] == start[:-1]
        if end is None or not bool((tied & (end[1:] > end[:-1])).any()):
            return None
    keys = [start] if end is None else [-end, start]
    return np.lexsort([*keys, process] if many else keys)


def taken(order: Int64Array | None, *columns: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Return columns in an order; None: as they are."""
    return list(columns) if order is None else [column[order] for column in columns]


def groups(count: int) -> Iterator[slice]:
    """Return the rows that are made and written at once."""
    for begin in range(0, count, ROWS_PER_GROUP):
        yield slice(begin, min(begin + ROWS_PER_GROUP, count))
