"""GPU work as Perfetto's stages in place of slices.

See perfetto/trace/gpu/gpu_render_stage_event.proto.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.analysis.dictionaries import numbered
from warplens.exporters.events import ExportEvents
from warplens.exporters.perfetto.batch import Interned
from warplens.exporters.protobuf import message, number, text
from warplens.exporters.rows import ExportRow
from warplens.exporters.tracks import Tracks

_CONTEXTS, _SPECIFICATIONS = 23, 24  # of InternedData
_CUDA, _COMPUTE, _OTHER = 4, 2, 0
_STAGES = {"kernels": 1, "memcpys": 2, "memsets": 3, "graphs": 4}
_NAMES = ("Kernel", "Memcpy", "Memset", "CUDA graph")
_SIZES = tuple(f"{what} {axis}" for what in ("grid", "block") for axis in "xyz")
_EXTRA = (
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


class Stages:
    """The queues and contexts of a report.

    A queue for each row below a stream, a context for each of a process.
    """

    def __init__(self, tracks: Tracks, rows: Sequence[ExportRow]) -> None:
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
        """Yield the references of the events, as fields of InternedData."""
        for index, pid in enumerate(self._pids):
            yield message(_CONTEXTS, number(1, index + 1), number(2, pid), number(3, _CUDA))
        for index, name in enumerate(_NAMES):
            kind = _COMPUTE if index in (0, 3) else _OTHER
            yield message(_SPECIFICATIONS, number(1, index + 1), text(2, name), number(4, kind))
        for index, row in enumerate(self._rows):
            if "context" in row.about:
                yield message(_SPECIFICATIONS, number(1, len(_NAMES) + 1 + index), text(2, row.full))

    def takes(self, piece: ExportEvents) -> bool:
        """Say whether these events can be stages."""
        return piece.kind.table in _STAGES

    def encode(self, encoder: native.Handle, piece: ExportEvents, names: Interned) -> None:
        """Encode events."""
        assert piece.end is not None
        rows = {
            "start": piece.start,
            "end": piece.end,
            "name": numbered(piece.name, names.id, pa.uint64()),
            "queue": (piece.row + len(_NAMES) + 1).astype(np.uint64),
            "context": self._context[piece.row],
            "gpu": self._device[piece.row],
        }
        details = {name: column for name, column in piece.details if pa.types.is_integer(column.type)}
        for name, column in details.items():
            if name in _SIZES:
                rows[name] = column.fill_null(0).cast(pa.int64(), safe=False)
        extra = {
            name: column.cast(pa.int64(), safe=False) for name, column in details.items() if name in _EXTRA
        }
        native.call(
            "perfetto_stages",
            encoder,
            _STAGES[piece.kind.table],
            pa.RecordBatch.from_pydict(rows),
            pa.RecordBatch.from_pydict(extra) if extra else None,
        )
