"""The CUDA rows of a drawn timeline: API calls, GPU work, waits, memory, metrics.

`testing.timeline` explains them.

Times of what is drawn are columns, counted from 0; `rows` turns them into the tables of a report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from warplens.model.tables import TABLES

_HEAD = re.compile(
    r"gpu(?P<device>\d+)(?:\.(?P<stream>\d+)|~(?P<metric>.+)|:(?P<memory>memory))|(?P<thread>[^:]*):(?P<kind>api|overhead|sync|um)"
)
_PIECE = re.compile(r"\((?P<op>[^)]*)\)|!(?P<event>[^\s!(]*)|(?P<memory>[+-]\d+(?:#\w+)?)")
_SAMPLE = re.compile(r"(?P<metric>[+-]?\d[\d.]*)")
_COPIES = {
    "HtoD": "Host-to-Device",
    "DtoH": "Device-to-Host",
    "DtoD": "Device-to-Device",
    "PtoP": "Peer-to-Peer",
    "HtoH": "Host-to-Host",
}
_PER_PROCESS = 1 << 32
_UNTOLD = 1_000_000  # correlations of calls that have no label of digits
Extra = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, eq=False)
class Op:
    """One thing in a row of CUDA.

    `table`: where it goes; ops of a process with one `label` belong to one API call.
    """

    process: str
    table: str
    name: str
    label: str | None
    first: int
    last: int
    thread: str | None = None
    device: int | None = None
    stream: int | None = None


@dataclass(frozen=True)
class Scene:
    """The context of the rows: keys of the report, and the push/pop ranges that API calls may be in."""

    processes: Mapping[str, int]
    threads: Mapping[tuple[str, str], int]
    ranges: Sequence[Mapping[str, Any]]
    origin: int
    tick: int
    host: str
    extra: Extra


def read(process: str, head: str, track: str) -> list[Op] | None:
    """Read one line; None if it is no row of CUDA."""
    match = _HEAD.fullmatch(head)
    if match is None:
        return None
    device = None if match["device"] is None else int(match["device"])
    stream = None if match["stream"] is None else int(match["stream"])
    ops = []
    for piece in (_SAMPLE if match["metric"] else _PIECE).finditer(track):
        kind = str(piece.lastgroup)
        name, _, label = piece[kind].split(" ")[0].partition("#")
        name, label = name or piece[kind].strip(), label or ""
        table = _table(match, kind, name)
        last = piece.end() if kind == "op" else piece.start()
        if table == "gpu_metrics":
            name, label = str(match["metric"]), name
        ops.append(
            Op(
                process,
                table,
                name,
                label=label or None,
                first=piece.start(),
                last=last,
                thread=match["thread"] or None,
                device=device,
                stream=stream,
            )
        )
    return ops


def rows(ops: Sequence[Op], scene: Scene) -> dict[str, list[dict[str, Any]]]:
    """Return the rows of every table that the ops go to, each with its ids."""
    numbers = _correlations(ops)
    calls = {(op.process, op.label or ""): op for op in ops if op.table == "cuda_api" and op.label}
    rows_of_table: dict[str, list[dict[str, Any]]] = {}
    made: dict[str, list[tuple[Op, dict[str, Any]]]] = {}
    for op in ops:
        times = {"start": scene.origin + op.first * scene.tick, "end": scene.origin + op.last * scene.tick}
        common = {"process": scene.processes[op.process], **times, "correlation": numbers.get(op)}
        made.setdefault(op.table, []).append((op, {**common, **_ROWS[op.table](op, scene, common)}))
    keys: dict[Op, int] = {}
    for table, pairs in made.items():
        pairs.sort(key=lambda pair: (pair[1]["process"], pair[1]["start"], -pair[0].last))
        counts: dict[int, int] = {}
        for op, row in pairs:
            number = counts[row["process"]] = counts.get(row["process"], -1) + 1
            keys[op] = row["id"] = row["process"] * _PER_PROCESS + number
        rows_of_table[table] = [row for _, row in pairs]
    totals: dict[tuple[int, int | None, str], int] = {}
    for op, row in (pair for pairs in made.values() for pair in pairs):
        if op.table != "cuda_api":
            call = calls.get((op.process, op.label or ""))
            row["api"] = None if call is None else keys[call]
        row.update(scene.extra.get(op.name, {}), **scene.extra.get(f"#{op.label}", {}))
        if op.table == "gpu_memory":
            place = (row["process"], row["device"], row["kind"])
            row["total"] = totals[place] = totals.get(place, 0) + (
                row["bytes"] if row["operation"] == "allocate" else -row["bytes"]
            )
    rows_of_table.update(_hardware(ops, scene))
    return {name: _columns(name, table) for name, table in rows_of_table.items()}


def _table(match: re.Match[str], kind: str, name: str) -> str:
    if match["kind"]:
        return {"api": "cuda_api", "overhead": "overhead", "sync": "syncs", "um": "um_events"}[match["kind"]]
    if match["metric"] or match["memory"]:
        return "gpu_metrics" if match["metric"] else "gpu_memory"
    if kind == "event":
        return "cuda_events"
    return "memcpys" if name in _COPIES else {"memset": "memsets", "graph": "graphs"}.get(name, "kernels")


def _correlations(ops: Iterable[Op]) -> dict[Op, int]:
    """Number the API calls and their work.

    A label of digits is the number itself, others are counted from a million.
    """
    numbers: dict[Op, int] = {}
    labels: dict[tuple[str, str], int] = {}
    untold = count(_UNTOLD)
    for op in ops:
        if op.label is not None and op.table != "gpu_metrics":
            if (op.process, op.label) not in labels:
                labels[op.process, op.label] = int(op.label) if op.label.isdigit() else next(untold)
            numbers[op] = labels[op.process, op.label]
        elif op.table == "cuda_api":
            numbers[op] = next(untold)
    return numbers


def enclosing(thread: int, start: int, ranges: Sequence[Mapping[str, Any]]) -> int | None:
    """Return the id of the innermost push/pop range of a thread around a time."""
    own = [
        row for row in ranges if row["thread"] == thread and row["style"] == "PushPop" and row["task"] is None
    ]
    around = [row for row in own if row["start"] <= start < row["end"]]
    innermost = max(around, key=lambda row: (row["start"], -row["end"], row["id"]), default=None)
    return None if innermost is None else int(innermost["id"])


def _api(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    thread = scene.threads[op.process, op.thread or ""]
    kind = "driver" if re.match(r"cu[A-Z]", op.name) else "runtime"
    return {
        "thread": thread,
        "api": kind,
        "name": op.name,
        "result": 0,
        "range": enclosing(thread, common["start"], scene.ranges),
    }


def _ran(op: Op) -> dict[str, Any]:
    device = op.device or 0
    return {"device": device, "context": device + 1, "stream": op.stream}


def _kernel(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    size = {
        f"{what}_{axis}": 128 if (what, axis) == ("block", "x") else 1
        for what in ("grid", "block")
        for axis in "xyz"
    }
    use = {"registers": 32, "static_shared": 0, "dynamic_shared": 0, "launch_type": "regular"}
    return {**_ran(op), "name": op.name, "demangled": op.name, "mangled": op.name, **size, **use}


def _copy(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    ends = {"H": "Pageable", "D": "Device", "P": "Device"}
    sides = {"source_kind": ends[op.name[0]], "destination_kind": ends[op.name[-1]]}
    return {**_ran(op), "bytes": 1000, "kind": _COPIES[op.name], **sides, "asynchronous": False}


def _set(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    return {**_ran(op), "bytes": 1000, "value": 0, "memory_kind": "Device"}


def _graph(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    return {**_ran(op), "graph": 1, "graph_exec": 2}


def _sync(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": _spaced(op.name), "context": 1}


def _event(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    return {**_ran(op), "event": int(op.name) if op.name.isdigit() else 1}


def _memory(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    operation = "allocate" if op.name.startswith("+") else "free"
    return {
        "device": op.device,
        "context": (op.device or 0) + 1,
        "operation": operation,
        "kind": "Device",
        "address": 0,
        "bytes": abs(int(op.name)),
    }


def _moved(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    migrated = op.name in _COPIES
    return {
        "kind": _spaced(op.name),
        "device": 0,
        "address": 0,
        "bytes": 4096 if migrated else None,
        "faults": None if migrated else 1,
    }


def _overhead(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    return {"thread": scene.threads[op.process, op.thread] if op.thread else None, "kind": _spaced(op.name)}


def _metric(op: Op, scene: Scene, common: Mapping[str, Any]) -> dict[str, Any]:
    uuid = f"GPU-{op.device}"
    return {
        "host": scene.host,
        "gpu": op.device,
        "uuid": uuid,
        "metric": _spaced(op.name),
        "unit": "%",
        "value": float(op.label or 0),
    }


_ROWS: dict[str, Callable[[Op, Scene, Mapping[str, Any]], dict[str, Any]]] = {
    "cuda_api": _api,
    "kernels": _kernel,
    "memcpys": _copy,
    "memsets": _set,
    "graphs": _graph,
    "syncs": _sync,
    "cuda_events": _event,
    "gpu_memory": _memory,
    "um_events": _moved,
    "overhead": _overhead,
    "gpu_metrics": _metric,
}


def _hardware(ops: Sequence[Op], scene: Scene) -> dict[str, list[dict[str, Any]]]:
    """Return the devices, contexts and streams that the picture names.

    `extra` of `gpu0` and `stream 7` changes their columns.
    """
    used = sorted(
        {
            (scene.processes[op.process], op.device)
            for op in ops
            if op.device is not None and op.table != "gpu_metrics"
        }
    )
    devices = [
        {
            "process": process,
            "device": device,
            "name": f"GPU {device}",
            "uuid": f"GPU-{device}",
            **scene.extra.get(f"gpu{device}", {}),
        }
        for process, device in used
    ]
    contexts = [{"process": process, "context": device + 1, "device": device} for process, device in used]
    streams = sorted(
        {
            (scene.processes[op.process], (op.device or 0) + 1, op.stream)
            for op in ops
            if op.stream is not None
        }
    )
    named = [
        {"process": process, "context": context, "stream": stream, **scene.extra.get(f"stream {stream}", {})}
        for process, context, stream in streams
    ]
    return {
        "devices": devices,
        "contexts": contexts,
        "streams": sorted(named, key=lambda row: (row["process"], row["stream"])),
    }


def _columns(table: str, rows_drawn: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out what the table has no column for."""
    wanted = {column.name for column in TABLES[table].columns}
    return [{name: value for name, value in row.items() if name in wanted} for row in rows_drawn]


def _spaced(name: str) -> str:
    return name.replace("_", " ")
