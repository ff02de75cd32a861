"""What threads did in one phase, and shares of rows that are in it in part: against going through every ns of small reports."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from warplens.analysis.ranges.phases import chosen, pieces, said
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


# ns; a thread's ranges overlap, nest, touch, and have no length
PICTURE = """
    main      |[step   ] [step         ][step ]
    main      |                [step]
    main@io   |    [step ]
    loader    |       [step ]   [other ]
    1/main    |  [step      ]
    windows   |     [start                ]
"""
THREADS = {"main": 0, "loader": 1, "other": (1 << 24)}
Row = dict[str, Any]


def made(path: Path, rows: list[Row], **more: Any) -> Report:
    timeline(path / "r.warplens", PICTURE, tick_ns=10, origin=1000, tables={"samples": rows}, **more)
    return open_report(path / "r.warplens")


def sample(number: int, thread: int, start: int, end: int, count: int = 1) -> Row:
    process = thread >> 24
    times = {"start": 1000 + start, "end": 1000 + end, "count": count, "weight": count * 1000}
    return {
        "id": (process << 32) + number,
        "process": process,
        "thread": thread,
        "kind": "python",
        "on_cpu": True,
        **times,
    }


def found(report: Report, selection: Selection) -> dict[int, tuple[int, float]]:
    rows = report.sql(
        f"SELECT id, inside, part FROM {pieces(report, selection, 'samples')} ORDER BY id"
    ).to_pylist()
    whole = report.sql(f"SELECT id FROM {chosen(report, selection, 'samples')} ORDER BY id").to_pylist()
    assert [row["id"] for row in rows] == [row["id"] for row in whole]
    return {row["id"]: (row["inside"], row["part"]) for row in rows}


def expected(rows: list[Row], spans: dict[int, list[tuple[int, int]]]) -> dict[int, tuple[int, float]]:
    result = {}
    for row in rows:
        covered = {at for first, last in spans.get(row["thread"], []) for at in range(first, last)}
        inside = len(covered & set(range(row["start"], row["end"])))
        length = row["end"] - row["start"]
        if inside or (row["start"] in covered and not length):
            result[row["id"]] = (inside, inside / length if length else 1.0)
    return result


def spans_of(
    report: Report, domain: str | None, time: tuple[int, int] | None, index: int | None
) -> dict[int, list[tuple[int, int]]]:
    ranges = [
        row
        for row in report.table("nvtx_ranges").to_pylist()
        if row["message"] == "step" and domain in ("*", row["domain"])
    ]
    ranges.sort(key=lambda row: (row["start"], row["id"]))
    result: dict[int, list[tuple[int, int]]] = {}
    for row in ranges if index is None else ranges[index : index + 1]:
        first, last = row["start"], row["end"]
        if time is not None:
            first, last = max(first, 1000 + time[0]), min(last, 1000 + time[1])
        result.setdefault(row["thread"], []).append((first, last))
    return result


@pytest.mark.parametrize("seed", few(range(2)))
@pytest.mark.parametrize("windowed", [False, True])
def test_random_rows(seed: int, windowed: bool, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = []
    for number in range(300):
        start = rng.randrange(0, 450)
        rows.append(
            sample(number, rng.choice([0, 1, 1 << 24]), start, start + rng.choice((0, 1, 2, 10, 40, 200)))
        )
    rows.sort(key=lambda row: (row["process"], row["start"]))
    report = made(tmp_path, rows)
    asked = report.window(1) if windowed else report
    rows = asked.table("samples").to_pylist()
    assert rows
    for domain in (None, "io", "*"):
        for time in (None, (35, 210)):
            for index in (None, 0, 1) if domain != "io" else (None, 0):
                selection = Selection(time, ("step", domain, index))
                assert found(asked, selection) == expected(rows, spans_of(asked, domain, time, index))
    for thread in (0, 1, 1 << 24):
        mine = [row for row in rows if row["thread"] == thread]
        for time in (None, (35, 210)):
            span = (1000 + time[0], 1000 + time[1]) if time else (0, 10_000)
            result = {
                id: value
                for id, value in found(asked, Selection(time)).items()
                if id in {row["id"] for row in mine}
            }
            assert result == expected(mine, {thread: [span]})


def test_a_range_that_ends_on_another_thread_is_that_of_its_process(tmp_path: Path) -> None:
    times = {"start": 1100, "end": 1200, "style": "StartEnd", "message": "request", "depth": 0}
    flags = {"unfinished": False, "inherited": False, "clipped": False}
    crossing = {"id": 1 << 20, "process": 0, "thread": 0, "end_thread": 1, **times, **flags}
    samples = [
        sample(0, 0, 150, 150),
        sample(1, 1, 150, 150),
        sample(2, 1, 250, 250),
        sample(3, 1 << 24, 150, 150),
    ]
    report = made(tmp_path, samples)
    ranges = [*report.table("nvtx_ranges").to_pylist(), crossing]
    timeline(
        tmp_path / "more.warplens",
        PICTURE,
        tick_ns=10,
        origin=1000,
        tables={"samples": samples, "nvtx_ranges": ranges},
    )
    assert set(found(open_report(tmp_path / "more.warplens"), Selection(nvtx=("request", None, None)))) == {
        0,
        1,
    }


def test_the_note_names_the_selected_ranges(tmp_path: Path) -> None:
    report = made(tmp_path, [])
    assert said(report, Selection()) == said(report, Selection((0, 5))) == ""
    assert (
        said(report, Selection(nvtx=("step", None, None)))
        == "of what threads did inside 6 ranges 'step' (3 threads)."
    )
    assert (
        said(report, Selection(nvtx=("step", None, 2)))
        == "of what threads did inside 1 range 'step' (1 thread)."
    )
    with pytest.raises(MissingData, match="no range 'nothing'"):
        said(report, Selection(nvtx=("nothing", None, None)))
    with pytest.raises(MissingData, match="no occurrence 9"):
        chosen(report, Selection(nvtx=("step", None, 9)), "samples")


def test_a_name_with_quotes(tmp_path: Path) -> None:
    timeline(
        tmp_path / "r.warplens",
        "main |[it's  ]",
        tick_ns=10,
        origin=1000,
        tables={"samples": [sample(0, 0, 20, 20)]},
    )
    assert set(found(open_report(tmp_path / "r.warplens"), Selection(nvtx=("it's", None, None)))) == {0}


def test_a_window_has_its_share_of_what_is_spread_over_a_row(tmp_path: Path) -> None:
    rows = [
        sample(0, 0, 0, 100, 11),
        sample(1, 0, 60, 60, 3),
        sample(2, 0, 200, 300, 101),
        sample(3, 0, 10, 20, 5),
        sample(4, 0, 70, 90, 7),
    ]
    report = made(tmp_path, sorted(rows, key=lambda row: row["start"])).window(1)  # from 50 to 280
    values = [
        (row["id"], row["start"], row["end"], row["count"], row["weight"])
        for row in report.table("samples").to_pylist()
    ]
    assert sorted(values) == [
        (0, 1050, 1100, 6, 5500),
        (1, 1060, 1060, 3, 3000),
        (2, 1200, 1280, 81, 80800),
        (4, 1070, 1090, 7, 7000),
    ]
    by_sql = report.sql('SELECT id, "start", "end", "count", weight FROM samples ORDER BY id').to_pylist()
    assert [tuple(row.values()) for row in by_sql] == sorted(values)
    assert sorted(report.table("samples", ["count"]).column(0).to_pylist()) == [3, 6, 7, 81]
