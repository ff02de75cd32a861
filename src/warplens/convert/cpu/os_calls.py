"""The tables `osrt` and `file_access`: calls of the C library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import distinct
from warplens.convert import texts
from warplens.convert.chosen import LATEST
from warplens.convert.cpu import os_words
from warplens.convert.cpu.chosen import Piece
from warplens.convert.cpu.frames import Frames
from warplens.convert.place import Place
from warplens.convert.words import labelled
from warplens.storage import schema

_FILE = 0x01  # of a call's flags
_FILES, _SOCKETS, _LOCKS, _MEMORY = (
    os_words.GROUPS.index(group) for group in ("file", "socket", "lock", "memory")
)


class OsCalls:
    """The rows of both tables."""

    def __init__(self, place: Place, frames: Frames) -> None:
        self._place, self._frames = place, frames
        self._functions = texts.Names(place.strings, texts.named, os_words.operation)
        self._groups = texts.Ids(place.strings, lambda name: os_words.GROUPS.index(os_words.group(name)))
        self._sockets = texts.Ids(place.strings, os_words.on_socket)
        self._targets = texts.Names(place.strings, texts.plain)
        self._moves = texts.Ids(place.strings, os_words.moves)
        self._opens = texts.Ids(place.strings, os_words.flags_asked)
        self._files = 0

    def __call__(self, piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
        """Return the next rows of `osrt` and of `file_access` with the names of their tables.

        `columns`: those that all tables have.
        """
        fields = piece.fields
        name, operation = self._functions.columns(fields["name"])
        (target,) = self._targets.columns(fields["text"])
        result, error, fd = (
            fields["result"].astype(np.int64),
            fields["domain"].astype(np.int64),
            fields["fd"].astype(np.int32),
        )
        group, known = self._groups(fields["name"]), self._sockets(fields["text"])
        group = np.where((group == _FILES) & (known == 1), _SOCKETS, group)
        on_file = ((fields["flags"] & _FILE) != 0) & (known == 0)
        moved = (self._moves(fields["name"]) != 0) & (result >= 0)
        mapped = (group == _MEMORY) & (error == 0)
        subject = fields["object"].astype(np.uint64)
        size = np.where(mapped, np.minimum(subject, LATEST).astype(np.int64), result)
        common = {
            "error": labelled(error, os_words.ERRORS, absent=error == 0),
            "fd": pa.array(fd, mask=fd < 0),
            "bytes": pa.array(size, mask=~(moved | mapped)),
        }
        yield (
            "osrt",
            schema.build(
                "osrt",
                {
                    **columns,
                    **common,
                    "name": name,
                    "group": labelled(group, dict(enumerate(os_words.GROUPS))),
                    "result": pa.array(result),
                    "target": target,
                    "object": pa.array(subject, mask=(group != _LOCKS) | (subject == 0)),
                    "stack": self._frames.stacks(fields["stack"]),
                },
            ),
        )
        if on_file.any():
            kept = pa.array(np.flatnonzero(on_file))
            files = {**columns, **common, "name": name, "operation": operation, "path": target}
            files.pop("range", None)
            files = {column: values.take(kept) for column, values in files.items()} | self._asked(
                fields[on_file]
            )
            files |= self._place.ids(slice(self._files, self._files + len(kept)))
            self._files += len(kept)
            yield "file_access", schema.build("file_access", files)

    def _asked(self, fields: npt.NDArray[Any]) -> dict[str, pa.Array]:
        """Return the columns that `object` becomes: a number of bytes, or flags."""
        opens = self._opens(fields["name"]) != 0
        moves = self._moves(fields["name"]) != 0
        flags = fields["object"] & 0xFFFFFFFF
        used = distinct(flags[opens])
        words = pa.array([os_words.open_flags(one) for one in used.tolist()], pa.string())
        flags = words.take(pa.array(np.searchsorted(used, flags), mask=~opens))
        return {"asked": pa.array(fields["object"].astype(np.int64), mask=~moves), "flags": flags}
