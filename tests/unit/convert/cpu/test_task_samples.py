"""Samples of asyncio tasks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.convert.cpu.spools import APP, FRAMES, LOAD, MAIN, POLL, READ, TASK, report, sample

AWAITING, RUNNING, OUTER, READY = 0, 0x01, 0x20, 0x40
# A task that awaits others: main → load, which awaits the tasks `poll` and `read`.
TREE: list[dict[str, int]] = [
    {"node": 1, "domain": 4, "name": TASK},
    {"node": 2, "parent": 1, "domain": 2, "name": MAIN, "file": APP, "line": 7, "first_line": 5},
    {"node": 3, "parent": 2, "domain": 4, "name": POLL},
    {"node": 4, "parent": 3, "domain": 2, "name": LOAD, "file": APP, "line": 12, "first_line": 10},
    {"node": 5, "parent": 2, "domain": 4, "name": READ},
]


def of(
    number: int, start: int, end: int, flags: int = AWAITING, stack: int = 4, **more: int
) -> dict[str, int]:
    return sample(start, end, domain=3, cpu=number, flags=flags, stack=stack, **more)


def test_task_samples_have_state_and_function(tmp_path: Path) -> None:
    rows = [
        of(1, 2_000, 6_000, OUTER, stack=2, name=TASK, count=4),
        of(2, 2_000, 3_000, READY, name=POLL),
        of(2, 3_000, 5_000, RUNNING, name=POLL, count=2),
        of(2, 5_000, 6_000, name=POLL),
        of(3, 4_000, 5_000, stack=0),
    ]
    found = report(tmp_path, {"cpu_frame": TREE, "cpu_sample": [*rows, sample(2_500)]})
    assert found.columns(
        "task_samples",
        "start",
        "end",
        "task",
        "number",
        "state",
        "outer",
        "doing",
        "count",
        "weight",
        "stack",
    ) == [
        (2_000, 6_000, "task", 1, "awaiting", True, "poll +1", 4, 4_000, 2),
        (2_000, 3_000, "poll", 2, "ready", False, "load", 1, 1_000, 4),
        (3_000, 5_000, "poll", 2, "running", False, "load", 2, 2_000, 4),
        (4_000, 5_000, None, 3, "awaiting", False, None, 1, 1_000, None),
        (5_000, 6_000, "poll", 2, "awaiting", False, "load", 1, 1_000, 4),
    ]
    assert found.columns("frames", "kind", "function", "file", "address") == [
        ("task", "task", None, None),
        ("python", "main", "/app.py", None),
        ("task", "poll", None, None),
        ("python", "load", "/app.py", None),
        ("task", "read", None, None),
    ]
    assert found.columns("samples", "start") == [(2_500,)]  # those of threads are others
    assert found.notes("damaged-records") == []


def test_a_task_keeps_its_lane_and_another_gets_it_later(tmp_path: Path) -> None:
    rows = [
        of(1, 1, 10),
        of(2, 2, 5),
        of(2, 5, 8),
        of(3, 9, 12),
        of(1, 10, 11),
        of(4, 10, 20),
        of(2, 3, 6, tid=11),
    ]
    found: Any = report(tmp_path, {"cpu_frame": FRAMES, "cpu_sample": rows})
    lanes: dict[tuple[int, int], set[int]] = {}
    for thread, number, depth in found.columns("task_samples", "thread", "number", "depth"):
        lanes.setdefault((thread, number), set()).add(depth)
    main, other = sorted({thread for thread, _ in lanes})
    assert lanes == {(main, 1): {0}, (main, 2): {1}, (main, 3): {1}, (main, 4): {2}, (other, 2): {0}}
