"""The tables `samples` and `thread_states`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.convert import texts
from warplens.convert.chosen import LATEST
from warplens.convert.cpu.chosen import NONE, Piece
from warplens.convert.cpu.frames import Frames
from warplens.convert.cpu.opcodes import Opcodes
from warplens.convert.cpu.reasons import Reasons
from warplens.convert.place import Place
from warplens.convert.words import labelled
from warplens.storage import schema

PYTHON, NATIVE = 1, 2
SAMPLES = (PYTHON, NATIVE)
RUNNING, RUNNABLE, BLOCKED = 1, 2, 3
STATES = (RUNNING, RUNNABLE, BLOCKED)
_KINDS = {PYTHON: "python", NATIVE: "native"}
_STATES = {RUNNING: "running", RUNNABLE: "runnable", BLOCKED: "blocked"}
_ON_CPU, _GIL, _LATE, _CUT, _EXCEPTION = 0x01, 0x02, 0x04, 0x08, 0x10
_SAMPLED = 0x01


class Samples:
    """Makes the rows of `samples`."""

    def __init__(self, place: Place, frames: Frames, opcodes: Opcodes) -> None:
        self._frames, self._opcodes = frames, opcodes
        self._tasks = texts.Names(place.strings, texts.plain)

    def __call__(self, piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
        """Return a table and its next rows; `columns`: those that all tables have."""
        fields = piece.fields
        kind, flags = fields["domain"], fields["flags"]
        native = kind == NATIVE
        count, weight = weight_of(fields)
        (task,) = self._tasks.columns(fields["name"])
        columns |= {
            "kind": labelled(kind, _KINDS),
            "count": count,
            "weight": weight,
            "on_cpu": pa.array(native | _flag(flags, _ON_CPU)),
            "gil": pa.array(_flag(flags, _GIL), mask=native),
            "cpu": _cpu(np.where(native, fields["cpu"], NONE)),
            "stack": self._frames.stacks(fields["stack"]),
            "task": task,
            "late": pa.array(_flag(flags, _LATE), mask=~native),
            "cut": pa.array(_flag(flags, _CUT)),
            "exception": pa.array(_flag(flags, _EXCEPTION), mask=native),
            **self._opcodes.columns(fields["cpu"], native),
        }
        yield "samples", schema.build("samples", columns)


class ThreadStates:
    """Makes the rows of `thread_states`."""

    def __init__(self, reasons: Reasons) -> None:
        self._reasons = reasons

    def __call__(self, piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
        """Return a table and its next rows; `columns`: those that all tables have."""
        fields = piece.fields
        state = fields["domain"]
        columns |= {
            "state": labelled(state, _STATES),
            "cpu": _cpu(fields["cpu"]),
            "exact": pa.array(~_flag(fields["flags"], _SAMPLED)),
            "reason": self._reasons.column(piece, state == BLOCKED),
        }
        yield "thread_states", schema.build("thread_states", columns)


def weight_of(fields: npt.NDArray[Any]) -> tuple[pa.Array, pa.Array]:
    """Return the number of ticks and the time that they stand for."""
    count = fields["count"].astype(np.int64)
    interval = np.minimum(fields["interval"].astype(np.uint64), LATEST).astype(np.int64)
    return pa.array(count), pa.array(
        np.where(interval > LATEST // np.maximum(count, 1), LATEST, count * interval)
    )


def _flag(flags: npt.NDArray[np.uint8], flag: int) -> npt.NDArray[np.bool_]:
    on: npt.NDArray[np.bool_] = (flags & flag) != 0
    return on


def _cpu(cpu: npt.NDArray[np.uint32]) -> pa.Array:
    return pa.array(cpu.astype(np.int32), mask=(cpu == NONE) | (cpu > 0x7FFFFFFF))
