"""The tables `python_calls`, `imports`, `gc` and `gil`: what Python itself did."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.report import schema, texts
from warplens.report.chosen import LATEST
from warplens.report.cpu.chosen import Chosen
from warplens.report.cpu.reasons import Reasons
from warplens.report.place import Place
from warplens.report.words import labelled
from warplens.spool import desk

FUNCTION, GC, IMPORT, EXCEPTION, WARNING, TASK, LOCK, PAUSE = range(1, 9)
CALLS = (FUNCTION, EXCEPTION, WARNING, TASK, LOCK, PAUSE)
_KINDS = {FUNCTION: "function", EXCEPTION: "exception", WARNING: "warning", TASK: "task", LOCK: "lock", PAUSE: "pause"}
_COLOR, _CUT = 0x01, 0x02
HOLD, WAIT, BRIEF = 1, 2, 3
GIL = (HOLD, WAIT, BRIEF)
_STATES = {HOLD: "hold", WAIT: "wait", BRIEF: "brief"}
_LOCK = (("held", HOLD, "held_ns"), ("waited", WAIT, "waited_ns"), ("holds", HOLD, "holds"), ("waits", WAIT, "waits"))
Numbers = npt.NDArray[np.int64]


class _Nested:
    """How the rows of each thread lie within one another. `inside`: for each row how long those are that lie right in it (ns)."""

    def __init__(self, chosen: Chosen, end: Numbers, place: Place) -> None:
        self._first = place.first
        self.depth, self._parent = desk.nest(chosen.thread.astype(np.int64), chosen.start, end)
        self._length = end - chosen.start

    def inside(self) -> Numbers:
        inner = self._parent >= 0
        sums = np.bincount(self._parent[inner], self._length[inner].astype(np.float64), len(self._parent))
        return np.asarray(sums, np.int64) if len(sums) else np.zeros(0, np.int64)

    def columns(self, rows: slice) -> dict[str, pa.Array]:
        parent = self._parent[rows]
        return {"depth": pa.array(self.depth[rows]), "parent": pa.array(self._first + parent, mask=parent < 0)}


def calls(chosen: Chosen, place: Place) -> Iterator[pa.Table]:
    """Return the rows of `python_calls`."""
    nested = _Nested(chosen, chosen.ends(), place)
    names, files = texts.Names(place.strings, texts.named), texts.Names(place.strings, texts.plain)
    for rows, found, columns in chosen.groups():
        kind, flags, line = found["domain"], found["flags"], found["line"]
        (name,), (file,) = names.columns(found["name"]), files.columns(found["file"])
        columns |= {
            **nested.columns(rows),
            "kind": labelled(kind, _KINDS),
            "name": name,
            "file": file,
            "line": pa.array(line.astype(np.int32), mask=(line == 0) | (line > 0x7FFFFFFF)),
            "color": pa.array(found["color"].astype(np.uint32), mask=(flags & _COLOR) == 0),
            "clipped": pa.array((flags & _CUT) != 0),
            "failed": pa.array(found["value"] == 1, mask=(kind != TASK) & (kind != FUNCTION)),
        }
        yield schema.build("python_calls", columns)


def imports(chosen: Chosen, place: Place) -> Iterator[pa.Table]:
    """Return the rows of `imports`."""
    nested = _Nested(chosen, chosen.ends(), place)
    inside = nested.inside()
    names = texts.Names(place.strings, texts.named)
    for rows, found, columns in chosen.groups():
        (name,) = names.columns(found["name"])
        length = found["end"].astype(np.int64) - chosen.start[rows]
        columns |= {
            **nested.columns(rows),
            "name": name,
            "self": pa.array(np.maximum(length - inside[rows], 0)),
            "failed": pa.array(found["value"] == 1),
        }
        yield schema.build("imports", columns)


def collections(chosen: Chosen) -> Iterator[pa.Table]:
    """Return the rows of `gc`."""
    for _, found, columns in chosen.groups():
        columns |= {
            "generation": pa.array(np.clip(found["value"], 0, 0x7FFFFFFF).astype(np.int32)),
            "collected": pa.array(np.maximum(found["value2"].astype(np.int64), 0)),
            "uncollectable": pa.array(found["line"].astype(np.int64)),
        }
        yield schema.build("gc", columns)


def lock(chosen: Chosen, reasons: Reasons | None) -> Iterator[pa.Table]:
    """Return the rows of `gil`."""
    for rows, found, columns in chosen.groups():
        state = found["domain"]
        length = found["end"].astype(np.int64) - chosen.start[rows]
        waits = state == WAIT
        if reasons is not None and waits.any():
            reasons.wait(chosen.thread[rows][waits], chosen.start[rows][waits], found[waits])
        interpreter = np.minimum(found["interpreter"].astype(np.uint64), 0x7FFFFFFF).astype(np.int32)
        columns |= {"state": labelled(state, _STATES), "interpreter": pa.array(interpreter)}
        for name, kind, brief in _LOCK:
            one = length if name in ("held", "waited") else np.ones(len(length), np.int64)
            sums = np.minimum(found[brief].astype(np.uint64), LATEST).astype(np.int64)
            columns[name] = pa.array(np.where(state == BRIEF, sums, np.where(state == kind, one, 0)))
        yield schema.build("gil", columns)
