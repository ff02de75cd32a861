"""One window of the capture: the same rows by every way, cut to it."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from warplens.analysis.ranges.durations import range_durations
from warplens.errors import MissingData
from warplens.model.tables import TABLES
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.report.row_groups import stream
from warplens.storage.writer import Facts, PartWriter
from warplens.testing.timeline import timeline

PICTURE = """
    windows |  [start    ]     [nvtx      ]
    main    |[step        ][step      ]  !save !late
    main    |  [load ]
    w@io    |!m   [read         ]
    w~mem   |1   2      3   4    5
    main    |                       <open
"""
START = 1_000_000_000
PAYLOADS = {"step": [{"a": 1}, {"a": 2}], "save": [{"b": 1}], "m": [{"b": 2}]}
EVENTS = {
    "nvtx_ranges": ("id", "start", "end"),
    "nvtx_marks": ("id", "start"),
    "nvtx_counter_samples": ("id", "start"),
    "nvtx_operations": ("start",),
}


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("windows") / "r.warplens"
    timeline(path, PICTURE, payloads=PAYLOADS)
    return open_report(path)


def spans(report: Report) -> list[tuple[str, int, int]]:
    rows = report.table("nvtx_ranges", ["message", "start", "end"]).to_pylist()
    return [(row["message"], (row["start"] - START) // 1000, (row["end"] - START) // 1000) for row in rows]


def test_ranges_are_cut_to_their_window(report: Report) -> None:
    with report.window(1) as one, report.window(2) as two:
        assert spans(one) == [("step", 2, 13), ("load", 2, 9), ("read", 5, 13)]
        assert spans(two) == [("read", 18, 20), ("step", 18, 26), ("open", 23, 30)]
    assert spans(report)[0] == ("step", 0, 14)  # without a choice: true times


@pytest.mark.slow
def test_marks_samples_and_payloads_are_those_inside(report: Report) -> None:
    with report.window(1) as one, report.window(2) as two:
        assert one.table("nvtx_marks", ["message"]).column(0).to_pylist() == []
        assert two.table("nvtx_marks", ["message"]).column(0).to_pylist() == ["save"]
        assert one.table("nvtx_counter_samples", ["value_int"]).column(0).to_pylist() == [2, 3]
        assert two.table("nvtx_counter_samples", ["value_int"]).column(0).to_pylist() == [5]
        assert one.table("payloads", ["json"]).column(0).to_pylist() == ['{"a": 1}']
        assert sorted(row["text"] for row in two.payloads().to_pylist()) == ["{a: 2}", "{b: 1}"]
        assert one.sql("SELECT json FROM payloads").column(0).to_pylist() == ['{"a": 1}']


def test_a_window_keeps_processes_threads_and_counters(report: Report) -> None:
    with report.window(2) as two:
        for name in ("processes", "threads", "nvtx_counters", "targets", "diagnostics"):
            assert two.table(name).equals(report.table(name)), name
        assert two.manifests == report.manifests
        assert (two.origin, two.end) == (report.origin, report.end)
        assert two.span == (START + 18_000, START + 30_000)
        assert two.table("capture_windows").column("number").to_pylist() == [2]
    assert report.span == (report.origin, report.end)


def test_counts_are_those_of_the_window(report: Report) -> None:
    with report.window(2) as two:
        for name, rows in two.tables.items():
            assert rows == two.table(name).num_rows, name
        assert "3 NVTX ranges" in repr(two)


def test_some_columns_do(report: Report) -> None:
    with report.window(1) as one:
        assert one.table("nvtx_ranges", ["end", "message"]).column_names == ["end", "message"]
        assert one.table("nvtx_ranges", ["message"]).to_pydict() == {"message": ["step", "load", "read"]}
        assert one.table("payloads", ["at_end"]).to_pydict() == {"at_end": [False]}
        assert [rows.column_names for rows in stream(one, "nvtx_ranges", ["depth"])] == [["depth"]]


def test_a_missing_window_lists_the_others(report: Report, tmp_path: Path) -> None:
    with pytest.raises(
        MissingData,
        match=r"has no window 3 of the capture; it has 1 \(0.000002 s to 0.000013 s\), 2 \(0.000018 s to",
    ):
        report.window(3)
    with pytest.raises(MissingData, match="no window 0"):
        report.window(0)
    timeline(tmp_path / "old.warplens", PICTURE, tables={"capture_windows": []})
    with pytest.raises(MissingData, match="it has none"):
        open_report(tmp_path / "old.warplens").window(1)


@pytest.mark.slow
def test_without_an_option_the_one_window_is_all(tmp_path: Path) -> None:
    path = tmp_path / "r.warplens"
    timeline(path, PICTURE.replace("windows |  [start    ]     [nvtx      ]", ""), payloads=PAYLOADS)
    with open_report(path) as report, report.window(1) as one:
        for name in TABLES:
            assert one.table(name).equals(report.table(name)), name
            query = f"SELECT * FROM {name}"
            assert one.sql(query).equals(report.sql(query)), name


def test_filters_ask_within_the_window(report: Report) -> None:
    with report.window(2) as two:
        groups, unfinished = range_durations(two, Selection.parse(nvtx="step"))
        found = {row["message"]: (row["count"], row["total"]) for row in groups.to_pylist()}
        assert found == {"read": (1, 2_000), "step": (1, 8_000), "open": (1, 7_000)}
        assert unfinished == {"PushPop": 1}
        groups, _ = range_durations(two, Selection.parse(time="20us/30us"))
        assert {row["message"] for row in groups.to_pylist()} == {"step", "open"}


def _random_part(
    report: Path, chance: random.Random, name: str, boot: str, windows: list[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Write ranges and marks of 2 processes in several row groups each; return all rows with their times on the first part's clock."""
    everything = []
    with PartWriter(report, name, "host") as part:
        for process in range(part.first_process, part.first_process + 2):
            about = {
                "pid": process,
                "parent_pid": 1,
                "host": "h",
                "executable": "x",
                "command": "x",
                "primary": False,
                "exited": True,
            }
            part.write("processes", [{"process": process, **about, "start": 0, "end": 2000}])
            key = process << 32
            starts = sorted(chance.randrange(1000) for _ in range(60))
            rows: list[dict[str, Any]] = [
                {
                    "id": key + number,
                    "process": process,
                    "thread": process << 24,
                    "start": start,
                    "end": start + chance.choice((0, 0, 1, chance.randrange(300))),
                    "message": chance.choice("abc"),
                    "style": "PushPop",
                    "depth": 0,
                    "unfinished": False,
                    "inherited": False,
                    "clipped": False,
                }
                for number, start in enumerate(starts)
            ]
            for first in range(0, len(rows), 17):
                part.write("nvtx_ranges", rows[first : first + 17])
            marks = [
                {name: row[name] for name in ("id", "process", "thread", "start", "message")} for row in rows
            ]
            part.write("nvtx_marks", marks)
            everything += rows
        causes = {"host": "host", "opened_by": "nvtx", "closed_by": "nvtx"}
        part.write(
            "capture_windows",
            [
                {"part": part.part, "number": n, "start": b, "end": e, **causes}
                for n, (b, e) in enumerate(windows, 1)
            ],
        )
        part.commit(Facts(name, "host", boot, realtime_offset=5_000 if boot == "other" else 0, end=2_000))
    shift = 5_000 if boot == "other" else 0
    return [{**row, "start": row["start"] + shift, "end": row["end"] + shift} for row in everything]


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(6), 2))
def test_every_way_agrees_with_an_oracle(tmp_path: Path, seed: int) -> None:
    """Two parts, one on another clock, with windows of their own: Arrow, SQL, row groups and sums say the same."""
    chance = random.Random(seed)
    edges = [sorted(chance.sample(range(1100), 4)) for _ in range(2)]
    windows = [[(a, b), (c, d)] for a, b, c, d in edges]
    if seed % 2:
        del windows[1][1]  # that part has no window 2
    path = tmp_path / "r.warplens"
    parts = [
        _random_part(path, chance, "one", "boot", windows[0]),
        _random_part(path, chance, "two", "other", windows[1]),
    ]
    with open_report(path) as report:
        for number in (1, 2):
            expected, instants = [], []
            for rows, own, shift in zip(parts, windows, (0, 5_000), strict=True):
                if number > len(own):
                    continue
                begin, end = (edge + shift for edge in own[number - 1])
                expected += [
                    (row["id"], max(row["start"], begin), min(row["end"], end), row["message"])
                    for row in rows
                    if row["start"] < end and (row["end"] > begin or row["start"] >= begin)
                ]
                instants += [(row["id"], row["start"]) for row in rows if begin <= row["start"] < end]
            with report.window(number) as chosen:
                columns = ["id", "start", "end", "message"]
                assert [
                    tuple(row.values()) for row in chosen.table("nvtx_ranges", columns).to_pylist()
                ] == expected
                asked = chosen.sql(
                    'SELECT id, "start", "end", message FROM nvtx_ranges ORDER BY id'
                ).to_pylist()
                assert [tuple(row.values()) for row in asked] == sorted(expected)
                read = [
                    row
                    for rows in stream(chosen, "nvtx_ranges", ["message", "id"])
                    for row in rows.to_pylist()
                ]
                assert [(row["id"], row["message"]) for row in read] == [(row[0], row[3]) for row in expected]
                assert [
                    tuple(row.values()) for row in chosen.table("nvtx_marks", ["id", "start"]).to_pylist()
                ] == instants
                counted = chosen.sql('SELECT id, "start" FROM nvtx_marks ORDER BY id').to_pylist()
                assert [tuple(row.values()) for row in counted] == sorted(instants)
                groups, _ = range_durations(chosen, Selection())
                sums = {row["message"]: (row["count"], row["total"]) for row in groups.to_pylist()}
                names = {row[3] for row in expected}
                assert sums == {
                    name: (
                        sum(row[3] == name for row in expected),
                        sum(row[2] - row[1] for row in expected if row[3] == name),
                    )
                    for name in names
                }
                assert {chosen.window_of(row[0] >> 32) for row in expected} <= {
                    (begin + shift, end + shift)
                    for own, shift in zip(windows, (0, 5_000), strict=True)
                    for begin, end in own[number - 1 : number]
                }
