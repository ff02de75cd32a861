"""What filled a stretch of a thread's time: drawn cases, and random reports against a look at each tick in plain Python."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tests.support.thorough import few
from tests.unit.stats.cpu_story import LENGTH, ORIGIN, THREADS, tell
from warplens.analysis.cpu.culprits import (
    API,
    CPU,
    FUNCTION,
    GC,
    GIL,
    IMPORT,
    OP,
    OS,
    RANGE,
    UNKNOWN,
    culprits,
    filled,
    pieces,
)
from warplens.analysis.flatten import innermost, outermost
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline


def asked(path: Path, picture: str, begin: int, end: int, **more: Any) -> list[tuple[str, str, int]]:
    """What filled the ticks from `begin` to `end` of the first thread."""
    timeline(path / "r.warplens", picture, tick_ns=1, origin=0, **more)
    with open_report(path / "r.warplens") as report:
        thread = report.table("threads", ["thread"]).column(0)[0].as_py()
        return [(one.kind, one.name, one.time) for one in culprits(report, thread, begin, end)]


def test_the_most_specific_has_the_time(tmp_path: Path) -> None:
    found = asked(
        tmp_path,
        """
        main        |[step                                                        ]
        main:api    | (cudaMalloc   )
        main:gc     |     (2 )
        main:os     |       (ioctl       )   (read:/a )
        main:gil    |                           (wait    )
        main:import |                                           (numpy    )
        main:os     |                                             (open:/b)
        """,
        0,
        62,
    )
    assert found == [
        (RANGE, "step", 18),  # around all of it, where nothing else says anything
        (API, "cudaMalloc", 11),
        (IMPORT, "numpy", 11),
        (GIL, "GIL", 10),
        (OS, "ioctl", 5),
        (GC, "generation 2", 4),
        (OS, "read", 3),
    ]


def test_a_range_around_says_where_and_a_sample_what(tmp_path: Path) -> None:
    picture = """
        main        |[step                      ]
        main        |       [load   ]
        main:python |  (main;work                  )
    """
    found = asked(tmp_path, picture, 4, 24)
    assert found == [(FUNCTION, "work (app.py)", 11), (RANGE, "load", 9)]


def test_a_package_stands_under_the_line_that_called_it(tmp_path: Path) -> None:
    picture = """
        main:python |(main;train:12;save;copy     )(main;train:12;load)(boot;copy     )
    """
    timeline(
        tmp_path / "r.warplens",
        picture,
        tick_ns=1_000,
        origin=ORIGIN,
        cpu={
            "main": {"file": "/home/me/app.py"},
            "train": {"file": "/home/me/app.py"},
            "save": {"file": "/venv/lib/python3.12/site-packages/torch/serialization.py"},
            "copy": {"file": "/venv/lib/python3.12/site-packages/torch/storage.py"},
            "load": {"file": "/venv/lib/python3.12/site-packages/numpy/io.py"},
            "boot": {"file": "/venv/lib/python3.12/site-packages/torch/threads.py"},
        },
    )
    with open_report(tmp_path / "r.warplens") as report:
        (thread,) = report.sql("SELECT thread FROM threads").column(0).to_pylist()
        known = {
            culprit.name: culprit.time // 1_000
            for culprit in culprits(report, thread, ORIGIN, ORIGIN + 67_000)
        }
    assert known.pop("", 0) <= 1
    assert known == {
        "train (app.py:12), in torch": 30,
        "train (app.py:12), in numpy": 20,
        "boot (threads.py), in torch": 16,
    }


def test_the_names_of_xla_lose_their_numbers(tmp_path: Path) -> None:
    picture = """
        main@TSL |[XlaCompile:#module=jit_step,program_id=1#][XlaCompile:#module=jit_step,program_id=2#]
    """
    timeline(tmp_path / "r.warplens", picture, tick_ns=1_000, origin=ORIGIN)
    with open_report(tmp_path / "r.warplens") as report:
        (thread,) = report.sql("SELECT thread FROM threads").column(0).to_pylist()
        assert {culprit.name for culprit in culprits(report, thread, ORIGIN - 1, ORIGIN + 84_000)} >= {
            "TSL:XlaCompile"
        }


def test_the_innermost_of_ranges_ops_and_functions(tmp_path: Path) -> None:
    picture = """
        main         |  [outer                 ]
        main@pytorch |       [aten::add   ]
        main@io      |          [read ]
        main:call    |                            (work )
    """
    found = asked(tmp_path, picture, 0, 40)
    assert found == [
        (RANGE, "outer", 10),
        (UNKNOWN, "", 9),
        (RANGE, "io:read", 7),
        (OP, "aten::add", 7),
        (FUNCTION, "work (app.py)", 7),
    ]


def test_operations_that_pytorch_numbers_are_one(tmp_path: Path) -> None:
    names = {
        "add1": {"message": "aten::add, seq = 7, op_id = 12"},
        "add2": {"message": "aten::add, op_id = 13, sizes = [[2]]"},
    }
    assert asked(tmp_path, "main |[add1   ][add2    ]", 0, 22, extra=names) == [
        (OP, "aten::add", 19),
        (UNKNOWN, "", 3),
    ]


def test_another_thread_and_nothing_at_all(tmp_path: Path) -> None:
    picture = """
        main  |       !m
        other |[all           ]
    """
    assert asked(tmp_path, picture, 2, 9) == [(UNKNOWN, "", 7)]


def test_no_stretch_and_an_empty_one(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ]", tick_ns=1, origin=0)
    with open_report(tmp_path / "r.warplens") as report:
        none = pa.table(
            {
                "thread": pa.array([], pa.int64()),
                "start": pa.array([], pa.int64()),
                "end": pa.array([], pa.int64()),
            }
        )
        assert filled(report, none).num_rows == 0
        assert filled(report, pa.table({"thread": [0], "start": [2], "end": [2]})).column_names == [
            "stretch",
            "kind",
            "name",
            "time",
        ]


# --- against each moment, one by one ----------------------------------------------------------------------------------------------------


def layers(report: Report, thread: int) -> dict[str, list[dict[str, Any]]]:
    rows = {
        name: [
            row
            for row in report.table(name).to_pylist()
            if row["thread"] == thread and row["end"] > row["start"]
        ]
        for name in (
            "gc",
            "gil",
            "cuda_api",
            "imports",
            "osrt",
            "thread_states",
            "nvtx_ranges",
            "python_calls",
            "samples",
        )
    }
    rows["gil"] = [row for row in rows["gil"] if row["state"] == "wait"]
    rows["thread_states"] = [
        row for row in rows["thread_states"] if row["state"] == "runnable" and row["exact"]
    ]
    rows["python_calls"] = [row for row in rows["python_calls"] if row["kind"] == "function"]
    rows["nvtx_ranges"] = [
        row for row in rows["nvtx_ranges"] if row["style"] == "PushPop" and row["task"] is None
    ]
    return rows


def kind_at(rows: dict[str, list[dict[str, Any]]], time: int, begin: int, end: int) -> str:
    """The kind that has a moment, of a stretch from `begin` to `end`; samples are left to what remains."""
    here = {name: [row for row in table if row["start"] <= time < row["end"]] for name, table in rows.items()}
    for name, kind in (
        ("gc", GC),
        ("gil", GIL),
        ("cuda_api", API),
        ("imports", IMPORT),
        ("osrt", OS),
        ("thread_states", CPU),
    ):
        if here[name]:
            return kind
    inner = max(
        [
            (row["start"], -row["end"], index, row, kind)
            for name, kind in (("nvtx_ranges", RANGE), ("python_calls", FUNCTION))
            for index, row in enumerate(here[name])
        ],
        default=None,
        key=lambda found: found[:2],
    )
    if inner is not None and (inner[3]["start"] > begin or inner[3]["end"] < end):
        return inner[4]
    return "rest"


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(4), 2))
def test_every_moment_of_random_reports(tmp_path: Path, seed: int) -> None:
    report = tell(tmp_path, seed=seed, rows=60, python_calls=[])
    rng = random.Random(seed)
    asked_for = []
    for _ in range(40):
        begin = ORIGIN + rng.randrange(-2_000, LENGTH)
        asked_for.append(
            {
                "thread": rng.choice(THREADS),
                "start": begin,
                "end": begin + rng.choice((0, 7, 300, 5_000, LENGTH)),
            }
        )
    stretches = pa.Table.from_pylist(asked_for)
    found = pieces(report, stretches).to_pylist()
    sums = filled(report, stretches).to_pylist()
    known = {thread: layers(report, thread) for thread in THREADS}
    for number, stretch in enumerate(asked_for):
        own = sorted((row for row in found if row["stretch"] == number), key=lambda row: row["start"])
        edges = [stretch["start"], *(row["end"] for row in own)]
        assert [row["start"] for row in own] == edges[:-1], "pieces follow each other"
        assert edges[-1] == stretch["end"], "and fill the stretch"
        assert (
            sum(row["time"] for row in sums if row["stretch"] == number) == stretch["end"] - stretch["start"]
        )
        for row in own:
            for time in {row["start"], (row["start"] + row["end"]) // 2, row["end"] - 1}:
                kind = kind_at(known[stretch["thread"]], time, stretch["start"], stretch["end"])
                assert row["kind"] == kind or kind == "rest", (row, kind, stretch)
                if kind == "rest":
                    assert row["kind"] in (FUNCTION, "native function", UNKNOWN, RANGE)


@pytest.mark.slow
def test_a_small_part_of_a_report_is_read_alone(tmp_path: Path) -> None:
    report = tell(tmp_path, seed=7, rows=60, python_calls=[])
    rng = random.Random(7)
    starts = [ORIGIN + rng.randrange(LENGTH) for _ in range(12)]
    stretches = pa.table(
        {
            "thread": [rng.choice(THREADS) for _ in starts],
            "start": starts,
            "end": [start + 900 for start in starts],
        }
    )
    together = filled(report, stretches).to_pylist()
    alone = [
        {**row, "stretch": number}
        for number in range(len(starts))
        for row in filled(report, stretches.slice(number, 1)).to_pylist()
    ]

    def key(row: dict[str, Any]) -> tuple[Any, ...]:
        return row["stretch"], row["kind"], row["name"], row["time"]

    assert sorted(alone, key=key) == sorted(together, key=key)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("crossing", [False, True])
def test_flattened_intervals(seed: int, crossing: bool) -> None:
    rng = np.random.default_rng(seed)
    size = int(rng.integers(0, 40))
    start = rng.integers(0, 60, size)
    end = start + rng.integers(0, 30, size)
    if not crossing:  # keep what nests
        chosen: list[tuple[int, int]] = []
        for low, high in zip(start.tolist(), end.tolist(), strict=True):
            if not any(a < low < b < high or low < a < high < b for a, b in chosen):
                chosen.append((low, high))
        start, end = (np.array([pair[side] for pair in chosen], np.int64) for side in (0, 1))
    order = np.lexsort((-end, start))
    start, end = start[order].astype(np.int64), end[order].astype(np.int64)
    rows, begins, ends = innermost(start, end)
    seen = {
        time: int(row) for row, low, high in zip(rows, begins, ends, strict=True) for time in range(low, high)
    }
    for time in range(95):
        here = [row for row in range(len(start)) if start[row] <= time < end[row]]
        assert seen.get(time) == (max(here) if here else None)
    assert np.all(begins[1:] >= ends[:-1])
    rows, begins, ends = outermost(start, end)
    assert sum(ends - begins) == len(seen)
    assert np.all(begins[1:] >= ends[:-1])
