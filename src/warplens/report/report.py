"""An open report: its tables as Arrow, and SQL over them."""

from __future__ import annotations

import os
import warnings
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

import warplens.report.arrow_compute as pc
from warplens.disk.files import remove_tree
from warplens.errors import MissingData, QueryError
from warplens.handover.naming import SUFFIX
from warplens.model.tables import TABLES
from warplens.report import cutting
from warplens.report.launched import launched
from warplens.report.store import Stored, TableFile, open_store, unreadable
from warplens.storage import schema, weight
from warplens.storage.manifest import Manifest

if TYPE_CHECKING:
    from typing import Self

    import duckdb
    import pandas as pd

# pandas' types that hold a gap, for what would else become float or object.
_WITH_GAPS = {
    **{getattr(pa, name.lower())(): name for name in ("Int16", "Int32", "Int64", "UInt32", "UInt64")},
    pa.bool_(): "boolean",
}


class Report:
    """An open report, or one window of its capture (`window`).

    Times in its tables are ns on the clock of its first part; `origin` is where it begins.
    """

    def __init__(self, store: Stored, *, memory: int | None = None, spill: bool = True) -> None:
        """`memory`: bytes that SQL may take.

        Default: half of the memory of the machine or the container, at most 8 GiB.

        `spill`: whether it may continue in temporary files where that is too little.
        """
        self._store = store
        self._memory, self._spill = memory, spill
        self._unspill: Callable[[], object] = lambda: None
        self._tables: dict[str, int] | None = None
        self._parts: dict[int, int] | None = None
        self._connection: duckdb.DuckDBPyConnection | None = None
        self._shown: set[str] = set()

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], *, progress: Callable[[str, float], None] | None = None
    ) -> Self:
        """Open a report directory.

        Recordings that were interrupted before they were finished are finished first.

        `path` may lack its `.warplens`. `progress` hears what is done and how far it is (0 to 1). Warns (UserWarning) of recordings that
        are missing, see `Report.waiting`, or continue, see `Report.snapshots`. Raises NotAReport, NewerReport, ReportError.
        """
        report = cls(open_store(path, progress))
        for text in report.waiting:
            warnings.warn(f"{report.path} lacks {text}", stacklevel=3)
        for text in report.snapshots:
            warnings.warn(f"{report.path} is not complete: {text}", stacklevel=3)
        return report

    @property
    def stored(self) -> Stored:
        """The report as it lies on disk."""
        return self._store

    @property
    def path(self) -> Path:
        """The report's directory."""
        return self._store.path

    @property
    def name(self) -> str:
        """The report's file name without its suffix."""
        return self.path.resolve().name.removesuffix(SUFFIX)

    @property
    def origin(self) -> int:
        """Begin of the run, ns: stats and timelines count from here."""
        return self._store.origin

    @property
    def end(self) -> int:
        """End of the run, ns."""
        return self._store.end

    @property
    def span(self) -> tuple[int, int]:
        """Start and end in ns: the whole run, or the selected window including the GPU work launched in it."""
        begin, end = self._store.span
        for name in (
            table.name
            for table in TABLES.values()
            if self.windowed and table.launched and "end" in table.edges
        ):
            if self._store.rows(name):
                end = max(end, pc.max(self.table(name, ["end"]).column(0)).as_py() or end)
        return begin, end

    @property
    def windowed(self) -> bool:
        """Whether this is one window of the capture only."""
        return self._store.cuts is not None

    def window(self, number: int) -> Self:
        """Return window `number` (from 1) of the capture as a separate report: close it as well.

        Its ranges, marks, samples, operations and payloads are those that overlap the window of their part; times are cut to it, so
        that a range across an edge counts with the piece inside. GPU work and CUDA events are those whose API call began in the window,
        with their true times. All else is as in the whole report. Raises MissingData, which lists the windows (table `capture_windows`).
        """
        return self._cut(cutting.windows(self, number))

    def between(self, begin: int, end: int) -> Self:
        """Return a separate report of `begin` to `end` (ns, the report's clock).

        Cut as by `window`; close it as well.

        Of a window of the capture, it is that part of it.
        """
        cuts = {part.manifest.part: (begin, end) for part in self._store.parts}
        if self._store.cuts is not None:
            inside = {
                part: (max(begin, low), min(end, high)) for part, (low, high) in self._store.cuts.items()
            }
            cuts = {part: (low, max(low, high)) for part, (low, high) in inside.items()}
        return self._cut(cuts)

    def _cut(self, cuts: dict[int, tuple[int, int]]) -> Self:
        return type(self)(
            replace(
                self._store,
                cuts=cuts,
                calls=launched(replace(self._store, cuts=None).pieces("cuda_api"), cuts),
            )
        )

    def window_of(self, process: int) -> tuple[int, int] | None:
        """Return begin and end (ns) of the chosen window in the part of a process.

        None without a choice, or where that part lacks it.
        """
        if self._store.cuts is None:
            return None
        if self._parts is None:
            self._parts = {}
            for piece in self._store.pieces("processes"):
                keys = _read(piece.file, ["process"]).column(0).to_pylist()
                self._parts.update(dict.fromkeys(keys, piece.part))
        return self._store.cuts.get(self._parts.get(process, -1))

    @property
    def manifests(self) -> tuple[Manifest, ...]:
        """The facts of each part: command, host, exit status, sources."""
        return tuple(part.manifest for part in self._store.parts)

    @property
    def waiting(self) -> tuple[str, ...]:
        """One sentence for each recording that is missing: it still runs, or could not be finished."""
        return self._store.waiting

    @property
    def snapshots(self) -> tuple[str, ...]:
        """One sentence for each recording that continues and is in the report as of its last snapshot."""
        return self._store.snapshots

    @property
    def tables(self) -> dict[str, int]:
        """The tables and how many rows each has."""
        if self._tables is None:
            counts = {name: self._store.rows(name) for name in TABLES}
            for name in [name for name in TABLES if counts[name] and self._store.cuts is not None]:
                if TABLES[name].happens:
                    counts[name] = self.table(name, cutting.keys(TABLES[name])).num_rows
                elif name == "payloads":
                    counts[name] = self.table(name, ["event_type", "event"]).num_rows
            self._tables = counts
        return dict(self._tables)

    def pieces(self, table: str) -> list[TableFile]:
        """Return the Parquet files that hold a table, and what each one's clock columns are shifted by."""
        return self._store.pieces(table)

    @property
    def diagnostics(self) -> pa.Table:
        """Losses, guesses and missing records."""
        return self.table("diagnostics")

    def table(self, name: str, columns: Sequence[str] | None = None) -> pa.Table:
        """Return a table as Arrow, in the types of the model, sorted within each process.

        Raises MissingData for a table or column that no report has, ReportError for a broken file.
        """
        if name not in TABLES:
            raise MissingData(f"there is no table {name!r}; a report has {', '.join(TABLES)}")
        wanted = schema.schema(name)
        if columns is not None:
            unknown = [column for column in columns if column not in wanted.names]
            if unknown:
                raise MissingData(
                    f"the table {name} has no column {unknown[0]!r}; it has {', '.join(wanted.names)}"
                )
            wanted = pa.schema([wanted.field(column) for column in columns], metadata=wanted.metadata)
        full = self._with_keys(name, wanted)
        parts = []
        for piece in self._store.pieces(name):
            try:
                present = [column for column in full.names if column not in piece.missing]
                part = schema.complete(_read(piece.file, present), full)
            except (pa.ArrowException, OSError) as error:
                raise unreadable(piece.file, error) from error
            part = _shifted(name, part, piece.shift)
            parts.append(part if piece.cut is None else cutting.chosen(part, piece.cut, piece.calls))
        rows = pa.concat_tables(parts) if parts else full.empty_table()
        if self.windowed and name == "payloads":
            rows = cutting.payloads(self, rows)
        return rows.select(wanted.names) if full is not wanted else rows

    def _with_keys(self, name: str, wanted: pa.Schema) -> pa.Schema:
        """Return the columns of a table that must be read so that those wanted can be cut to a window."""
        needed = (
            cutting.keys(TABLES[name])
            if TABLES[name].happens
            else ("event_type", "event")
            if name == "payloads"
            else ()
        )
        more = [column for column in needed if self.windowed and column not in wanted.names]
        return (
            pa.schema([*wanted, *(schema.schema(name).field(column) for column in more)], wanted.metadata)
            if more
            else wanted
        )

    def payloads(self, name: str | None = None) -> pa.Table:
        """Return the extended payloads of one type, a column for each field.

        Beside them process, event_type, event, at_end, cut.

        `name`: a schema's name or a predefined type's (`float64`, `string`, …), as the column `type` of the table `payloads` has it; a
        predefined type has one column `value`. A field that is called like one of the columns beside it becomes `payload.NAME`. Fields
        that are missing in cut payloads are null; where layouts of one name have nothing in common there is a column `text`.
        Without a name: all payloads with their `type` and as `text`. Raises MissingData for a name that no payload or schema has.
        """
        from warplens.report.payloads.tables import table

        return table(self, name)

    def sql(
        self, text: str, params: Sequence[Any] | dict[str, Any] | None = None, *, untrusted: bool = False
    ) -> pa.Table:
        """Run SQL (DuckDB's dialect; the tables are views) and return the result.

        `?` or `$name` take `params`.

        `untrusted` accepts exactly one SELECT over the report's tables. Raises QueryError.
        """
        # Loading DuckDB takes 100 ms: opening a report and reading tables goes without.
        import duckdb

        from warplens.report.untrusted import check

        connection = self.cursor(text)
        try:
            if untrusted:
                check(connection, text)
            relation: duckdb.DuckDBPyRelation | None = connection.sql(text, params=params)
            if relation is None:
                return pa.table({})
            result: pa.Table = relation.to_arrow_table()
            return result
        except duckdb.Error as error:
            if isinstance(error, duckdb.CatalogException) and self._shown != set(
                TABLES
            ):  # what does not exist, and what it may have meant
                self.connection()
                return self.sql(text, params, untrusted=untrusted)
            raise QueryError(
                self._too_large() if isinstance(error, duckdb.OutOfMemoryException) else str(error).strip()
            ) from error
        finally:
            connection.close()

    def _too_large(self) -> str:
        most = (self._memory or 0) >> 20
        return f"the question takes more memory than SQL may have here ({most:,} MiB): ask about less time, or add LIMIT and WHERE"

    def to_pandas(self, name: str) -> pd.DataFrame:
        """Return a table as a pandas data frame (needs pandas).

        Integers and bools that may be null keep their type (`Int64`, …).
        """
        import pandas as pd

        table = self.table(name)
        kinds = {kind: pd.api.types.pandas_dtype(text) for kind, text in _WITH_GAPS.items()}
        columns = zip(table.schema, table.columns, strict=True)
        return pd.DataFrame(
            {
                item.name: values.to_pandas(types_mapper=kinds.get if item.nullable else None)
                for item, values in columns
            }
        )

    def connection(self) -> duckdb.DuckDBPyConnection:
        """Return the report's DuckDB connection; it is closed with the report."""
        return self._shows(set(TABLES))

    def cursor(self, text: str) -> duckdb.DuckDBPyConnection:
        """Return a cursor that sees the tables which are named in `text`: close it."""
        from warplens.report.connection import named_in

        return self._shows(named_in(text, self._store)).cursor()

    def views(self) -> list[str]:
        """Return the SQL with which `duckdb` alone sees the report's tables: a CREATE VIEW for each."""
        from warplens.report.connection import definitions

        return definitions(self._store)

    def _shows(self, names: set[str]) -> duckdb.DuckDBPyConnection:
        """Return the connection, with views of at least these tables."""
        from warplens.report.connection import connect, memory_limit, show, spill_folder

        if self._connection is None:
            spill = spill_folder() if self._spill else ""
            if spill:
                self._unspill = weakref.finalize(self, remove_tree, Path(spill))
            self._memory = (
                self._memory or memory_limit()
            )  # what is free changes while a question runs; the limit does not
            self._connection, self._shown = connect(self._store, memory=self._memory, spill=spill), set()
        show(self._connection, self._store, names - self._shown)
        self._shown |= names
        return self._connection

    def close(self) -> None:
        """Close the connection; the report can be asked again and then opens a new one."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
            self._unspill()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Report {self.path}: {self.tables['nvtx_ranges']} NVTX ranges, {(self.end - self.origin) / 1e9:.3f} s>"


def open(path: str | os.PathLike[str], *, progress: Callable[[str, float], None] | None = None) -> Report:
    """Open a report directory; see `Report.open`."""
    return Report.open(path, progress=progress)


def _read(file: Path, columns: list[str]) -> pa.Table:
    """Return columns of a file, without what pq.read_table() loads to read folders of them.

    Raises ReportError if they are too large.
    """
    with pq.ParquetFile(file) as opened:
        weight.check_whole(file, opened.metadata, columns)
        expanding = weight.expanding(opened.metadata, columns)
        if not expanding:
            return opened.read(columns)
    with pq.ParquetFile(file, read_dictionary=expanding) as opened:
        rows = opened.read(columns)
    weight.check_expanded(file, rows, expanding)
    return rows


def _shifted(name: str, part: pa.Table, shift: int) -> pa.Table:
    if not shift:
        return part
    import pyarrow.compute as pc

    for index, item in enumerate(part.schema):
        if TABLES[name].column(item.name).clock:
            part = part.set_column(index, item, pc.add(part.column(index), pa.scalar(shift, pa.int64())))
    return part
