"""The tables `python_calls`, `imports`, `gc` and `gil`: activity of Python itself."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.arrays import Float64Array, Int64Array
from warplens.convert import texts
from warplens.convert.chosen import LATEST
from warplens.convert.cpu.chosen import Chosen, Piece
from warplens.convert.place import Place
from warplens.convert.words import labelled
from warplens.storage import schema

FUNCTION, GC, IMPORT, EXCEPTION, WARNING, TASK, LOCK, PAUSE = range(1, 9)
CALLS = (FUNCTION, EXCEPTION, WARNING, TASK, LOCK, PAUSE)
_KINDS = {
    FUNCTION: "function",
    EXCEPTION: "exception",
    WARNING: "warning",
    TASK: "task",
    LOCK: "lock",
    PAUSE: "pause",
}
_COLOR, _CUT = 0x01, 0x02
HOLD, WAIT, BRIEF = 1, 2, 3
GIL = (HOLD, WAIT, BRIEF)
_STATES = {HOLD: "hold", WAIT: "wait", BRIEF: "brief"}
_LOCK = (
    ("held", HOLD, "held_ns"),
    ("waited", WAIT, "waited_ns"),
    ("holds", HOLD, "holds"),
    ("waits", WAIT, "waits"),
)


class _Nested:
    """The nesting of the rows of each thread."""

    def __init__(self, first: int) -> None:
        self._first, self._nests = first, native.Nests()

    def columns(self, piece: Piece) -> tuple[dict[str, pa.Array], Int64Array]:
        """Return the columns of the next rows, and the row around each, -1 for none."""
        depth, parent = self._nests.add(piece.thread.astype(np.int64), piece.start, piece.end)
        return {"depth": pa.array(depth), "parent": pa.array(self._first + parent, mask=parent < 0)}, parent


class Calls:
    """Makes the rows of `python_calls`."""

    def __init__(self, place: Place) -> None:
        self._nested = _Nested(place.first)
        self._names, self._files = (
            texts.Names(place.strings, texts.named),
            texts.Names(place.strings, texts.plain),
        )

    def __call__(self, piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
        """Return a table and its next rows; `columns`: those that all tables have."""
        fields = piece.fields
        kind, flags, line = fields["domain"], fields["flags"], fields["line"]
        (name,), (file,) = self._names.columns(fields["name"]), self._files.columns(fields["file"])
        columns |= {
            **self._nested.columns(piece)[0],
            "kind": labelled(kind, _KINDS),
            "name": name,
            "file": file,
            "line": pa.array(line.astype(np.int32), mask=(line == 0) | (line > 0x7FFFFFFF)),
            "color": pa.array(fields["color"].astype(np.uint32), mask=(flags & _COLOR) == 0),
            "clipped": pa.array((flags & _CUT) != 0),
            "failed": pa.array(fields["value"] == 1, mask=(kind != TASK) & (kind != FUNCTION)),
        }
        yield "python_calls", schema.build("python_calls", columns)


class Imports:
    """Makes the rows of `imports`."""

    def __init__(self, place: Place, inside: Float64Array) -> None:
        """`inside`: ns, how long those are that lie right in each."""
        self._nested, self._names = _Nested(place.first), texts.Names(place.strings, texts.named)
        self._inside = inside

    @classmethod
    def of(cls, chosen: Chosen, place: Place) -> Imports:
        """Read all records once, for the imports in each."""
        inside, nested = np.zeros(len(chosen)), _Nested(place.first)
        for piece in chosen.pieces():
            parent = nested.columns(piece)[1]
            inner = parent >= 0
            np.add.at(inside, parent[inner], (piece.end - piece.start)[inner])
        return cls(place, inside)

    def __call__(self, piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
        """Return a table and its next rows; `columns`: those that all tables have."""
        (name,) = self._names.columns(piece.fields["name"])
        length = piece.end - piece.start
        columns |= {
            **self._nested.columns(piece)[0],
            "name": name,
            "self": pa.array(np.maximum(length - self._inside[piece.rows].astype(np.int64), 0)),
            "failed": pa.array(piece.fields["value"] == 1),
        }
        yield "imports", schema.build("imports", columns)


def collections(piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
    """Return the next rows of `gc`; `columns`: those that all tables have."""
    fields = piece.fields
    columns |= {
        "generation": pa.array(np.clip(fields["value"], 0, 0x7FFFFFFF).astype(np.int32)),
        "collected": pa.array(np.maximum(fields["value2"].astype(np.int64), 0)),
        "uncollectable": pa.array(fields["line"].astype(np.int64)),
    }
    yield "gc", schema.build("gc", columns)


def lock(piece: Piece, columns: dict[str, pa.Array]) -> Iterator[tuple[str, pa.Table]]:
    """Return the next rows of `gil`; `columns`: those that all tables have."""
    fields = piece.fields
    state = fields["domain"]
    length = piece.end - piece.start
    interpreter = np.minimum(fields["interpreter"].astype(np.uint64), 0x7FFFFFFF).astype(np.int32)
    columns |= {"state": labelled(state, _STATES), "interpreter": pa.array(interpreter)}
    for name, kind, brief in _LOCK:
        one = length if name in ("held", "waited") else np.ones(len(length), np.int64)
        sums = np.minimum(fields[brief].astype(np.uint64), LATEST).astype(np.int64)
        columns[name] = pa.array(np.where(state == BRIEF, sums, np.where(state == kind, one, 0)))
    yield "gil", schema.build("gil", columns)
