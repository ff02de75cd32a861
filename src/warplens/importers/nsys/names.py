"""Converts ids and numbers to dictionary columns: texts of `StringIds`, and our labels of enumerations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.database import Database


def encoded(
    database: Database, ids: Int64Array, valid: BoolArray, change: Callable[[str], str] = str
) -> pa.DictionaryArray:
    """Return the texts with these ids as a dictionary column.

    Null where `valid` is false, `[string N]` where the file lacks N.
    """
    known, numbers = combined([ids[valid]])
    distinct = [number for (number,) in numbers]
    texts = database.strings(np.array(distinct, np.int64))
    values = [change(texts[number]) if number in texts else f"[string {number}]" for number in distinct]
    codes = np.zeros(len(ids), np.int32)
    codes[valid] = known
    return distinct_values(codes, values, valid)


def labelled(
    numbers: Int64Array, valid: BoolArray, labels: Mapping[int, str], unknown: str = "kind {}"
) -> pa.DictionaryArray:
    """Return the labels of these numbers as a dictionary column.

    Numbers without one become `unknown` with the number.
    """
    distinct = np.unique(numbers[valid])
    values = [labels.get(number, unknown.format(number)) for number in distinct.tolist()]
    codes = np.searchsorted(distinct, numbers).astype(np.int32)
    codes[~valid] = 0
    return distinct_values(codes, values, valid)


def distinct_values(codes: npt.NDArray[np.int32], values: list[str], valid: BoolArray) -> pa.DictionaryArray:
    """Return a dictionary column in which each value occurs once.

    `codes` may be anything where `valid` is false.
    """
    unique = list(dict.fromkeys(values))
    numbers = {value: number for number, value in enumerate(unique)}
    if len(unique) != len(values) and values:
        codes = np.array([numbers[value] for value in values], np.int32)[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(codes, pa.int32(), mask=~valid), pa.array(unique, pa.string())
    )


def combined(keys: Sequence[Int64Array]) -> tuple[npt.NDArray[np.int32], list[tuple[int, ...]]]:
    """Return which of the distinct tuples of keys each row has, and those tuples.

    `keys` has one column for each key.
    """
    codes = np.zeros(len(keys[0]), np.int64)
    known: list[tuple[int, ...]] = [()] if len(codes) else []
    for key in keys:
        values = pc.unique(pa.array(key))
        which = pc.index_in(pa.array(key), value_set=values).to_numpy()
        mixed = codes * len(values) + which
        used = pc.unique(pa.array(mixed))
        codes = pc.index_in(pa.array(mixed), value_set=used).to_numpy().astype(np.int64)
        numbers = values.to_pylist()
        known = [
            (*known[number // len(numbers)], numbers[number % len(numbers)]) for number in used.to_pylist()
        ]
    return codes.astype(np.int32), known
