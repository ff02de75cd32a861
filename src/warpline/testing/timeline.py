"""Draw a timeline, get a report: one column is one tick.

    main    |[step        ][step      ]  !save
    main    |  [load ]
    w@io    |     [read         ]
    p1/main |        {async   }
    main    |  <open

A line is `[process/]thread[@domain] |picture`. `[name ]` is a push/pop range from its `[` to just behind its `]`, `{name}` a
start/end range, `!name` a mark, `<name` a range that is still open at the end (`unfinished`). A name ends at the first
space; what follows in the brackets only gives the length. Lines may repeat a thread (nesting, crossing domains).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from warpline.report.manifest import Manifest
from warpline.report.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts, write_part
from warpline.spool import desk

_MACHINE = {"os": "Linux", "kernel": "6", "machine": "x86_64", "cpu": "CPU", "cpus": 2, "memory": 1 << 30}
_Extra = Mapping[str, Mapping[str, Any]]
_PIECE = re.compile(r"\[(?P<push>[^\]]*)\]|\{(?P<start>[^}]*)\}|!(?P<mark>[^\s!<\[{]*)|<(?P<open>[^\s!<\[{]*)")


@dataclass(frozen=True)
class Drawn:
    """One thing in a picture; columns count from 0."""

    process: str
    thread: str
    domain: str | None
    kind: str
    name: str
    first: int
    last: int


def draw(picture: str) -> list[Drawn]:
    """Read a picture; raises ValueError for a line without a `|`."""
    drawn = []
    lines = [line for line in picture.splitlines() if line.strip()]
    width = max((len(line.partition("|")[2]) for line in lines), default=0)
    for line in lines:
        head, bar, track = line.partition("|")
        if not bar:
            raise ValueError(f"a line of a timeline is `thread |picture`: {line!r}")
        process, slash, thread = head.strip().rpartition("/")
        thread, _, domain = thread.partition("@")
        for match in _PIECE.finditer(track):
            kind = str(match.lastgroup)
            name = match[kind].split(" ")[0]
            last = match.start() if kind == "mark" else width if kind == "open" else match.end()
            drawn.append(Drawn(process if slash else "", thread, domain or None, kind, name, match.start(), last))
    return drawn


def timeline(
    path: str | os.PathLike[str],
    picture: str,
    *,
    tick_ns: int = 1_000,
    origin: int = 1_000_000_000,
    part: str = "host-100-1",
    host: str = "host",
    boot_id: str = "boot",
    job: str | None = None,
    realtime_offset: int = 0,
    command: Sequence[str] = ("python", "train.py"),
    exit_status: int | None = 0,
    ranks: Mapping[str, int] | None = None,
    diagnostics: Sequence[Mapping[str, Any]] = (),
    extra: _Extra | None = None,
) -> Manifest:
    """Write the drawn ranges and marks as a part of the report directory `path`; returns its manifest.

    `tick_ns`: ns per column; column 0 is `origin`. `ranks`: process -> rank. `diagnostics`: rows of that table.
    `extra`: range name -> columns to set, such as `{"step": {"color": 0xFF0000, "payload_int": 3, "category": "io"}}`.
    """
    drawn = draw(picture)
    report = Path(path)
    first = _next_part(report, part) << 16
    processes = list(dict.fromkeys(item.process for item in drawn)) or [""]
    threads = list(dict.fromkeys((item.process, item.thread) for item in drawn))
    keys = {name: first + number for number, name in enumerate(processes)}
    numbers = {name: [thread for process, thread in threads if process == name] for name in processes}
    thread_keys = {(p, t): keys[p] * THREADS_PER_PROCESS + numbers[p].index(t) for p, t in threads}
    end = origin + max((item.last for item in drawn), default=0) * tick_ns
    times = {"start": origin, "end": end, "host": host}
    facts = Facts(part, host, boot_id, job, list(command), origin, end, realtime_offset, exit_status, sources={"nvtx": {"on": True}})
    rows_processes = [
        {
            **times,
            "process": keys[name],
            "pid": 100 + number,
            "parent": None if number == 0 else first,
            "parent_pid": 1 if number == 0 else 100,
            "rank": (ranks or {}).get(name),
            "executable": command[0],
            "command": " ".join(command),
            "primary": number == 0,
            "exit_status": exit_status if number == 0 else None,
            "exited": True,
        }
        for number, name in enumerate(processes)
    ]
    rows_threads = [
        {"thread": key, "process": keys[p], "tid": 1000 + index, "name": t, "start": origin}
        for index, ((p, t), key) in enumerate(thread_keys.items())
    ]
    common = [_labels(item, keys, thread_keys, origin, tick_ns, extra or {}) for item in drawn]
    ranges = _ranges([(item, row) for item, row in zip(drawn, common, strict=True) if item.kind != "mark"], origin, tick_ns)
    marks = [row for item, row in zip(drawn, common, strict=True) if item.kind == "mark"]
    marks.sort(key=lambda row: (row["process"], row["start"]))
    counts: dict[int, int] = {}
    for row in marks:
        counts[row["process"]] = counts.get(row["process"], -1) + 1
        row["id"] = row["process"] * RANGES_PER_PROCESS + counts[row["process"]]
    return write_part(
        report,
        facts,
        {
            "processes": rows_processes,
            "threads": rows_threads,
            "nvtx_ranges": ranges,
            "nvtx_marks": marks,
            "diagnostics": list(diagnostics),
            "targets": [{"host": host, "boot_id": boot_id, **_MACHINE}],
        },
    )


def _labels(
    item: Drawn, keys: Mapping[str, int], threads: Mapping[tuple[str, str], int], origin: int, tick: int, extra: _Extra
) -> dict[str, Any]:
    return {
        "process": keys[item.process],
        "thread": threads[item.process, item.thread],
        "start": origin + item.first * tick,
        "domain": item.domain,
        "message": item.name or None,
        **extra.get(item.name, {}),
    }


def _ranges(items: list[tuple[Drawn, dict[str, Any]]], origin: int, tick: int) -> list[dict[str, Any]]:
    items.sort(key=lambda pair: (pair[1]["process"], pair[1]["start"], -pair[0].last))
    rows = []
    counts: dict[int, int] = {}
    for item, row in items:
        process = row["process"]
        counts[process] = counts.get(process, -1) + 1
        flags = {"unfinished": item.kind == "open", "inherited": False, "clipped": False}
        style = "StartEnd" if item.kind == "start" else "PushPop"
        key = process * RANGES_PER_PROCESS + counts[process]
        rows.append({"id": key, **row, "end": origin + item.last * tick, "style": style, **flags})
    for process in counts:
        _place([row for row in rows if row["process"] == process and row["style"] == "PushPop"], nested=True)
        _place([row for row in rows if row["process"] == process and row["style"] == "StartEnd"], nested=False)
    return rows


def _place(rows: list[dict[str, Any]], *, nested: bool) -> None:
    start = np.array([row["start"] for row in rows], np.int64)
    end = np.array([row["end"] for row in rows], np.int64)
    if nested:
        depth, parent = desk.nest(np.array([row["thread"] for row in rows], np.int64), start, end)
        for row, lane, above in zip(rows, depth.tolist(), parent.tolist(), strict=True):
            row["depth"], row["parent"] = lane, None if above < 0 else rows[above]["id"]
        return
    for row, lane in zip(rows, desk.lanes(start, end).tolist(), strict=True):
        row["depth"], row["parent"] = lane, None


def _next_part(report: Path, part: str) -> int:
    """The number that the writer will claim: parts of a drawn report are written one after the other."""
    claimed = sorted((report / "manifest.d").glob("part-*"), key=lambda path: int(path.name[5:]))
    for path in claimed:
        if path.read_text(encoding="utf-8").strip() == f"{part}.json":
            return int(path.name[5:])
    return len(claimed)
