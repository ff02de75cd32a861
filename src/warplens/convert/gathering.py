"""Puts the few rows that each of many short processes has into row groups together."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

FEW = 1 << 14  # rows that are not worth a row group: one takes half a millisecond to write, and again to open
_MOST_PIECES = 1 << 10


class Gathering:
    """Passes tables on to `write`: large ones at once, small ones when there are enough of them.

    Rows stay in their order.
    """

    def __init__(self, write: Callable[[str, pa.Table], None]) -> None:
        self._write = write
        self._pieces: dict[str, list[pa.Table]] = {}
        self._rows: dict[str, int] = {}

    def add(self, table: str, rows: pa.Table) -> None:
        """Take rows of a table that may lie in memory which is about to change, such as a slice of events."""
        few = 0 < rows.num_rows < FEW
        self.keep(table, _copied(rows) if few else rows)

    def keep(self, table: str, rows: pa.Table) -> None:
        """Take rows whose memory is theirs."""
        if not rows.num_rows:
            return
        if rows.num_rows >= FEW:
            self._pass_on(table)
            self._write(table, rows)
            return
        pieces = self._pieces.setdefault(table, [])
        pieces.append(rows)
        self._rows[table] = self._rows.get(table, 0) + rows.num_rows
        if self._rows[table] >= FEW or len(pieces) >= _MOST_PIECES:
            self._pass_on(table)

    def finish(self) -> None:
        """Pass on what is left."""
        for table in list(self._pieces):
            self._pass_on(table)

    def _pass_on(self, table: str) -> None:
        pieces = self._pieces.pop(table, [])
        self._rows.pop(table, None)
        if len(pieces) == 1:
            self._write(table, pieces[0])
        elif pieces:
            self._write(table, pa.concat_tables(pieces).unify_dictionaries().combine_chunks())


def _copied(rows: pa.Table) -> pa.Table:
    return pa.Table.from_arrays(
        [pa.concat_arrays(column.chunks) for column in rows.columns], schema=rows.schema
    )
