"""Samples and thread states."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.convert.cpu.spools import (
    FRAMES,
    MAIN,
    NATIVE,
    NOWHERE,
    POLL,
    SEM_WAIT,
    TASK,
    call,
    report,
    sample,
    thread,
)
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw

LATEST = 1 << 62
RUNNING, RUNNABLE, BLOCKED = 1, 2, 3
TASKS = 3  # a domain of samples


def state(kind: int, start: int, end: int, **more: int) -> dict[str, int]:
    return {"domain": kind, "start": start, "end": end, "tid": 10, "cpu": NOWHERE, **more}


def test_samples_have_count_stack_and_state(tmp_path: Path) -> None:
    rows = [
        sample(5_000, 8_000, count=4, flags=0x03, name=TASK),
        sample(2_000, tid=11, domain=NATIVE, cpu=1, flags=0x04 | 0x08, stack=1),
        sample(9_000, stack=0),
    ]
    found = report(tmp_path, {"cpu_frame": FRAMES, "cpu_sample": rows})
    assert found.columns(
        "samples",
        "id",
        "start",
        "end",
        "kind",
        "count",
        "weight",
        "on_cpu",
        "gil",
        "cpu",
        "stack",
        "task",
        "late",
        "cut",
    ) == [
        (0, 2_000, 2_000, "native", 1, 1_000, True, None, 1, 1, None, True, True),
        (1, 5_000, 8_000, "python", 4, 4_000, True, True, None, 2, "task", None, False),
        (2, 9_000, 9_000, "python", 1, 1_000, False, False, None, None, None, None, False),
    ]
    assert found.notes("lost-stacks") == []


def test_numbers_that_are_too_large_stay_numbers(tmp_path: Path) -> None:
    rows = [
        sample(10, LATEST, count=0xFFFFFFFF, interval=(1 << 64) - 1),
        sample(20, count=0xFFFFFFFF, interval=1 << 20, cpu=0xFFFFFFFE),
    ]
    found = report(tmp_path, {"cpu_sample": rows})
    assert found.columns("samples", "weight", "cpu") == [(LATEST, None), (0xFFFFFFFF << 20, None)]


def test_instructions_have_the_names_of_their_interpreter(tmp_path: Path) -> None:
    """A name that came twice or has no text, and forms that are not known, do no harm."""
    texts = {1: "LOAD_ATTR", 2: "LOAD_ATTR_SLOT", 3: "POP_TOP"}
    told = [(1, 10 + 256), (2, 11 + 512), (3, 12), (9, 13), (1, 10 + 256), (3, 12 + 256 * 77), (3, -1)]
    notices = [{"notice": 22, "name": name, "value": value, "start": 500} for name, value in told]
    rows = [sample(1_000 + opcode, cpu=opcode) for opcode in (10, 11, 12, 13, 200, NOWHERE)] + [
        sample(9_000, domain=NATIVE, cpu=10)
    ]
    found = report(tmp_path, {"cpu_sample": rows, "cpu_notice": notices}, texts=texts)
    assert found.columns("samples", "opcode", "specialised", "cpu") == [
        ("LOAD_ATTR", False, None),
        ("LOAD_ATTR_SLOT", True, None),
        ("POP_TOP", None, None),
        ("13", None, None),
        ("200", None, None),
        (None, None, 10),
        (None, None, None),
    ]
    assert found.notes("cpu-notice") == []


def test_impossible_times_and_kinds_are_left_out(tmp_path: Path) -> None:
    rows = [
        sample(0),
        sample(20, 10),
        sample(LATEST + 1),
        sample(30, (1 << 64) - 1),
        sample(40, domain=7),
        sample(50),
    ]
    found = report(tmp_path, {"cpu_sample": rows})
    assert found.columns("samples", "start") == [(50,)]
    assert found.notes("damaged-records")[0]["count"] == 4


def test_the_range_around_a_sample(tmp_path: Path) -> None:
    ranges = sw.records(0, [sw.event("range", 1_200, 1_400, MAIN), sw.event("range", 1_000, 2_000, MAIN)])
    rows = [sample(start) for start in (999, 1_000, 1_300, 1_400, 1_999, 2_000)] + [sample(1_300, tid=11)]
    found = report(tmp_path, {"cpu_sample": rows}, thread(10), ranges)
    assert found.columns("samples", "start", "range") == [
        (999, None),
        (1_000, 0),
        (1_300, 1),
        (1_300, None),
        (1_400, 0),
        (1_999, 0),
        (2_000, None),
    ]
    assert len({row["thread"] for row in found["samples"]}) == 2


def test_windows_choose_samples(tmp_path: Path) -> None:
    rows = [sample(100, 900), sample(100, 1_001), sample(1_500), sample(1_999, 5_000), sample(2_000)]
    found = report(
        tmp_path, {"cpu_sample": rows}, control=sw.control([(1_000, 2_000, 1, 1, 0)]), end_ns=9_000
    )
    assert found.columns("samples", "start", "end") == [(100, 1_001), (1_500, 1_500), (1_999, 5_000)]


def test_states_say_why_threads_were_blocked(tmp_path: Path) -> None:
    wide = {
        "cpu_state": [
            state(RUNNING, 1_000, 1_200, cpu=3),
            state(BLOCKED, 1_200, 1_800),
            state(RUNNABLE, 1_800, 1_900),
            state(BLOCKED, 2_000, 2_100),
            state(BLOCKED, 2_200, 2_300),
            state(BLOCKED, 3_100, 3_200, flags=1),
            state(BLOCKED, 1_250, 1_300, tid=11),
        ],
        "os_call": [
            call(1_100, 1_900),
            call(2_150, 2_400, SEM_WAIT),
            call(3_000, 4_000, SEM_WAIT),
            call(3_050, 3_150, POLL),
        ],
        "gil": [{"domain": 2, "start": 2_190, "end": 2_390, "tid": 10}],
    }
    found = report(tmp_path, wide)
    assert found.columns("thread_states", "start", "state", "cpu", "exact", "reason") == [
        (1_000, "running", 3, True, None),
        (1_200, "blocked", None, True, "poll"),
        (1_250, "blocked", None, True, None),
        (1_800, "runnable", None, True, None),
        (2_000, "blocked", None, True, None),
        (2_200, "blocked", None, True, "GIL"),
        (3_100, "blocked", None, False, "poll"),
    ]


@pytest.mark.parametrize("rows", [1, 2, 3, 50])
def test_reasons_and_ranges_do_not_depend_on_how_rows_are_grouped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    wide = {
        "cpu_state": [state(BLOCKED, start, start + 50) for start in range(100, 3_000, 100)],
        "os_call": [call(start, start + 120, POLL + start // 500 % 2) for start in range(50, 3_000, 250)],
        "cpu_sample": [sample(start) for start in range(10, 3_000, 170)]
        + [sample(start, domain=TASKS) for start in range(20, 3_000, 90)],
        "gil": [
            {"domain": 2, "start": start, "end": start + 60, "tid": 10} for start in range(2_990, 100, -400)
        ],
        "python_span": [
            {"domain": kind, "start": start, "end": start + length, "tid": 10, "name": MAIN, "file": MAIN}
            for length in (
                2_900,
                300,
                40,
            )  # what is around others is written after them, and so are imports between calls
            for kind in (1, 3)
            for start in range(60, 3_000, length + 7)
        ],
    }
    ranges = sw.records(0, [sw.event("range", start, start + 260, MAIN) for start in range(1, 3_000, 300)])
    names = [
        ("thread_states", "id", "start", "reason"),
        ("samples", "id", "start", "range"),
        ("task_samples", "id", "start", "depth"),
        ("osrt", "id", "start", "range"),
        ("gil", "id", "start", "waited"),
        ("python_calls", "id", "start", "depth", "parent", "range"),
        ("imports", "id", "start", "depth", "parent", "self"),
    ]
    whole = report(tmp_path / "whole", wide, thread(10), ranges)
    monkeypatch.setattr("warplens.convert.place.ROWS_PER_GROUP", rows)
    monkeypatch.setattr("warplens.convert.cpu.chosen._SAMPLE_EVERY", 1)
    monkeypatch.setattr("warplens.convert.following.ROWS_PER_SLICE", 2 * rows)
    pieces = report(tmp_path / "pieces", wide, thread(10), ranges)
    for columns in names:
        assert pieces.columns(*columns) == whole.columns(*columns)
        assert len(set(whole.columns(*columns))) > 6
    assert len(set(whole.columns("thread_states", "reason"))) == 4


def test_a_day_of_ticks_and_holds_adds_up(tmp_path: Path) -> None:
    """More than fits into 32 bits: in a record, in its sum, and in ns."""
    day = 86_400 * 10**9
    ticks = [
        sample(1_000 + number * day, 1_000 + number * day + day - 1, count=86_400_000, interval=1_000_000)
        for number in range(60)
    ]
    holds = [
        {
            "domain": 3,
            "start": 1_000 + number * day,
            "end": 1_000 + (number + 1) * day,
            "tid": 10,
            "holds": 0xFFFFFFFF,
            "held_ns": day,
        }
        for number in range(3)
    ]
    calls = [call(1_000 + number * day, 1_000 + (number + 1) * day) for number in range(2)]
    found = report(tmp_path, {"cpu_frame": FRAMES, "cpu_sample": ticks, "gil": holds, "os_call": calls})
    assert sum(count for (count,) in found.columns("samples", "count")) == 60 * 86_400_000
    with open_report(tmp_path / "r.warplens") as opened:
        assert opened.sql("SELECT sum(weight)::HUGEINT::VARCHAR AS ns FROM samples").to_pylist() == [
            {"ns": str(60 * day)}
        ]
        (sums,) = opened.sql(
            "SELECT sum(holds)::BIGINT AS holds, sum(held)::BIGINT AS held FROM gil"
        ).to_pylist()
        assert sums == {"holds": 3 * 0xFFFFFFFF, "held": 3 * day}
        assert opened.sql('SELECT sum("end" - start)::BIGINT AS ns FROM osrt').to_pylist() == [
            {"ns": 2 * day}
        ]
