"""Reads the input of a dependency graph: CUDA calls, GPU work, events and waits of a window."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.analysis.step_functions import NOTHING
from warplens.arrays import Int64Array

if TYPE_CHECKING:
    from warplens.report.report import Report

OPERATIONS = ("kernels", "memcpys", "memsets", "graphs")
_LABELS = {"memsets": "[CUDA memset]", "graphs": "[CUDA graph]"}
Window = tuple[int, int]


@dataclass(frozen=True)
class RecordedCalls:
    """Calls of CUDA that are in no other call, in order of thread and start.

    `root[i]`: row of the outermost call around call `ids[i]`.
    """

    columns: dict[str, Int64Array]
    names: list[str]
    ids: Int64Array
    root: Int64Array

    def __len__(self) -> int:
        return len(self.columns["id"])

    def find(self, api: Int64Array) -> Int64Array:
        """Return the row of each call that is wanted by its id, NOTHING where it is not here."""
        return (
            np.where((place := positions(self.ids, api)) < 0, NOTHING, self.root[place])
            if len(self.ids)
            else np.full(len(api), NOTHING)
        )


@dataclass(frozen=True)
class RecordedWork:
    """GPU operations.

    Columns id, table (of OPERATIONS), process, device, stream, start, end, api, name (of `names`),
    pageable (0, 1).
    """

    columns: dict[str, Int64Array]
    names: list[str]

    def __len__(self) -> int:
        return len(self.columns["id"])


def read_calls(report: Report, window: Window | None) -> RecordedCalls:
    """Read the calls that overlap the window, cut to it.

    Columns: id, process, thread, start, end, name (of `names`).
    """
    rows = report.table("cuda_api", ["id", "process", "thread", "start", "end", "name"]).unify_dictionaries()
    columns = {name: numbers(rows, name) for name in ("id", "process", "thread", "start", "end")}
    columns["name"], names = coded(rows.column("name"))
    columns = _cut(columns, window)
    order = np.lexsort((-columns["end"], columns["start"], columns["thread"]))
    columns = {name: values[order] for name, values in columns.items()}
    _, parent = native.nest(*(np.ascontiguousarray(columns[name]) for name in ("thread", "start", "end")))
    # Pointer jumping: root[i] moves to its parent until no parent is left. Calls that nest d deep
    # need d passes over the inner calls.
    root = np.arange(len(parent))
    while len(inner := np.flatnonzero(parent[root] >= 0)):
        root[inner] = parent[root[inner]]
    outer = np.flatnonzero(parent < 0)
    # Calls that cross another one, by a clock that jumped: as if they came one after the other.
    kept = {name: values[outer] for name, values in columns.items()}
    kept["end"] = np.where(
        np.append(kept["thread"][1:] == kept["thread"][:-1], False),
        np.minimum(kept["end"], np.append(kept["start"][1:], 0)),
        kept["end"],
    )
    sequence = np.argsort(columns["id"], kind="stable")
    return RecordedCalls(kept, names, columns["id"][sequence], root=np.searchsorted(outer, root)[sequence])


def read_work(report: Report, window: Window | None, calls: RecordedCalls) -> RecordedWork:
    """Read the GPU work of the window, cut to it, and the later work of its calls, uncut.

    In order of process, device, stream and start.
    """
    parts: list[dict[str, Int64Array]] = []
    names: list[str] = []
    for number, table in enumerate(OPERATIONS):
        if not report.tables[table]:
            continue
        more = {
            "kernels": ["demangled"],
            "memcpys": ["kind", "source_kind", "destination_kind", "asynchronous"],
        }.get(table, [])
        rows = report.table(
            table, ["id", "process", "device", "stream", "start", "end", "api", *more]
        ).unify_dictionaries()
        part = {
            name: numbers(rows, name) for name in ("id", "process", "device", "stream", "start", "end", "api")
        }
        part["table"] = np.full(rows.num_rows, number)
        part["pageable"] = _waited_for(rows) if table == "memcpys" else np.zeros(rows.num_rows, np.int64)
        codes, texts = (
            coded(rows.column(more[0])) if more else (np.zeros(rows.num_rows, np.int64), [_LABELS[table]])
        )
        part["name"] = codes + len(names)
        names += [f"[CUDA memcpy {text}]" for text in texts] if table == "memcpys" else texts
        parts.append(part)
    wanted = ("id", "process", "device", "stream", "start", "end", "api", "table", "pageable", "name")
    whole = {
        name: np.concatenate([np.empty(0, np.int64), *(part[name] for part in parts)]) for name in wanted
    }
    columns = _cut(whole, window)
    if window is not None:
        later = (whole["start"] >= window[1]) & (calls.find(whole["api"]) != NOTHING)
        columns = {name: np.concatenate((values, whole[name][later])) for name, values in columns.items()}
    order = np.lexsort(
        (columns["end"], columns["start"], columns["stream"], columns["device"], columns["process"])
    )
    return RecordedWork({name: values[order] for name, values in columns.items()}, names)


def read_table(
    report: Report, table: str, columns: Sequence[str], window: Window | None, texts: Sequence[str] = ()
) -> tuple[dict[str, Int64Array], pa.Table]:
    """Read number columns (-1 for null) and text columns of a table.

    Of the rows that begin before the window's end.
    """
    rows = report.table(table, [*columns, *texts])
    if window is not None:
        rows = rows.filter(pc.less(rows.column("start"), window[1]))
    return {name: numbers(rows, name) for name in columns}, rows.select(list(texts))


def positions(ids: Int64Array, wanted: Int64Array) -> Int64Array:
    """Return the place of each id in sorted `ids`, NOTHING where it is not there."""
    if not len(ids):
        return np.full(len(wanted), NOTHING)
    place = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.asarray(np.where(ids[place] == wanted, place, NOTHING), np.int64)


def numbers(rows: pa.Table, name: str) -> Int64Array:
    """Return a column as numbers, -1 for null."""
    return np.asarray(
        pc.fill_null(pc.cast(rows.column(name), pa.int64(), safe=False), -1).to_numpy(), np.int64
    )


def coded(column: pa.ChunkedArray) -> tuple[Int64Array, list[str]]:
    """Return the numbers of a text column's values, and the texts; null counts as one more text."""
    flat = column.combine_chunks()
    flat = flat if pa.types.is_dictionary(flat.type) else flat.dictionary_encode()
    texts = [*flat.dictionary.to_pylist(), "[unknown]"]
    return np.asarray(
        pc.fill_null(flat.indices, len(texts) - 1).to_numpy(zero_copy_only=False), np.int64
    ), texts


def grouped(columns: list[Int64Array]) -> tuple[list[Int64Array], Int64Array]:
    """Return the combinations of values that there are, by column, and the number of each row's."""
    number = np.zeros(len(columns[0]), np.int64)
    for values in columns:
        codes = np.asarray(pa.array(values).dictionary_encode().indices, np.int64)
        number = np.asarray(
            pa.array(number * (int(codes.max(initial=0)) + 1) + codes).dictionary_encode().indices, np.int64
        )
    first = np.unique(number, return_index=True)[1]
    return [values[first] for values in columns], number


def _waited_for(rows: pa.Table) -> Int64Array:
    """Return 1 for copies that their call waited for, as far as the row shows.

    Those that are not asynchronous, or of pageable memory.
    """
    waited_for = pc.equal(rows.column("asynchronous"), False)
    kinds = [
        pc.equal(pc.cast(rows.column(name), pa.string()), "Pageable")
        for name in ("source_kind", "destination_kind")
    ]
    waited = pc.or_(pc.fill_null(waited_for, False), pc.or_(*(pc.fill_null(kind, False) for kind in kinds)))
    return np.asarray(waited.to_numpy(), np.int64)


def _cut(columns: dict[str, Int64Array], window: Window | None) -> dict[str, Int64Array]:
    if window is None:
        return columns
    begin, end = window
    kept = (columns["start"] < end) & (columns["end"] > begin)
    cut = {name: values[kept] for name, values in columns.items()}
    return {**cut, "start": np.maximum(cut["start"], begin), "end": np.minimum(cut["end"], end)}
