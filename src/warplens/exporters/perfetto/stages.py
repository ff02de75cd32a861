"""GPU work as Perfetto's stages in place of slices.

See perfetto/trace/gpu/gpu_render_stage_event.proto.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens import native
from warplens.analysis.dictionaries import codes
from warplens.exporters.events import Events
from warplens.exporters.perfetto.batch import Interned, Notes
from warplens.exporters.protobuf import message, number, text
from warplens.exporters.rows import Row
from warplens.exporters.tracks import Tracks

_CONTEXTS, _SPECIFICATIONS = 23, 24  # of InternedData
_CUDA, _COMPUTE, _OTHER = 4, 2, 0
_STAGES = {"kernels": 1, "memcpys": 2, "memsets": 3, "graphs": 4}
_NAMES = ("Kernel", "Memcpy", "Memset", "CUDA graph")
_TOLD = (
    "bytes",
    "value",
    "correlation",
    "registers",
    "static shared",
    "dynamic shared",
    "graph",
    "graph exec",
    "graph node",
)


class _Stages(ctypes.Structure):
    """`Stages` of native/reader/perfetto/encoder.cpp."""

    _fields_ = [
        ("rows", ctypes.c_int64),
        *(
            (name, ctypes.c_void_p)
            for name in ("start", "end", "name", "name_ids", "queue", "context", "gpu")
        ),
        ("stage", ctypes.c_uint64),
        *((name, ctypes.c_void_p) for name in ("grid", "block", "notes")),
        ("note_columns", ctypes.c_int64),
        ("note_names", ctypes.c_void_p),
    ]


class Stages:
    """The queues and contexts of a report.

    A queue for each row below a stream, a context for each of a process.
    """

    def __init__(self, tracks: Tracks, rows: Sequence[Row]) -> None:
        self._rows = rows
        contexts = list(
            dict.fromkeys((row.process, row.about["context"]) for row in rows if "context" in row.about)
        )
        self._contexts = {key: index + 1 for index, key in enumerate(contexts)}
        self._pids = [tracks.processes[process].pid for process, _ in contexts]
        self._context = np.array(
            [self._contexts.get((row.process, row.about.get("context", -1)), 0) for row in rows], np.uint64
        )
        self._device = np.array([row.about.get("device", 0) for row in rows], np.int32)

    def interned(self) -> Iterator[bytes]:
        """Yield what the events refer to, as fields of InternedData."""
        for index, pid in enumerate(self._pids):
            yield message(_CONTEXTS, number(1, index + 1), number(2, pid), number(3, _CUDA))
        for index, name in enumerate(_NAMES):
            kind = _COMPUTE if index in (0, 3) else _OTHER
            yield message(_SPECIFICATIONS, number(1, index + 1), text(2, name), number(4, kind))
        for index, row in enumerate(self._rows):
            if "context" in row.about:
                yield message(_SPECIFICATIONS, number(1, len(_NAMES) + 1 + index), text(2, row.full))

    def takes(self, piece: Events) -> bool:
        """Say whether these events can be stages."""
        return piece.kind.table in _STAGES

    def encode(self, encoder: native.Handle, piece: Events, names: Interned) -> None:
        """Encode events."""
        assert piece.end is not None
        numbers, texts = codes(piece.name)
        ids = np.array([0, *(names.id(name) for name in texts.to_pylist())], np.uint64)
        start, end = np.ascontiguousarray(piece.start), np.ascontiguousarray(piece.end)
        queue = (piece.row + len(_NAMES) + 1).astype(np.uint64)
        context, gpu = self._context[piece.row], self._device[piece.row]
        told = {
            name: column
            for name, column in piece.details
            if name in _TOLD and pa.types.is_integer(column.type)
        }
        kept: list[npt.NDArray[np.generic]] = [start, end, numbers, ids, queue, context, gpu]
        notes = (Notes * len(told))()
        for note, column in zip(notes, told.values(), strict=True):
            held = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.int64)
            there = column.is_valid().to_numpy(zero_copy_only=False).view(np.uint8)
            kept += [held, there]
            note.values, note.has = held.ctypes.data, there.ctypes.data
        words = (ctypes.c_char_p * len(told))(*(name.encode() for name in told))
        sizes = []
        for what in ("grid", "block"):
            axes = dict(piece.details)
            columns = [axes.get(f"{what} {axis}") for axis in "xyz"]
            if None not in columns:
                joined = np.concatenate(
                    [
                        column.to_numpy(zero_copy_only=False).astype(np.int64)
                        for column in columns
                        if column is not None
                    ]
                )
                kept.append(joined)
                sizes.append(joined.ctypes.data)
        grid, block = sizes if len(sizes) == 2 else (None, None)
        given = _Stages(
            len(start),
            *(array.ctypes.data for array in kept[:7]),
            stage=_STAGES[piece.kind.table],
            grid=grid,
            block=block,
            notes=ctypes.addressof(notes),
            note_columns=len(told),
            note_names=ctypes.addressof(words),
        )
        native.call("perfetto_stages", encoder, given)
