"""Distinct numbers of a column, so that work per number is done once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from warplens.arrays import Int32Array, Int64Array


def distinct(key: Int64Array, width: int) -> tuple[Int64Array, Int32Array]:
    """Return the keys that occur, in order, and which of them each row has.

    They are from 0 to `width` - 1.
    """
    if width > 4 * len(key) + 1024:
        used, inverse = np.unique(key, return_inverse=True)
        return used, inverse.reshape(-1).astype(np.int32)
    there = np.zeros(width, bool)
    there[key] = True
    used = np.flatnonzero(there)
    place = np.zeros(width, np.int32)
    place[used] = np.arange(len(used), dtype=np.int32)
    return used, place[key]


def labelled(place: Int32Array, texts: Sequence[str]) -> pa.DictionaryArray:
    """Return the text of each row as a dictionary in which each text stands once."""
    known: dict[str, int] = {}
    code = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    return pa.DictionaryArray.from_arrays(
        pa.array(code[place] if len(code) else place), pa.array(list(known), pa.string())
    )
