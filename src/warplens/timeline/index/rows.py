"""Reads the rows of a layer from the files of a part, by row group, with the builder's columns."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from warplens.model.tables import TABLES
from warplens.timeline.index import columns
from warplens.timeline.index.inside import SLOTS, Insides
from warplens.timeline.index.layers import Layer

KINDS = ("push_pop", "tasks", "start_end")  # of NVTX ranges


class InnermostFrames:
    """The function that each stack ends in. A stack is the key of its innermost frame."""

    def __init__(self, file: Path | None) -> None:
        rows = (
            pq.read_table(file, columns=["frame", "function"], read_dictionary=["function"])
            if file is not None
            else None
        )
        self._keys = (
            columns.integers(rows.column("frame"), np.int64) if rows is not None else np.empty(0, np.int64)
        )
        functions = (
            columns.coded(rows.column("function"))
            if rows is not None
            else pa.array([], pa.string()).dictionary_encode()
        )
        order = np.argsort(self._keys, kind="stable")
        self._keys = self._keys[order]
        self._codes = columns.filled(functions.indices, np.int32)[order]
        self._texts = functions.dictionary

    def functions(self, stack: pa.ChunkedArray) -> pa.DictionaryArray:
        """Return the innermost function of each stack, null if none was taken."""
        wanted = columns.integers(stack, np.int64)
        if not len(self._keys):
            return pa.nulls(len(wanted), pa.string()).dictionary_encode()
        place = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        codes = np.where(self._keys[place] == wanted, self._codes[place], -1)
        return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), self._texts)


class LayerReader:
    """Reads one layer of a part."""

    def __init__(
        self, layer: Layer, file: Path, frames: InnermostFrames | None = None, insides: Insides | None = None
    ) -> None:
        self._layer, self._frames, self._insides = layer, frames, insides
        metadata = pq.read_metadata(file)
        there = set(metadata.schema.to_arrow_schema().names)
        texts = [
            column.name
            for column in TABLES[layer.table].columns
            if column.type == "dict" and column.name in there
        ]
        self._file = pq.ParquetFile(
            file, metadata=metadata, read_dictionary=texts
        )  # mapped, all of it would count as our memory
        own = (
            ("process",) if layer.inside else (key for key in layer.keys if key != "kind" or not layer.style)
        )
        wanted = ["start", "end", "id", *own, *layer.names]
        wanted += [name for name in (layer.color, layer.depth, layer.link) if name]
        wanted += ["style", "task"] if layer.style else []
        wanted += _OF_INSIDE.get(layer.inside, ())
        self._columns = [name for name in dict.fromkeys(wanted) if name in there]

    def __iter__(self) -> Iterator[pa.Table]:
        """Yield the row groups, the next one read and made ahead in a thread."""
        with ThreadPoolExecutor(1) as pool:
            ahead: Future[pa.Table] | None = None
            for number in range(self._file.num_row_groups + 1):
                ready = ahead
                ahead = pool.submit(self._load, number) if number < self._file.num_row_groups else None
                if ready is not None:
                    yield ready.result()

    def _load(self, number: int) -> pa.Table:
        return self._made(self._read(number))

    def read_all(self) -> None:
        """Read every row group and make nothing of it: what `benchmarks/lod.py` compares with."""
        for number in range(self._file.num_row_groups):
            self._read(number)

    def _read(self, number: int) -> pa.Table:
        return self._file.read_row_group(number, columns=self._columns, use_threads=False)

    def _made(self, rows: pa.Table) -> pa.Table:
        layer = self._layer
        if layer.inside and self._insides is not None:
            rows = _placed(rows, layer.inside, self._insides)
        made: dict[str, Any] = {}
        for name in ("start", "end", "id"):
            if name in self._columns:
                made[name] = rows.column(name)
        for key in layer.keys:
            if key in (rows.column_names if layer.inside else self._columns):
                made[key] = rows.column(key)
        for name, column in (("color", layer.color), ("depth", layer.depth), ("link", layer.link)):
            if column and column in self._columns:
                made[name] = rows.column(column)
        made["name"] = self._names(rows)
        if layer.style:
            made |= _styled(rows, made)
        return pa.table(made)

    def _names(self, rows: pa.Table) -> Any:
        layer = self._layer
        if layer.stacks:
            return (
                self._frames.functions(rows.column("stack"))
                if self._frames is not None and "stack" in self._columns
                else _nothing(rows)
            )
        there = [rows.column(name) if name in self._columns else _nothing(rows) for name in layer.names]
        if len(there) == 1 and pa.types.is_dictionary(there[0].type) and layer.wording.__name__ == "_joined":
            return there[0]
        return columns.put_together(there, layer.wording)


_OF_INSIDE = {"regions": ("unit", "kind"), "marks": ("unit", "kind")}


def _placed(rows: pa.Table, what: str, insides: Insides) -> pa.Table:
    """Return the rows of kernels that time themselves for the layer, with the keys of their tracks."""
    if what == "launches":
        return rows.append_column(
            "inside", pa.array(insides.of_launches(columns.integers(rows.column("id"), np.int64)))
        )
    if what == "units":
        rows = rows.filter(pa.array(insides.standing(columns.integers(rows.column("id"), np.int64))))
        rows = rows.set_column(
            rows.column_names.index("cta"),
            "cta",
            insides.names(columns.integers(rows.column("cta"), np.int64)),
        )
        keys = insides.of_units(columns.integers(rows.column("id"), np.int64))
        keys["sm"] = keys["sm"] // SLOTS * SLOTS  # blocks at once are in lanes of one track
    else:
        kinds = columns.coded(rows.column("kind"))
        marks = [code for code, text in enumerate(kinds.dictionary.to_pylist()) if text == "mark"]
        rows = rows.filter(
            pa.array(np.isin(columns.filled(kinds.indices, np.int32), marks) == (what == "marks"))
        )
        keys = insides.of_units(columns.integers(rows.column("unit"), np.int64))
    there = [name for name in keys if name not in rows.column_names]
    for name in there:
        rows = rows.append_column(name, pa.array(keys[name]))
    return rows


def _nothing(rows: pa.Table) -> pa.Array:
    return pa.nulls(rows.num_rows, pa.string()).dictionary_encode()


def _styled(rows: pa.Table, made: dict[str, Any]) -> dict[str, Any]:
    """Sort ranges into those of threads, of tasks, and start/end ones of none.

    Returns `kind`, and its keys.
    """
    styles = columns.coded(rows.column("style"))
    task = rows.column("task") if "task" in rows.column_names else None
    tasks = task is not None and task.null_count < rows.num_rows
    crossing = [code for code, text in enumerate(styles.dictionary.to_pylist()) if text == "StartEnd"]
    if not tasks and not crossing:
        return {"kind": _kinds(np.zeros(rows.num_rows, np.int32))}
    kind = np.zeros(rows.num_rows, np.int32)
    if crossing:
        kind[np.isin(columns.filled(styles.indices, np.int32), crossing)] = 2
    more: dict[str, Any] = {}
    if tasks and task is not None:
        group = columns.integers(task, np.int64)
        kind[group >= 0] = 1
        more["task"] = group
    thread = np.where(kind == 0, columns.integers(made["thread"], np.int64), -1)
    return {"kind": _kinds(kind), "thread": thread, **more}


def _kinds(kind: npt.NDArray[np.int32]) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(pa.array(kind), pa.array(KINDS))
