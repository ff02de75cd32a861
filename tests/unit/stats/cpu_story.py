"""A drawn report with every table of the CPU side: two processes with two threads each, at random but for what a seed fixes."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

Row = dict[str, Any]
ORIGIN, TICK = 1_000_000, 1_000
LENGTH = 60 * TICK
# `step` and `load` are ranges of the main thread of the first process and of its loader; the other process has a `step` of its own.
PICTURE = """
    main    |[step            ]   [step             ]   [save  ]
    main@io |    [read ]             [read ]
    loader  |   [load         ]   [load      ]
    1/main  |      [step                   ]
    1/pool  |!start
    windows |        [start                           ]
"""
THREADS = (0, 1, 1 << 24, (1 << 24) + 1)
FUNCTIONS = ("main", "train", "load", "fib", "decode")
CALLS = ("read", "write", "poll", "pthread_mutex_lock", "openat")


def tell(path: Path, seed: int = 1, rows: int = 300, **tables: list[Row]) -> Report:
    """Write and open the report; `tables` come in place of what would be made up."""
    rng = random.Random(seed)
    made = {
        "frames": _frames(rng),
        "samples": _happening(rng, rows, _sample),
        "osrt": _happening(rng, rows, _call),
        "file_access": _happening(rng, rows, _access),
        "gc": _happening(
            rng,
            rows,
            lambda rng, row: {
                "generation": rng.randrange(3),
                "collected": rng.randrange(100),
                "uncollectable": 0,
            },
        ),
        "thread_states": _happening(rng, rows, _state),
        "gil": _lock(rng),
        "imports": _nested(rng, _import),
        "python_calls": _nested(rng, _python_call),
        **tables,
    }
    timeline(path / "r.warplens", PICTURE, tick_ns=TICK, origin=ORIGIN, tables=made, ranks={"": 0, "1": 1})
    return open_report(path / "r.warplens")


def _happening(rng: random.Random, count: int, more: Any) -> list[Row]:
    """Rows of all threads in the order a table has them, with ids that grow."""
    rows: list[Row] = []
    for _ in range(count):
        thread, start = rng.choice(THREADS), ORIGIN + rng.randrange(LENGTH)
        end = min(start + rng.choice((0, 50, 700, 9_000)), ORIGIN + LENGTH)
        rows.append({"process": thread >> 24, "thread": thread, "start": start, "end": end})
    rows.sort(key=lambda row: (row["process"], row["start"]))
    return [
        {"id": (row["process"] << 32) + number, **row, **more(rng, row)} for number, row in enumerate(rows)
    ]


def _frames(rng: random.Random) -> list[Row]:
    rows: list[Row] = []
    for process in (0, 1):
        for number in range(40):
            key = (process << 32) + number + 1
            mine = [row["frame"] for row in rows if row["process"] == process]
            row: Row = {
                "frame": key,
                "process": process,
                "parent": rng.choice([None, *mine]) if number else None,
                "depth": 0,
            }
            name = rng.choice(FUNCTIONS)
            if rng.random() < 0.7:
                row |= {
                    "kind": "python",
                    "function": name,
                    "file": f"/src/{name}.py",
                    "first_line": 10,
                    "line": rng.randrange(10, 13),
                }
            else:
                row |= {
                    "kind": "native",
                    "function": f"c_{name}",
                    "module": "libx.so",
                    "file": "x.c",
                    "line": rng.randrange(1, 3),
                }
            rows.append(row)
    return rows


def _sample(rng: random.Random, row: Row) -> Row:
    count = rng.randrange(1, 20)
    stack = rng.choice([None, *((row["process"] << 32) + number + 1 for number in range(40))])
    kind = rng.choice(("python", "python", "native"))
    ran = kind == "native" or rng.random() < 0.6
    return {"kind": kind, "count": count, "weight": count * 1_000_000, "on_cpu": ran, "stack": stack}


def _call(rng: random.Random, row: Row) -> Row:
    failed = rng.random() < 0.1
    about = {
        "target": rng.choice((None, "/data/a", "10.0.0.1:80")),
        "bytes": rng.choice((None, 512)),
        "object": rng.choice((None, 0x7F00)),
    }
    return {
        "name": rng.choice(CALLS),
        "group": "file",
        "result": -1 if failed else 0,
        "error": "EAGAIN" if failed else None,
        **about,
    }


def _access(rng: random.Random, row: Row) -> Row:
    operation = rng.choice(("open", "read", "write", "sync"))
    about = {
        "path": rng.choice((None, "/data/a", "/data/b")),
        "bytes": rng.choice((None, 0, 4096)),
        "error": rng.choice((None, None, "EIO")),
    }
    return {
        "name": {"open": "openat", "sync": "fsync"}.get(operation, operation),
        "operation": operation,
        **about,
    }


def _state(rng: random.Random, row: Row) -> Row:
    state = rng.choice(("running", "runnable", "blocked"))
    ran = {"cpu": rng.randrange(2)} if state == "running" else {}
    return {
        "state": state,
        "exact": row["process"] == 0,
        "reason": rng.choice(("poll", "GIL", None)) if state == "blocked" else None,
        **ran,
    }


def _lock(rng: random.Random) -> list[Row]:
    """Holds of one thread after the other; each waits before it holds, and sums of short ones."""
    rows: list[Row] = []
    for process in (0, 1):
        mine: list[Row] = []
        now = ORIGIN
        while now < ORIGIN + LENGTH:
            thread = (process << 24) + rng.randrange(2)
            place = {
                "process": process,
                "thread": thread,
                "interpreter": 0,
                "held": 0,
                "waited": 0,
                "holds": 0,
                "waits": 0,
            }
            end = min(now + rng.choice((10, 400, 2_000)), ORIGIN + LENGTH)
            waited = rng.choice((0, 100, 1_500))
            mine.append({**place, "start": now, "end": end, "state": "hold", "held": end - now, "holds": 1})
            if waited:
                start = max(now - waited, ORIGIN)
                mine.append(
                    {**place, "start": start, "end": now, "state": "wait", "waited": now - start, "waits": 1}
                )
            if rng.random() < 0.2:
                sums = {"held": 50, "waited": 20, "holds": 5, "waits": 2}
                mine.append({**place, "start": now, "end": now + 100, "state": "brief", **sums})
            now = end + rng.choice((0, 50))
        mine.sort(key=lambda row: row["start"])
        rows += [{"id": (process << 32) + number, **row} for number, row in enumerate(mine)]
    return rows


def _nested(rng: random.Random, more: Any) -> list[Row]:
    """Calls that nest on each thread, some in calls of the same name."""
    rows: list[Row] = []
    for process in (0, 1):
        mine: list[Row] = []
        for thread in (process << 24, (process << 24) + 1):
            _calls(rng, {"process": process, "thread": thread}, ORIGIN, ORIGIN + LENGTH, None, 0, mine)
        mine.sort(key=lambda row: row["start"])
        ids = {row["key"]: (process << 32) + number for number, row in enumerate(mine)}
        rows += [{**row, "id": ids[row["key"]], "parent": ids.get(row["above"]), **more(rng)} for row in mine]
    return [{name: value for name, value in row.items() if name not in ("key", "above")} for row in rows]


def _calls(
    rng: random.Random, place: Row, first: int, last: int, above: int | None, depth: int, rows: list[Row]
) -> None:
    now = first
    while depth < 6 and now + 10 < last:
        start = now + rng.randrange(0, 2_000 >> depth)
        end = min(start + rng.randrange(1, 9_000 >> depth), last)
        if start >= end:
            return
        key = len(rows)
        rows.append({**place, "start": start, "end": end, "depth": depth, "key": key, "above": above})
        _calls(rng, place, start, end, key, depth + 1, rows)
        now = end


def _import(rng: random.Random) -> Row:
    return {
        "name": rng.choice(("numpy", "numpy.core", "numpy.linalg", "json", "json.decoder")),
        "self": 0,
        "failed": rng.random() < 0.1,
    }


def _python_call(rng: random.Random) -> Row:
    kind = rng.choice(("function", "function", "function", "task"))
    name = rng.choice(FUNCTIONS)
    return {
        "kind": kind,
        "name": name,
        "file": f"/src/{name}.py",
        "line": 10,
        "clipped": False,
        "failed": rng.choice((None, False, True)),
    }
