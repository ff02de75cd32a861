"""Reads an export that is a folder with a file for each table: Parquet, or Arrow's own format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from warplens.arrays import Int64Array
from warplens.errors import ReportError
from warplens.importers.nsys.conditions import Begins, Lacks, OneOf, Where
from warplens.importers.nsys.database import LATEST, Database
from warplens.importers.nsys.rows import FLAG, NsysRows
from warplens.storage import weight

_PARQUET, _ARROW = (".parquet", ".pq"), (".arrow", ".arrows", ".feather", ".ipc")
_SLICE_ROWS = 1 << 20
_ERRORS = (OSError, pa.ArrowException)


def tables_in(folder: Path) -> dict[str, Path]:
    """Return the files of a folder that hold a table, by the table's name. Raises OSError."""
    return {
        path.stem: path
        for path in sorted(folder.iterdir())
        if path.suffix.lower() in (*_PARQUET, *_ARROW) and path.is_file()
    }


class TablesFolder(Database):
    """An open folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._texts: dict[int, str] | None = None
        try:
            self._files = tables_in(path)
        except OSError as error:
            raise ReportError(f"cannot read {path}: {error.strerror or error}") from error
        self._counts: dict[str, int] = {}
        self.tables = {name: self._columns(name) for name in self._files}

    def close(self) -> None:
        """Close nothing: files are open while they are read only."""

    def count(self, table: str) -> int:
        """Return the number of rows of a table."""
        if table not in self.tables:
            return 0
        if table not in self._counts:
            try:
                if self._is_parquet(table):
                    self._counts[table] = pq.read_metadata(self._files[table]).num_rows
                else:
                    self._counts[table] = sum(
                        batch.num_rows for batch in self._batches(table, sorted(self.tables[table])[:1])
                    )
            except _ERRORS as error:
                raise self._broken(error, table) from error
        return self._counts[table]

    def read(
        self,
        table: str,
        ints: Sequence[str] = (),
        reals: Sequence[str] = (),
        texts: Sequence[str] = (),
        where: Where = (),
    ) -> NsysRows:
        """Return columns of rows; see `Database`."""
        names = [*ints, *reals, *texts]
        asked = [condition.column for condition in where]
        words = {
            *texts,
            *(condition.column for condition in where if isinstance(condition, (Begins, Lacks, OneOf))),
        }
        kinds = {
            name: pa.string() if name in words else pa.float64() if name in reals else pa.int64()
            for name in (*names, *asked)
        }
        there = [name for name in kinds if table in self.tables and name in self.tables[table]]
        kept = []
        if table in self.tables:
            try:
                for batch in self._batches(table, there or sorted(self.tables[table])[:1]):
                    part = _typed(pa.Table.from_batches([batch]), {name: kinds[name] for name in there})
                    rows = NsysRows(part, list(kinds), words)
                    good = np.ones(part.num_rows, bool)
                    for condition in where:
                        good &= condition.of(rows)
                    kept.append(part if good.all() else part.filter(pa.array(good)))
            except _ERRORS as error:
                raise self._broken(error, table) from error
        whole = (
            pa.concat_tables(kept) if kept else pa.table({name: pa.array([], kinds[name]) for name in there})
        )
        return NsysRows(whole, names, texts)

    def grouped(
        self, table: str, key: str, start: str, end: str, where: Where = ()
    ) -> list[tuple[int, int, int]]:
        """Return when each value of a column was first and last seen; see `Database`."""
        if not self.has(table, start):
            return []
        rows = self.read(table, [key, start, end], where=where)
        begins = rows.ints(start)
        ends = np.where(rows.valid(end), rows.ints(end), begins)
        good = rows.valid(start)
        for times in (begins, ends):
            good &= (times <= LATEST) & (times >= -LATEST)
        seen = pa.table({"key": rows.ints(key)[good], "b": begins[good], "e": np.maximum(begins, ends)[good]})
        summed = seen.group_by("key").aggregate([("b", "min"), ("e", "max")])
        return list(
            zip(*(summed.column(name).to_pylist() for name in ("key", "b_min", "e_max")), strict=True)
        )

    def sorted_batches(
        self, table: str, ints: Sequence[str], reals: Sequence[str], order: str
    ) -> Iterator[NsysRows]:
        """Yield columns sorted by one of them, piece by piece; see `Database`."""
        if not self.has(table, *ints, *reals):
            return
        rows = self.read(table, ints, reals)
        places = np.argsort(rows.ints(order), kind="stable")
        for begin in range(0, len(places), _SLICE_ROWS):
            yield rows.taken(places[begin : begin + _SLICE_ROWS])

    def distinct(self, table: str, columns: Sequence[str]) -> list[tuple[int, ...]]:
        """Return the different values of some columns; see `Database`."""
        if not self.has(table):
            return []
        rows = self.read(table, columns)
        if not len(rows):
            return []
        combinations = np.unique(np.stack([rows.ints(name) for name in columns]), axis=1)
        return [tuple(values) for values in combinations.T.tolist()]

    def strings(self, ids: Int64Array) -> dict[int, str]:
        """Return the texts of `StringIds` with these ids.

        All are read once, for a file cannot be asked for some of them.
        """
        if self._texts is None:
            rows = self.read("StringIds", ["id"], texts=["value"])
            pairs = zip(rows.ints("id").tolist(), rows.texts("value").to_pylist(), strict=True)
            self._texts = {key: value for key, value in pairs if value is not None}
        return {key: self._texts[key] for key in ids.tolist() if key in self._texts}

    def _is_parquet(self, table: str) -> bool:
        return self._files[table].suffix.lower() in _PARQUET

    def _columns(self, table: str) -> frozenset[str]:
        try:
            if self._is_parquet(table):
                return frozenset(pq.read_schema(self._files[table]).names)
            with self._opened(table) as reader:
                return frozenset(reader.schema.names)
        except _ERRORS as error:
            raise self._broken(error, table) from error

    def _batches(self, table: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
        if self._is_parquet(table):
            path = self._files[table]
            with pq.ParquetFile(path) as file:
                weight.check_foreign(path, file.metadata)
                expanding = weight.expanding(file.metadata, columns)
            with pq.ParquetFile(path, read_dictionary=expanding) as file:
                for batch in file.iter_batches(_SLICE_ROWS, columns=columns):
                    weight.check_expanded(path, pa.Table.from_batches([batch]), expanding)
                    yield batch
            return
        with self._opened(table) as reader:
            whole = (
                range(reader.num_record_batches) if isinstance(reader, pa.ipc.RecordBatchFileReader) else None
            )
            batches = reader if whole is None else (reader.get_batch(number) for number in whole)
            for batch in batches:
                yield batch.select(columns)

    def _opened(self, table: str) -> Any:
        """Open a file of Arrow: with a footer, or as a stream."""
        try:
            return pa.ipc.open_file(pa.memory_map(str(self._files[table])))
        except pa.ArrowInvalid:
            return pa.ipc.open_stream(pa.OSFile(str(self._files[table])))

    def _broken(self, error: BaseException, table: str) -> ReportError:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        return ReportError(
            f"cannot read {self._files.get(table, self.path)}: {words}. Is the folder complete? Export it again."
        )


def _typed(rows: pa.Table, kinds: dict[str, pa.DataType]) -> pa.Table:
    """Return columns with the types asked for: unsigned numbers wrap, as SQLite has them.

    Dictionaries are unpacked.
    """
    columns: dict[str, Any] = {} if kinds else {FLAG: np.zeros(rows.num_rows, np.int64)}
    for name, kind in kinds.items():
        values = rows.column(name).combine_chunks()
        if isinstance(values, pa.ChunkedArray):
            values = pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)
        if pa.types.is_dictionary(values.type):
            values = values.dictionary_decode()
        if pa.types.is_uint64(values.type) and pa.types.is_int64(kind):
            values = values.view(pa.int64())
        elif pa.types.is_boolean(values.type) and not pa.types.is_string(kind):
            values = values.cast(pa.int8()).cast(kind)
        elif pa.types.is_timestamp(values.type) or pa.types.is_duration(values.type):
            values = values.cast(pa.int64()).cast(kind)
        elif pa.types.is_binary(values.type) or pa.types.is_large_binary(values.type):
            values = pc.cast(values, pa.binary())
        else:
            values = pc.cast(values, kind, safe=False)
        columns[name] = values
    return pa.table(columns)
