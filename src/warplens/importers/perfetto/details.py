"""The annotations of events as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.importers.perfetto.trace import BOOL, DOUBLE, JSON, TEXT, UINT, PerfettoTrace


class Details:
    """Finds the annotations of a name.

    Those that came with the end of a slice count as those of the slice.
    """

    def __init__(self, trace: PerfettoTrace, partner: Int64Array) -> None:
        self._trace = trace
        notes = trace.notes
        self._order = np.argsort(notes["name"], kind="stable")
        self._sorted = notes["name"][self._order]
        event = notes["event"].astype(np.int64)
        above = partner[event] if len(event) else event
        self._event = np.where((above >= 0) & (above < event), above, event)
        self._place = np.full(len(trace.events["time"]), -1, np.int64)

    def of(self, rows: Int64Array, name: str) -> DetailColumn | None:
        """Return what the events `rows` (rows of events) say under a name.

        None if none says anything.
        """
        number = self._trace.number(name)
        first, last = (int(np.searchsorted(self._sorted, number, side=side)) for side in ("left", "right"))
        if first == last:
            return None
        mine = self._order[first:last]
        self._place[rows] = np.arange(len(rows))
        place = self._place[self._event[mine]]
        self._place[rows] = -1
        mine, place = mine[place >= 0], place[place >= 0]
        if not len(mine):
            return None
        return DetailColumn(
            self._trace,
            len(rows),
            place,
            kind=self._trace.notes["kind"][mine],
            value=self._trace.notes["value"][mine],
        )


class DetailColumn:
    """Values of one name: at `place` of `size` rows, of several kinds."""

    def __init__(
        self,
        trace: PerfettoTrace,
        size: int,
        place: Int64Array,
        kind: npt.NDArray[Any],
        value: npt.NDArray[Any],
    ) -> None:
        self._trace, self.size, self._place, self._kind, self._value = trace, size, place, kind, value

    def ints(self) -> pa.Array:
        """Return integers (and texts of digits), null elsewhere."""
        return self._numbers(np.int64, pa.int64(), int)

    def unsigned(self) -> pa.Array:
        """Return integers without a sign."""
        return self._numbers(np.uint64, pa.uint64(), int)

    def reals(self) -> pa.Array:
        """Return real numbers."""
        out, there = np.zeros(self.size), np.zeros(self.size, bool)
        kind, value = self._kind, self._value
        for own, made in (
            (kind == DOUBLE, value.view(np.float64)),
            (kind < DOUBLE, value.view(np.int64).astype(np.float64)),
        ):
            out[self._place[own]], there[self._place[own]] = made[own], True
        self._parsed(out, there, float)
        return pa.array(out, pa.float64(), mask=~there)

    def bools(self) -> pa.Array:
        """Return truth values."""
        out, there = np.zeros(self.size, bool), np.zeros(self.size, bool)
        own = np.isin(self._kind, (BOOL, UINT, 0))
        out[self._place[own]], there[self._place[own]] = self._value[own] != 0, True
        texts = np.flatnonzero(self._kind == TEXT)
        for row, text in zip(self._place[texts].tolist(), self._texts(texts), strict=True):
            if text in ("true", "false"):
                out[row], there[row] = text == "true", True
        return pa.array(out, pa.bool_(), mask=~there)

    def texts(self) -> pa.DictionaryArray:
        """Return texts; numbers as they are written."""
        numbers = np.full(self.size, -1, np.int32)
        own = np.isin(self._kind, (TEXT, JSON))
        numbers[self._place[own]] = self._value[own].view(np.int64)
        texts = self._trace.texts
        if not own.all():
            others = np.flatnonzero(~own)
            made = [str(self._python(row)) for row in others.tolist()]
            # Values that are no texts become new entries behind the texts of the trace.
            numbers[self._place[others]] = len(texts) + np.arange(len(made))
            texts = pa.concat_arrays([texts, pa.array(made, pa.string())])
        return coded(numbers, texts)

    def only(self, *kinds: int) -> DetailColumn:
        """Return those of some kinds."""
        own = np.isin(self._kind, kinds)
        return DetailColumn(
            self._trace, self.size, self._place[own], kind=self._kind[own], value=self._value[own]
        )

    def python(self) -> list[tuple[int, int, Any]]:
        """Return place, kind and value of each."""
        return [
            (int(self._place[row]), int(self._kind[row]), self._python(row))
            for row in range(len(self._place))
        ]

    def there(self) -> npt.NDArray[np.bool_]:
        """Return which rows have a value."""
        out = np.zeros(self.size, bool)
        out[self._place] = True
        return out

    def _numbers(self, kind: type[np.generic], arrow: pa.DataType, parse: Any) -> pa.Array:
        out, there = np.zeros(self.size, kind), np.zeros(self.size, bool)
        own = (self._kind < DOUBLE) | (self._kind == BOOL)
        out[self._place[own]], there[self._place[own]] = self._value[own].view(kind), True
        self._parsed(out, there, parse)
        return pa.array(out, arrow, mask=~there)

    def _parsed(self, out: npt.NDArray[Any], there: npt.NDArray[np.bool_], parse: Any) -> None:
        texts = np.flatnonzero(self._kind == TEXT)
        for row, text in zip(self._place[texts].tolist(), self._texts(texts), strict=True):
            try:
                out[row], there[row] = parse(text), True
            except (ValueError, OverflowError, TypeError):
                continue

    def _texts(self, rows: Int64Array) -> list[str | None]:
        numbers = self._value[rows].view(np.int64)
        known = {number: self._trace.text(number) for number in np.unique(numbers).tolist()}
        return [known[number] for number in numbers.tolist()]

    def _python(self, row: int) -> Any:
        value, kind = self._value[row : row + 1], int(self._kind[row])
        if kind == DOUBLE:
            return float(value.view(np.float64)[0])
        if kind == UINT:
            return int(value[0])
        if kind == BOOL:
            return bool(value[0])
        number = int(value.view(np.int64)[0])
        return number if kind < DOUBLE else self._trace.text(number)


def coded(numbers: npt.NDArray[np.int32], texts: pa.Array) -> pa.DictionaryArray:
    """Return texts by number (-1: null), with only those in the dictionary that are there."""
    kept = np.unique(numbers[numbers >= 0])
    place = np.searchsorted(kept, numbers).astype(np.int32)
    indices = pa.array(place, pa.int32(), mask=numbers < 0)
    return pa.DictionaryArray.from_arrays(indices, texts.take(pa.array(kept)))
