"""Events of a table as exporters need them: with their rows, names, details and arrows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.analysis.dictionaries import codes
from warplens.arrays import Int64Array


@dataclass(frozen=True)
class Kind:
    """A table of events: the name of a row, and the detail columns.

    The name is a column, rewritten by `called`, or a text.
    """

    table: str
    category: str
    name: str
    details: tuple[str, ...]
    called: Callable[[str], str] | None = None
    fixed: str | None = None


@dataclass(frozen=True)
class ExportEvents:
    """Some events of one kind. `end` is None of instants; `parent` and `arrow` are ids, -1: none.

    `starts`: the arrows begin at these events, else they end there.
    """

    kind: Kind
    row: npt.NDArray[np.int32]
    id: Int64Array
    parent: Int64Array
    start: Int64Array
    end: Int64Array | None
    name: pa.Array
    details: list[tuple[str, pa.Array]]
    arrow: Int64Array
    starts: bool = False


def details(kind: Kind, batch: pa.RecordBatch) -> list[tuple[str, pa.Array]]:
    """Return the details that some row has."""
    return [
        (name.replace("_", " "), batch.column(name))
        for name in kind.details
        if batch.column(name).null_count < batch.num_rows
    ]


def names(kind: Kind, batch: pa.RecordBatch) -> pa.Array:
    """Return the name of each event."""
    if kind.fixed is not None:
        return pa.DictionaryArray.from_arrays(np.zeros(batch.num_rows, np.int32), pa.array([kind.fixed]))
    if kind.called is None:
        return batch.column(kind.name)
    numbers, texts = codes(batch.column(kind.name))
    written = pa.array([kind.called(text) for text in texts.to_pylist()], pa.string())
    return pa.DictionaryArray.from_arrays(pa.array(numbers, mask=numbers < 0), written)


class Nesting:
    """Finds the event that encloses each event of its row, across the borders of batches.

    For example a runtime call that calls the driver.
    """

    def __init__(self) -> None:
        self._open: tuple[Int64Array, Int64Array, Int64Array, Int64Array] = (np.empty(0, np.int64),) * 4

    def parents(
        self, ids: Int64Array, row: npt.NDArray[np.signedinteger[Any]], start: Int64Array, end: Int64Array
    ) -> Int64Array:
        """Return the id of the innermost event around each, -1: none.

        Batches come in the order of the report.
        """
        before = len(self._open[0])
        columns = [
            np.concatenate(pair)
            for pair in zip(self._open, (ids, row.astype(np.int64), start, end), strict=True)
        ]
        _, parent = native.nest(columns[1], columns[2], columns[3])
        around = np.where(parent >= 0, columns[0][parent], -1)[before:]
        still = columns[3] > start[-1]
        self._open = (columns[0][still], columns[1][still], columns[2][still], columns[3][still])
        return around
