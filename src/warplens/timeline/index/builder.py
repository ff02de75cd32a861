"""Writes an index from batches of rows, in one pass; it has its name only when it is whole."""

from __future__ import annotations

import json
import mmap
import os
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.disk.folder import Folder
from warplens.timeline.index import columns
from warplens.timeline.index.layout import HEADER, SECTIONS, Header
from warplens.timeline.index.track_numbers import KEYS

_LONGEST = 1024  # characters of a text; details have the whole one
_ABANDONED_S = 3600.0  # a living writer writes more often


def _clear(folder: Folder) -> None:
    """Remove what those left who were killed while they wrote an index."""
    for left in folder.names():
        if left.startswith(".") and left.endswith(".tmp"):
            with suppress(OSError):
                status = folder.status(left)
                if status is not None and time.time() - status.st_mtime > _ABANDONED_S:
                    folder.remove(left)


class IndexBuilder:
    """Takes batches of rows, writes an index.

    `layers`: the names of the layers that may come, and the keys of the tracks of each.
    """

    def __init__(
        self,
        target: Path,
        layers: Mapping[str, Sequence[str]],
        head: Mapping[str, Any] | None = None,
        *,
        most_names: int | None = None,
    ) -> None:
        """Raises OSError if nothing can be written beside `target`.

        `most_names`: maximum number of names; more raise MemoryError.
        """
        self.target, self._most_names = target, most_names
        self._layers = {name: tuple(keys) for name, keys in layers.items()}
        self._numbers = {name: number for number, name in enumerate(layers)}
        self._head = dict(head or {})
        self._words = columns.Words()
        self._texts: dict[tuple[int, str], int] = {}
        self._temporary = f".{target.name}.{os.getpid()}.tmp"
        self._sections: dict[str, tuple[int, int]] = {}
        self._rows = dict.fromkeys(layers, 0)
        self._folder = Folder(target.parent, create=True, follow=False)
        try:
            _clear(self._folder)
            self._file: BinaryIO = self._folder.create(self._temporary, again=True)
            try:
                self._file.write(bytes(HEADER))
                self._native = native.make("index_builder_new", HEADER)
            except BaseException:
                self._file.close()
                self._folder.remove(self._temporary)
                raise
        except BaseException:
            self._folder.close()
            raise

    def add(self, layer: str, rows: pa.Table) -> None:
        """Add rows of a layer, best in order of start.

        Columns: `start`, `end` (ns; instants have none), those that the layer has as keys (numbers or texts), `name` (text), and where
        there are any `id` (its low half is the row; else rows count up), `color` (0xRRGGBB), `depth` (the lane to begin to look for room
        at), `task` (rows of one stay together), `link` (a number that the events of one launch in the process share).
        """
        if not rows.num_rows:
            return
        number, names = self._numbers[layer], rows.column_names
        given: dict[str, Any] = {
            field: columns.integers(rows.column(field), kind)
            for field, kind in (
                ("start", np.int64),
                ("end", np.int64),
                ("id", np.int64),
                ("depth", np.int32),
                ("task", np.int64),
                ("link", np.int64),
            )
            if field in names
        }
        for place, key in enumerate(self._layers[layer]):
            if key in names:
                given[f"key {place}"] = self._words.codes(rows.column(key))
        if "color" in names and rows.column("color").null_count < rows.num_rows:
            given["color"] = columns.whole(rows.column("color")).cast(pa.uint32())
        if "name" in names:
            given["name"] = self._named(rows.column("name"), number)
        native.call(
            "index_builder_add",
            self._native,
            number,
            self._rows[layer],
            self._text("", number),
            pa.RecordBatch.from_pydict(given),
        )
        self._rows[layer] += rows.num_rows
        self._drain()

    def commit(self) -> None:
        """Write what is left and give the file its name. Raises OSError."""
        if native.call("index_builder_disordered", self._native):
            self._file.flush()
            with mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
                view = np.frombuffer(mapped, np.uint8)
                native.call("index_builder_close", self._native, view)
                del view
        else:
            native.call("index_builder_close", self._native, None)
        self._drain()
        self._sections["slices"] = (HEADER, self._file.tell() - HEADER)
        self._align()
        begin = self._file.tell()
        while native.call("index_builder_nodes", self._native):
            self._drain()
        self._drain()
        self._sections["nodes"] = (begin, self._file.tell() - begin)
        for place, name in enumerate(("lanes", "tracks", "names")):
            self._write(name, native.call("index_builder_records", self._native, place).data)
        count = self._sections["tracks"][1] // 48
        keys = np.empty((count, 1 + KEYS), np.int64)
        native.call("index_builder_keys", self._native, keys)
        self._write("keys", keys.tobytes())
        self._write("layers", np.array([layer for layer, _ in self._texts], np.uint32).tobytes())
        texts = [text.encode("utf-8", errors="replace") for _, text in self._texts]
        self._write("offsets", np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64).tobytes())
        self._write("texts", b"".join(texts))
        head = {
            **self._head,
            "layers": [[name, *keys] for name, keys in self._layers.items()],
            "words": self._words.texts,
        }
        self._write("head", json.dumps(head).encode())
        size = self._file.tell()
        assert set(self._sections) == set(SECTIONS)
        self._file.seek(0)
        self._file.write(Header(size, self._sections).pack())
        self._file.close()
        self._folder.rename(self._temporary, self.target.name)

    def __enter__(self) -> IndexBuilder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._native.close()
        try:
            self._file.close()
        except OSError:
            pass  # a full disk fails again here; the file goes anyway
        self._folder.remove(self._temporary)
        self._folder.close()

    def _named(self, column: pa.ChunkedArray, layer: int) -> pa.DictionaryArray:
        """Return names with the numbers of their texts."""
        coded = columns.coded(column)
        texts = [self._text(text or "", layer) for text in coded.dictionary.to_pylist()]
        codes = coded.indices.cast(pa.int32())
        return pa.DictionaryArray.from_arrays(codes, pa.array(texts, pa.uint32()), safe=False)

    def _text(self, text: str, layer: int) -> int:
        known = self._texts
        number = known.setdefault((layer, text[:_LONGEST]), len(known))
        if self._most_names is not None and len(known) > self._most_names:
            raise MemoryError(f"the index of the timeline: more than {self._most_names:,} names")
        return number

    def _drain(self) -> None:
        fresh = native.call("index_builder_fresh", self._native)
        if len(fresh):
            self._file.write(fresh.data)
            native.call("index_builder_taken", self._native)

    def _write(self, name: str, data: bytes | memoryview) -> None:
        self._align()
        self._sections[name] = (self._file.tell(), len(data))
        self._file.write(data)

    def _align(self) -> None:
        self._file.write(bytes(-self._file.tell() % 64))
