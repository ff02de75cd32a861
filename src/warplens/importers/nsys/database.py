"""The interface to an nsys export in any of its formats.

A column that the file lacks reads as null.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from warplens.arrays import Int64Array
from warplens.importers.nsys.conditions import Among, Lacks, Where
from warplens.importers.nsys.rows import NsysRows

LATEST = 1 << 61  # ns: sums and differences of such times fit into 64 bits
_IDS_PER_QUERY = 4000


class Database(ABC):
    """An open export; every failure is a ReportError that names it. `tables`: their columns."""

    path: Path
    tables: Mapping[str, frozenset[str]]

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def close(self) -> None:
        """Close what is open."""

    @abstractmethod
    def count(self, table: str) -> int:
        """Return how many rows a table has; 0 if it is absent."""

    @abstractmethod
    def read(
        self,
        table: str,
        ints: Sequence[str] = (),
        reals: Sequence[str] = (),
        texts: Sequence[str] = (),
        where: Where = (),
    ) -> NsysRows:
        """Return columns of the rows for which all of `where` holds, in the order of the file.

        `where` names columns that are there.
        """

    @abstractmethod
    def grouped(
        self, table: str, key: str, start: str, end: str, where: Where = ()
    ) -> list[tuple[int, int, int]]:
        """Return each value of `key` with the least `start` and the greatest `end` (or start).

        Null and absent ones count as 0.

        Only of rows with times that can be; where the table or its `start` is absent there are none. `where`: as for `read`.
        """

    @abstractmethod
    def sorted_batches(
        self, table: str, ints: Sequence[str], reals: Sequence[str], order: str
    ) -> Iterator[NsysRows]:
        """Yield columns of a large table piece by piece, sorted by a column.

        Nothing if the table or one of them is absent.
        """

    @abstractmethod
    def distinct(self, table: str, columns: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the different values of some integer columns, null and absent ones as 0.

        Nothing if the table is absent.
        """

    def has(self, table: str, *columns: str) -> bool:
        """Say whether there is such a table with all these columns."""
        return table in self.tables and self.tables[table].issuperset(columns)

    def strings(self, ids: Int64Array) -> dict[int, str]:
        """Return the texts of `StringIds` with these ids, and no others.

        The table may hold texts that nothing uses, such as environments.
        """
        texts: dict[int, str] = {}
        if not self.has("StringIds", "id"):
            return texts
        for begin in range(0, len(ids), _IDS_PER_QUERY):
            some = tuple(ids[begin : begin + _IDS_PER_QUERY].tolist())
            rows = self.read("StringIds", ["id"], texts=["value"], where=[Among("id", some)])
            texts.update(zip(rows.ints("id").tolist(), rows.texts("value").to_pylist(), strict=True))
        return {key: value for key, value in texts.items() if value is not None}

    def pairs(self, table: str) -> list[tuple[str, str]]:
        """Return the rows of a table of names and values, without those that hold environments."""
        rows = self.read(
            table,
            texts=["name", "value"],
            where=[Lacks("name", "ENVIRONMENT")] if self.has(table, "name") else (),
        )
        return [
            (str(name), value or "")
            for name, value in zip(
                rows.texts("name").to_pylist(), rows.texts("value").to_pylist(), strict=True
            )
        ]
