"""Details of a framework's operations for their ranges: shapes, types, numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.exporters.tracks import batches, values

if TYPE_CHECKING:
    from warplens.report import Report

FACTS = ("sequence", "backward", "external", "shapes", "types")


class OpFacts:
    """Walks through `ops` beside `nvtx_ranges`: ranges must come in the order of the report.

    `facts`: columns of `ops`.
    """

    def __init__(self, report: Report, facts: Sequence[str] = FACTS) -> None:
        self._facts = facts
        self._batches: Iterator[pa.RecordBatch] = iter(
            batches(report, "ops", ("range", *facts)) if report.tables["ops"] else ()
        )
        self._rows: pa.Table | None = None
        self._last = -1

    def of(self, ids: Int64Array) -> list[tuple[str, pa.Array]]:
        """Return the facts of the ranges with these ids, which grow: each a column with nulls.

        Nothing if there are none.
        """
        if not len(ids):
            return []
        # Both sides grow, so batches are read up to the last id and rows behind it are kept for the
        # next call: each row of the table is read once.
        while self._last < ids[-1] and (batch := next(self._batches, None)) is not None:
            more = pa.Table.from_batches([batch])
            self._rows = (
                more
                if self._rows is None
                else pa.concat_tables([self._rows, more], promote_options="permissive")
            )
            self._last = int(values(batch, "range")[-1])
        if self._rows is None:
            return []
        known = self._rows.column("range").to_numpy()
        order = np.argsort(known, kind="stable")
        place = np.minimum(np.searchsorted(known[order], ids), len(known) - 1)
        matches = known[order[place]] == ids
        taken = pa.array(order[place], mask=~matches)
        columns = (
            [(name, self._rows.column(name).take(taken)) for name in self._facts] if matches.any() else []
        )
        later = np.flatnonzero(known > ids[-1])
        self._rows = self._rows.take(pa.array(later)) if len(later) else None
        return [
            (name, column.unify_dictionaries().combine_chunks())
            for name, column in columns
            if column.null_count < len(column)
        ]
