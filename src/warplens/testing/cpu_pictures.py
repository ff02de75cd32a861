"""The rows of a drawn timeline that show the CPU side: samples, states, OS calls, GIL, collections.

`testing.timeline` explains them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from warplens import native
from warplens.convert.cpu import os_words
from warplens.model.tables import TABLES
from warplens.testing.cuda_pictures import Scene, enclosing

_HEAD = re.compile(r"(?P<thread>[^:]*):(?P<kind>python|native|task|state|os|gil|gc|import|call)")
_PIECE = re.compile(r"\((?P<op>[^)]*)\)|!(?P<instant>[^\s!(]*)")
_FRAME = re.compile(r"(?P<function>.+?)(?:@(?P<module>[^@:]+))?(?::(?P<line>\d+))?")
_PER_PROCESS = 1 << 32
_TABLES = {
    "python": "samples",
    "native": "samples",
    "task": "task_samples",
    "state": "thread_states",
    "os": "osrt",
    "gil": "gil",
    "gc": "gc",
    "import": "imports",
    "call": "python_calls",
}
_KERNEL = "kernel"
Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Happening:
    """One thing in a row of the CPU side."""

    process: str
    thread: str
    kind: str
    name: str
    first: int
    last: int
    instant: bool


def read(process: str, head: str, track: str) -> list[Happening] | None:
    """Read one line; None if it is no row of the CPU side."""
    match = _HEAD.fullmatch(head)
    if match is None:
        return None
    happenings = []
    for piece in _PIECE.finditer(track):
        name = str(piece[str(piece.lastgroup)]).split(" ")[0]
        instant = piece.lastgroup == "instant"
        happenings.append(
            Happening(
                process,
                match["thread"],
                match["kind"],
                name=name,
                first=piece.start(),
                last=piece.start() if instant else piece.end(),
                instant=instant,
            )
        )
    return happenings


def rows(drawn: Sequence[Happening], scene: Scene) -> dict[str, list[Row]]:
    """Return the rows of every table that they go to, each with its ids."""
    frames = _Frames()
    made: dict[str, list[tuple[Row, Happening]]] = {}
    for happening in drawn:
        start, end = scene.origin + happening.first * scene.tick, scene.origin + happening.last * scene.tick
        process, thread = (
            scene.processes[happening.process],
            scene.threads[happening.process, happening.thread],
        )
        around = enclosing(thread, start, scene.ranges)
        row = {"process": process, "thread": thread, "start": start, "end": end, "range": around}
        row |= _ROWS[happening.kind](happening, row, frames, scene.tick)
        row |= scene.extra.get(happening.name.partition("<")[0], {})
        made.setdefault(_TABLES[happening.kind], []).append((row, happening))
    rows_of = {}
    for table, pairs in made.items():
        pairs.sort(key=lambda pair: (pair[0]["process"], pair[0]["start"], -pair[1].last))
        rows_of[table] = _numbered([row for row, _ in pairs])
    for table in ("imports", "python_calls"):
        _nest(rows_of.get(table, []))
    files = [row for row in rows_of.get("osrt", []) if row["group"] == "file"]
    if files:
        operations = [
            {**row, "operation": os_words.operation(row["name"]), "path": row["target"]} for row in files
        ]
        rows_of["file_access"] = _numbered(operations)
    if frames.rows:
        rows_of["frames"] = [{**row, **scene.extra.get(row["function"], {})} for row in frames.rows]
    wanted = {name: {column.name for column in TABLES[name].columns} for name in rows_of}
    return {
        name: [{key: value for key, value in row.items() if key in wanted[name]} for row in table]
        for name, table in rows_of.items()
    }


@dataclass
class _Frames:
    """The tree of stacks, as rows."""

    rows: list[Row] = field(default_factory=list)
    _keys: dict[tuple[int, str], int] = field(default_factory=dict)
    _counts: dict[int, int] = field(default_factory=dict)

    def stack(self, process: int, text: str, kind: str) -> int | None:
        """Return the key of `outer;…;inner`, None for an empty stack."""
        above: int | None = None
        pieces = [piece for piece in text.split(";") if piece]
        for depth in range(len(pieces)):
            path = ";".join(pieces[: depth + 1])
            if (process, path) not in self._keys:
                self._counts[process] = self._counts.get(process, 0) + 1
                self._keys[process, path] = process * _PER_PROCESS + self._counts[process]
                self.rows.append(
                    self._row(process, self._keys[process, path], above, depth=depth, text=pieces[depth])
                )
            above = self._keys[process, path]
        return above

    def _row(self, process: int, key: int, above: int | None, depth: int, text: str) -> Row:
        match = _FRAME.fullmatch(text)
        function, module, line = (
            (text, None, None) if match is None else match.group("function", "module", "line")
        )
        row: Row = {"frame": key, "process": process, "parent": above, "depth": depth, "function": function}
        row["line"] = None if line is None else int(line)
        if text.startswith("*"):
            return row | {"kind": "task", "function": f"task {text[1:]}"}
        if module is None:
            return row | {"kind": "python", "file": "/app.py", "first_line": 1}
        path = None if module == _KERNEL else f"/lib/{module}"
        return row | {
            "kind": _KERNEL if module == _KERNEL else "native",
            "module": module,
            "path": path,
            "address": 16 * (key % _PER_PROCESS),
        }


def _sample(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    count = happening.last - happening.first
    native = happening.kind == "native"
    times = {"end": row["end"] - tick, "count": count, "weight": count * tick}
    name, _, task = happening.name.partition("#")
    more = {"gil": None if native else True, "cpu": 0 if native else None, "late": False if native else None}
    stack = frames.stack(row["process"], name, happening.kind)
    return {
        **times,
        **more,
        "kind": happening.kind,
        "on_cpu": True,
        "stack": stack,
        "task": task or None,
        "cut": False,
    }


def _task(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    about, _, stack = happening.name.partition("<")
    name, _, state = about.partition(":")
    count, number = happening.last - happening.first, sum(name.encode())
    times = {"count": count, "weight": count * tick, "depth": 0}
    of = {
        "task": name,
        "number": number,
        "outer": state == "outer",
        "state": state if state in ("running", "ready") else "awaiting",
    }
    return {
        **times,
        **of,
        "doing": stack.rpartition(";")[2] or None,
        "stack": frames.stack(row["process"], stack, "python"),
    }


def _state(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    state, _, about = happening.name.partition(":")
    running = state == "running"
    return {
        "state": state,
        "cpu": int(about or 0) if running else None,
        "exact": True,
        "reason": None if running else about or None,
    }


def _os(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    call, _, stack = happening.name.partition("<")
    name, _, target = call.partition(":")
    about = {"target": target or None, "stack": frames.stack(row["process"], stack, "python")}
    return {"name": name, "group": os_words.group(name), "result": 0, **about}


def _gil(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    length, holds = row["end"] - row["start"], happening.name != "wait"
    times = {"held": length if holds else 0, "waited": 0 if holds else length}
    return {"state": happening.name, **times, "holds": int(holds), "waits": int(not holds), "interpreter": 0}


def _collection(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    return {"generation": int(happening.name), "collected": 0, "uncollectable": 0}


def _import(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    return {"name": happening.name, "failed": False}


def _call(happening: Happening, row: Row, frames: _Frames, tick: int) -> Row:
    kind, colon, name = happening.name.partition(":")
    if not colon:
        kind, name = (
            ("warning" if happening.name.endswith("Warning") else "exception")
            if happening.instant
            else "function",
            happening.name,
        )
    return {
        "kind": kind,
        "name": name,
        "file": "/app.py",
        "line": 1,
        "clipped": False,
        "failed": None if happening.instant else False,
    }


_ROWS: dict[str, Callable[[Happening, Row, _Frames, int], Mapping[str, Any]]] = {
    "python": _sample,
    "native": _sample,
    "task": _task,
    "state": _state,
    "os": _os,
    "gil": _gil,
    "gc": _collection,
    "import": _import,
    "call": _call,
}


def _numbered(table: list[Row]) -> list[Row]:
    counts: dict[int, int] = {}
    for row in table:
        number = counts[row["process"]] = counts.get(row["process"], -1) + 1
        row["id"] = row["process"] * _PER_PROCESS + number
    return table


def _nest(table: list[Row]) -> None:
    """Set depth and parent, and of imports the time that is their own."""
    thread, start, end = (
        np.array([row[name] for row in table], np.int64) for name in ("thread", "start", "end")
    )
    depth, parent = native.nest(thread, start, end)
    for row, lane, above in zip(table, depth.tolist(), parent.tolist(), strict=True):
        row |= {
            "depth": lane,
            "parent": None if above < 0 else table[above]["id"],
            "self": row["end"] - row["start"],
        }
    for row, above in zip(table, parent.tolist(), strict=True):
        if above >= 0:
            table[above]["self"] -= row["end"] - row["start"]
