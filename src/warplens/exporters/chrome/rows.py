"""Events of rows beside those of ranges (CUDA, the CPU side) as Chrome trace events.

Each row is a thread, each GPU of a process a process.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa

from warplens.analysis.dictionaries import codes
from warplens.exporters.chrome.json_text import arguments, microseconds, named, sort_index
from warplens.exporters.events import Events
from warplens.exporters.rows import Row
from warplens.exporters.tracks import Lanes, Tracks

# Above the ids of processes, threads and tasks; viewers read them as 32 bits.
_GPUS = 1 << 25
_ROWS = (1 << 25) + (1 << 24)
_OVERLAP = 1 << 26


def row_events(
    tracks: Tracks, rows: list[Row], pieces: Iterator[Events], origin: int, first: int
) -> Iterator[list[str]]:
    """Yield the events of rows, and names for these; `first`: how many rows others have taken."""
    places = _places(rows, tracks, first)
    yield list(_names(rows, tracks, places))
    crossing: set[tuple[int, int]] = set()
    with Lanes(len(rows)) as lanes:
        for piece in pieces:
            lane = [0] * len(piece.id)
            if piece.end is not None:
                lane = lanes.place(piece.row, piece.id, piece.parent, piece.start, piece.end).tolist()
            yield _lines(piece, lane, places, origin=origin, crossing=crossing)
    for row, lane_number in sorted(crossing):
        pid, tid = places[row]
        yield [
            named("thread_name", pid, tid + lane_number * _OVERLAP, name=f"{rows[row].full} (overlapping)"),
            sort_index(pid, tid + lane_number * _OVERLAP, first + row),
        ]


def _places(rows: list[Row], tracks: Tracks, first: int) -> list[tuple[int, int]]:
    """Return process and thread id of each row."""
    top: list[int] = []
    places = []
    for index, row in enumerate(rows):
        top.append(index if row.above is None else top[row.above])
        pid = _GPUS + first + top[index] if row.gpu else tracks.processes[row.process].pid
        places.append((pid, _ROWS + first + index))
    return places


def _names(rows: list[Row], tracks: Tracks, places: list[tuple[int, int]]) -> Iterator[str]:
    for index, (row, (pid, tid)) in enumerate(zip(rows, places, strict=True)):
        if row.gpu and row.above is None:
            yield named("process_name", pid, None, name=f"{tracks.processes[row.process].name} {row.name}")
        elif row.full:
            yield named("thread_name", pid, tid, name=row.full)
            if row.gpu:
                yield sort_index(pid, tid, index)


def _lines(
    piece: Events,
    lanes: list[int],
    places: list[tuple[int, int]],
    origin: int,
    crossing: set[tuple[int, int]],
) -> list[str]:
    numbers, texts = codes(piece.name)
    category = piece.kind.category
    heads = [f'"name":{json.dumps(text or "")},"cat":"{category}"' for text in [*texts.to_pylist(), None]]
    starts = (piece.start - origin).tolist()
    ends = starts if piece.end is None else (piece.end - origin).tolist()
    arrow = '"ph":"s"' if piece.starts else '"ph":"f","bp":"e"'
    lines = []
    columns = (
        numbers.tolist(),
        piece.row.tolist(),
        lanes,
        starts,
        ends,
        piece.arrow.tolist(),
        _details(piece),
    )
    for number, row, lane, start, end, call, said in zip(*columns, strict=True):
        pid, tid = places[row]
        if lane:
            crossing.add((row, lane))
            tid += lane * _OVERLAP
        where = f'"ts":{microseconds(start)},"pid":{pid},"tid":{tid}'
        if piece.end is None:
            lines.append(f'{{"ph":"i","s":"t",{heads[number]},{where}{said}}}')
        else:
            lines.append(f'{{"ph":"X",{heads[number]},{where},"dur":{microseconds(end - start)}{said}}}')
        if call >= 0:
            lines.append(f'{{{arrow},"name":"launch","cat":"cuda_launch","id":"{call}",{where}}}')
    return lines


def _details(piece: Events) -> Iterator[str]:
    columns = []
    for name, column in piece.details:
        head = f"{json.dumps(name)}:"
        columns.append(
            _texts(column, head)
            if _is_text(column)
            else arguments(column, _writer(head, column)) or [""] * len(column)
        )
    return (
        f',"args":{{{",".join(filter(None, detail))}}}' if any(detail) else ""
        for detail in _together(columns, len(piece.id))
    )


def _together(columns: list[list[str]], rows: int) -> Iterator[tuple[str, ...]]:
    return iter(zip(*columns, strict=True)) if columns else iter([()] * rows)


def _is_text(column: pa.Array) -> bool:
    return bool(pa.types.is_dictionary(column.type) or pa.types.is_string(column.type))


def _texts(column: pa.Array, head: str) -> list[str]:
    """Write a column of texts, each different one once."""
    numbers, texts = codes(column)
    written = [*(head + json.dumps(text) for text in texts.to_pylist()), ""]
    return [written[number] for number in numbers.tolist()]


def _writer(head: str, column: pa.Array) -> Callable[[Any], str]:
    if pa.types.is_boolean(column.type):
        return lambda value: head + ("true" if value else "false")
    if pa.types.is_floating(column.type):
        return lambda value: head + (f"{value:.6g}" if math.isfinite(value) else f'"{value}"')
    return lambda value: f"{head}{value}"
