"""Reports with rows in every table of the model, at times that no real run has: without length, all at once, before zero."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from warplens.model.table import Column, Table
from warplens.model.tables import TABLES
from warplens.storage.writer import Facts, write_part

T = 1_000_000
# For each kind of report: begin and end of its rows, one pair a row.
TIMES: dict[str, tuple[tuple[int, int], ...]] = {
    "no row": (),
    "one row": ((T, T + 1_000),),
    "one row without length": ((T, T),),
    "no length": ((T, T), (T + 10, T + 10), (T + 20, T + 20)),
    "a thread without length": ((T, T + 1_000), (T + 10, T + 10), (T + 20, T + 500), (T + 1_000, T + 1_000)),
    "equal times": ((T, T + 500),) * 4,
    "equal times without length": ((T, T),) * 4,
    "before zero": ((-2_000, -1_000), (-1_500, 500), (0, 0)),
    "apart": ((-T, -T), (0, 10), (1 << 52, 1 << 52)),  # 52 days
}
# Texts that have a form of their own; `definition` as the layout of a schema without entries.
_TEXTS = {"json": "{}", "definition": '{"type": 0, "entries": []}', "type": "json", "schema": None}
_WORDS = re.compile(r"`([^`]+)`")
_KEYS = {
    "process": 0,
    "stack": 1,
    "frame": 1,
    "range": 0,
    "api": 0,
    "event": 0,
    "launch": 0,
    "unit": 0,
    "counter": 0,
}
_KEYS |= {
    "context": 1,
    "stream": 7,
    "device": 0,
    "correlation": 1,
    "task": 0,
    "pid": 100,
    "tid": 100,
    "rank": 0,
}


def odd(path: Path, kind: str, tables: Iterable[str] | None = None) -> Path:
    """Write a report of one of `TIMES`; rows only in `tables`, or in every one."""
    times = TIMES[kind]
    rows: dict[str, list[dict[str, Any]]] = {
        "processes": [_process(times)],
        "threads": [_thread(0, times), _thread(1, times)],
    }
    wanted = set(TABLES if tables is None else tables)
    for table in TABLES.values():
        if table.name in wanted and table.name not in rows:
            rows[table.name] = [
                _row(table, number, *span) for number, span in enumerate(_spans(table, times))
            ]
    edges = [time for span in times for time in span] or [0]
    sources = {name: {"on": True} for name in ("nvtx", "cuda", "osrt", "gc", "gil", "import")}
    facts = Facts("odd", "box", "b", command=["odd"], origin=min(edges), end=max(edges), sources=sources)
    write_part(path, facts, rows)
    return path


def _process(times: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    start, end = times[0] if times else (0, 0)
    about = {"executable": "/bin/odd", "command": "odd", "name": "odd.py", "host": "box"}
    return {
        "process": 0,
        "pid": 100,
        "parent_pid": 1,
        "start": start,
        "end": end,
        "primary": True,
        "exited": True,
        **about,
    }


def _thread(number: int, times: tuple[tuple[int, int], ...]) -> dict[str, Any]:
    return {
        "thread": number,
        "process": 0,
        "tid": 100 + number,
        "name": None,
        "start": times[0][0] if times else 0,
    }


def _spans(table: Table, times: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
    return times if table.edges else times[:1]


def _row(table: Table, number: int, start: int, end: int) -> dict[str, Any]:
    return {column.name: _value(table, column, number, start, end) for column in table.columns}


def _value(table: Table, column: Column, number: int, start: int, end: int) -> Any:
    name = column.name
    if column.clock:
        return end if name == "end" else start
    if name == "id" or (
        table.sort[:1] == (name,) and name != "process" and column.type == "int64" and name not in _KEYS
    ):
        return number
    if name in _TEXTS:
        return _TEXTS[name]
    if name == "frame" and table.name == "frames":
        return number + 1
    if name == "parent":
        return None if number == 0 or table.name != "frames" else number
    if name == "thread":
        return number % 2
    if name in _KEYS and "int" in column.type:
        return _KEYS[name]
    if column.type in ("dict", "string"):
        words = _WORDS.findall(column.text)
        return words[number % len(words)] if words else "odd"
    if column.nullable and number % 2:
        return None
    return {"bool": number % 2 == 0, "float64": float(number), "binary": b"\x00" * 8}.get(column.type, number)
