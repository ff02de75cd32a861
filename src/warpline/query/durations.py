"""Exact statistics of durations by group, streamed from Parquet through `native/desk/group_stats.cpp`."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from warpline.query.report import Report
    from warpline.query.selection import Selection

_KEY_BITS = 64


class Interner:
    """Gives the values of one string column, over all dictionaries it comes in, numbers from 1; 0 is null. Thread-safe."""

    def __init__(self) -> None:
        self.values: list[str | None] = [None]
        self._known: dict[str, int] = {}
        self._lock = threading.Lock()

    def remap(self, dictionary: pa.Array) -> npt.NDArray[np.uint64]:
        """Return the number of each of `dictionary`'s values, after a leading 0 for null."""
        texts = dictionary.to_pylist()
        with self._lock:
            numbers = [0]
            for text in texts:
                number = 0 if text is None else self._known.get(text, 0)
                if text is not None and not number:
                    number = self._known[text] = len(self.values)
                    self.values.append(text)
                numbers.append(number)
        return np.array(numbers, np.uint64)


def codes(column: pa.DictionaryArray) -> npt.NDArray[np.int32]:
    """Return the dictionary codes of `column`, -1 where null."""
    indices = column.indices.cast(pa.int32())
    return (indices.fill_null(-1) if indices.null_count else indices).to_numpy(zero_copy_only=False)


def _library() -> ctypes.CDLL:
    from warpline.query.native import desk_library

    library = desk_library()
    pointer = ctypes.c_void_p
    library.warpline_durations_new.restype = pointer
    library.warpline_durations_groups.restype = ctypes.c_int64
    for name, arguments in (
        ("new", []),
        ("free", [pointer]),
        ("add", [pointer, ctypes.c_int64, *[pointer] * 3, ctypes.c_int32, *[pointer] * 3]),
        ("merge", [pointer, pointer]),
        ("groups", [pointer]),
        ("finish", [pointer, ctypes.c_int64, ctypes.c_int64, *[pointer] * 7]),
    ):
        getattr(library, f"warpline_durations_{name}").argtypes = arguments
    return library


class Durations:
    """Collects durations by group; `add` may run in several threads at once.

    Args:
        keys: the string columns whose values together name a group, at most four.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = list(keys)
        # The last key (the name) gets the bits that are left: it has the most values.
        self._shifts = np.array([16 * index for index in range(len(keys))], np.uint8)
        self._interners = [Interner() for _ in keys]
        self._library = _library()
        self._handles: list[int] = []
        self._idle: list[int] = []
        self._lock = threading.Lock()
        self.unfinished = 0

    def __enter__(self) -> Durations:
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            self._library.warpline_durations_free(handle)
        self._handles = []

    def add(self, rows: pa.Table) -> None:
        """Add rows with int64 `start` and `end` and the key columns (strings or dictionaries)."""
        with self._lock:
            handle = self._idle.pop() if self._idle else None
            if handle is None:
                handle = self._library.warpline_durations_new()
                self._handles.append(handle)
        for batch in rows.to_batches():
            self._add(handle, batch)
        with self._lock:
            self._idle.append(handle)

    def _add(self, handle: int, batch: pa.RecordBatch) -> None:
        start, end = (batch.column(name).to_numpy(zero_copy_only=True) for name in ("start", "end"))
        coded, maps = [], []
        for name, interner in zip(self.keys, self._interners, strict=True):
            column = batch.column(name)
            if not pa.types.is_dictionary(column.type):
                column = column.dictionary_encode()
            coded.append(codes(column))
            maps.append(interner.remap(column.dictionary))
        pointers = ctypes.c_void_p * len(self.keys)
        self._library.warpline_durations_add(
            handle,
            batch.num_rows,
            start.ctypes.data,
            end.ctypes.data,
            None,
            len(self.keys),
            pointers(*(array.ctypes.data for array in coded)),
            pointers(*(array.ctypes.data for array in maps)),
            self._shifts.ctypes.data,
        )

    def result(self) -> pa.Table:
        """Return a row per group: the keys, then count, total, median, min, max, stddev (sample; 0 for one value), in ns."""
        first, *others = self._handles or [self._library.warpline_durations_new()]
        self._handles = [first, *others]
        for other in others:
            self._library.warpline_durations_merge(first, other)
        groups = int(self._library.warpline_durations_groups(first))
        key = np.empty(groups, np.uint64)
        count, total, least, greatest = (np.empty(groups, np.int64) for _ in range(4))
        median, deviation = (np.empty(groups, np.float64) for _ in range(2))
        addresses = [array.ctypes.data for array in (key, count, total, least, greatest, median, deviation)]
        edges = np.linspace(0, groups, 2 * _threads() + 1).astype(int)
        with ThreadPoolExecutor(_threads()) as pool:
            list(pool.map(lambda i: self._library.warpline_durations_finish(first, edges[i], edges[i + 1], *addresses), range(len(edges) - 1)))
        columns: dict[str, Any] = {}
        for index, (name, interner) in enumerate(zip(self.keys, self._interners, strict=True)):
            last = index == len(self.keys) - 1
            number = key >> self._shifts[index]
            columns[name] = pa.array(interner.values, pa.string()).take(pa.array(number if last else number & np.uint64(0xFFFF)))
        values = {"count": count, "total": total, "median": median, "min": least, "max": greatest, "stddev": deviation}
        return pa.table(columns | {name: pa.array(array) for name, array in values.items()})


def _threads() -> int:
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


def each_row_group(files: Sequence[Path], columns: Sequence[str], function: Callable[[pa.Table], None]) -> None:
    """Call `function` with each row group of `files`, in several threads; strings come as dictionaries. Order is not kept."""
    local = threading.local()

    def read(task: tuple[Path, pq.FileMetaData, int]) -> None:
        path, metadata, number = task
        open_files = local.__dict__.setdefault("files", {})
        if path not in open_files:
            texts = [field.name for field in metadata.schema.to_arrow_schema() if pa.types.is_dictionary(field.type)]
            open_files[path] = pq.ParquetFile(path, metadata=metadata, read_dictionary=texts, memory_map=True)
        function(open_files[path].read_row_group(number, columns=list(columns), use_threads=False))

    def tasks() -> Iterator[tuple[Path, pq.FileMetaData, int]]:
        for path in files:
            metadata = pq.read_metadata(path)
            yield from ((path, metadata, number) for number in range(metadata.num_row_groups))

    work = list(tasks())
    with ThreadPoolExecutor(min(_threads(), len(work) or 1)) as pool:
        list(pool.map(read, work))
