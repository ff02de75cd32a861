"""Arrow columns as the native builder takes them: plain numbers without gaps, texts as codes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array


def whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array."""
    if isinstance(column, pa.Array):
        return column
    if column.num_chunks == 1:
        return column.chunk(0)
    array = (
        column.unify_dictionaries().combine_chunks()
        if pa.types.is_dictionary(column.type)
        else column.combine_chunks()
    )
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def filled(array: pa.Array, kind: Any) -> npt.NDArray[Any]:
    """Return an array of integers as NumPy's; -1 if there is no value."""
    wanted = pa.from_numpy_dtype(kind)
    if array.type != wanted:
        array = array.cast(wanted, safe=False)
    if array.null_count:
        array = array.fill_null(pa.scalar(-1, wanted))
    return np.ascontiguousarray(array.to_numpy(zero_copy_only=False), kind)


def integers(column: pa.ChunkedArray | pa.Array, kind: Any) -> npt.NDArray[Any]:
    """Return a column of integers as NumPy's; -1 if there is no value."""
    return filled(whole(column), kind)


def coded(column: pa.ChunkedArray | pa.Array) -> pa.DictionaryArray:
    """Return a column of texts (or of anything) with a code for each text."""
    array = whole(column)
    if not pa.types.is_dictionary(array.type):
        array = array.dictionary_encode()
    return array


def put_together(columns: list[pa.ChunkedArray | pa.Array], wording: Any) -> pa.DictionaryArray:
    """Return the texts that `wording` makes of a row's texts.

    "" where one has none, each combination once.
    """
    arrays = [coded(column) for column in columns]
    combined = np.zeros(len(arrays[0]), np.int64)
    sizes = [len(array.dictionary) + 1 for array in arrays]
    for array, size in zip(arrays, sizes, strict=True):
        combined = combined * size + (filled(array.indices, np.int64) + 1)
    product = int(np.prod(sizes, dtype=object))
    if product <= 1 << 16:
        used: npt.NDArray[Any] = np.flatnonzero(np.bincount(combined, minlength=product))
        place = np.zeros(product, np.int32)
        place[used] = np.arange(len(used), dtype=np.int32)
        codes: npt.NDArray[Any] = place[combined]
    else:
        used, codes = np.unique(combined, return_inverse=True)
    words = [[_text(value) for value in array.dictionary.to_pylist()] for array in arrays]
    texts = []
    for number in used.tolist():
        parts: list[str] = []
        for size, known in zip(reversed(sizes), reversed(words), strict=True):
            number, code = divmod(number, size)
            parts.append(known[code - 1] if code else "")
        texts.append(wording(*reversed(parts)))
    return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts, pa.string()))


def _text(value: Any) -> str:
    return "" if value is None else str(value)


class Words:
    """Numbers for the texts that are keys of tracks."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._known: dict[str, int] = {}

    def codes(self, column: pa.ChunkedArray) -> Int64Array:
        """Return a column of numbers as it is, and of texts their numbers.

        -1 if there is nothing.
        """
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            return integers(column, np.int64)
        array = coded(column)
        numbers = np.array([*(self._number(text) for text in array.dictionary.to_pylist()), -1], np.int64)
        codes_of_rows: Int64Array = numbers[filled(array.indices, np.int64)]
        return codes_of_rows

    def _number(self, text: str) -> int:
        if text not in self._known:
            self._known[text] = len(self.texts)
            self.texts.append(text)
        return self._known[text]
