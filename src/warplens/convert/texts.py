"""Strings of the spool as columns: each string id is resolved once for a process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.spool.strings import NONE, Strings

UNKNOWN = "(unknown)"
_UNSEEN = 255

Text = Callable[[str | None], str | None]


class Names:
    """The columns that string ids become.

    Each is one of `texts`, made of the string (None: there is none).
    """

    def __init__(self, strings: Strings, *texts: Text) -> None:
        self._strings = strings
        self._texts = texts
        self._known: dict[int, tuple[str | None, ...]] = {}
        self._codes = np.zeros(len(strings.lookup), np.int32)
        self.lost = 0  # rows without a string

    def columns(self, ids: npt.NDArray[Any]) -> list[pa.DictionaryArray]:
        """Return a column for each text."""
        ids = np.where(ids < len(self._codes), ids, 0)
        self.lost += int((self._strings.lookup[ids] == NONE).sum())
        met = np.zeros(len(self._codes), bool)
        met[ids] = True
        used = np.flatnonzero(met)
        self._codes[used] = np.arange(len(used), dtype=np.int32)
        rows = [self._known.get(number) or self._make(number) for number in used.tolist()]
        codes = self._codes[ids]
        return [_encoded(codes, [row[place] for row in rows]) for place in range(len(self._texts))]

    def _make(self, number: int) -> tuple[str | None, ...]:
        string = self._strings.get(number)
        self._known[number] = tuple(text(string) for text in self._texts)
        return self._known[number]


class Ids:
    """Maps each string id to a small number that `number` makes of the string.

    None: there is none.
    """

    def __init__(self, strings: Strings, number: Callable[[str | None], int]) -> None:
        self._strings, self._number = strings, number
        self._known = np.full(len(strings.lookup), _UNSEEN, np.uint8)

    def __call__(self, ids: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
        """Return the number of each."""
        ids = np.where(ids < len(self._known), ids, 0)
        values: npt.NDArray[np.uint8] = self._known[ids]
        if (unseen := values == _UNSEEN).any():
            for one in np.unique(ids[unseen], return_counts=True)[0].tolist():  # without them it loads np.ma
                self._known[one] = self._number(self._strings.get(one))
            values = self._known[ids]
        return values


def _encoded(codes: npt.NDArray[np.int32], texts: list[str | None]) -> pa.DictionaryArray:
    """Return a dictionary column: `codes` lead to `texts`, which may say the same thing twice."""
    distinct = {
        text: number for number, text in enumerate(dict.fromkeys(text for text in texts if text is not None))
    }
    places = np.array(
        [distinct.get(text, -1) if text is not None else -1 for text in texts] or [0], np.int32
    )[codes]
    return pa.DictionaryArray.from_arrays(
        pa.array(places, mask=places < 0), pa.array(list(distinct), pa.string())
    )


def plain(name: str | None) -> str | None:
    """Return a name as it is, null without one."""
    return name or None


def named(name: str | None) -> str | None:
    """Return a name as it is, and a word if there is none."""
    return name or UNKNOWN
