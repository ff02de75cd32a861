"""osrt_sum, osrt_trace and file_access_sum against sums of the rows in plain Python."""

from __future__ import annotations

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.unit.stats.asking import stat
from tests.unit.stats.cpu_story import ORIGIN, Row, tell
from warplens import catalog
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

BLOCK = ["Avg (ns)", "Med (ns)", "Min (ns)", "Max (ns)", "StdDev (ns)"]
SELECTIONS = [
    Selection(),
    Selection((5_000, 30_000)),
    Selection(nvtx=("step", None, None)),
    Selection((0, 30_000), ("step", "*", 1)),
]


def inside(report: Report, selection: Selection, table: str) -> list[Row]:
    """The rows that overlap the selection, by going through all of them."""
    begin, end = (ORIGIN + edge for edge in selection.time) if selection.time else (0, 1 << 60)
    spans = [(None, begin, end)]
    if selection.nvtx is not None:
        name, domain, index = selection.nvtx
        ranges = [
            row
            for row in report.table("nvtx_ranges").to_pylist()
            if row["message"] == name and domain in ("*", row["domain"])
        ]
        ranges.sort(key=lambda row: (row["start"], row["id"]))
        ranges = ranges if index is None else ranges[index : index + 1]
        spans = [(row["thread"], max(row["start"], begin), min(row["end"], end)) for row in ranges]
    return [
        row
        for row in report.table(table).to_pylist()
        if any(
            thread in (None, row["thread"])
            and row["start"] < last
            and (row["end"] > first or row["start"] >= first)
            for thread, first, last in spans
        )
    ]


def grouped(rows: list[Row], *keys: str) -> dict[tuple[Any, ...], list[int]]:
    found = defaultdict(list)
    for row in rows:
        found[tuple(row[key] for key in keys)].append(row["end"] - row["start"])
    return found


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return tell(tmp_path_factory.mktemp("calls"))


@pytest.mark.slow
@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_osrt_sum(report: Report, selection: Selection, windowed: bool) -> None:
    asked = report.window(1) if windowed else report
    expected = grouped(inside(asked, selection, "osrt"), "name")
    assert expected
    found = stat(asked, "osrt_sum", selection)
    assert list(found[0]) == ["Time (%)", "Total Time (ns)", "Num Calls", *BLOCK, "Name"]
    assert {(row["Name"],) for row in found} == set(expected)
    everything = sum(map(sum, expected.values()))
    for row in found:
        values = expected[row["Name"],]
        assert (row["Total Time (ns)"], row["Num Calls"], row["Min (ns)"], row["Max (ns)"]) == (
            sum(values),
            len(values),
            min(values),
            max(values),
        )
        assert row["Med (ns)"] == statistics.median(values)
        assert row["StdDev (ns)"] == pytest.approx(statistics.stdev(values) if len(values) > 1 else 0)
        assert row["Time (%)"] == pytest.approx(100 * sum(values) / everything)
    assert [row["Total Time (ns)"] for row in found] == sorted(
        (row["Total Time (ns)"] for row in found), reverse=True
    )


def test_calls_by_thread_process_and_target(report: Report) -> None:
    rows = report.table("osrt").to_pylist()
    tids = dict(
        zip(*(report.table("threads").column(name).to_pylist() for name in ("thread", "tid")), strict=True)
    )
    by_thread = {
        (row["TID"], row["Name"]): row["Total Time (ns)"] for row in stat(report, "osrt_sum", by="thread")
    }
    assert by_thread == {
        (tids[thread], name): sum(values)
        for (thread, name), values in grouped(rows, "thread", "name").items()
    }
    assert {(row["Rank"], row["PID"]) for row in stat(report, "osrt_sum", by="process")} == {
        (0, 100),
        (1, 101),
    }
    by_target = {
        (row["Target"] or None, row["Name"]): row["Num Calls"]
        for row in stat(report, "osrt_sum", by="target")
    }
    assert by_target == {key: len(values) for key, values in grouped(rows, "target", "name").items()}
    assert {row["Object"] for row in stat(report, "osrt_sum", by="object")} == {"", "0x7f00"}
    with pytest.raises(UsageError, match=r":by=colour.*function, target, object, process, thread"):
        stat(report, "osrt_sum", by="colour")


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_osrt_trace(report: Report, selection: Selection) -> None:
    found = stat(report, "osrt_trace", selection)
    expected = sorted(
        inside(report, selection, "osrt"), key=lambda row: (row["start"], row["process"], row["id"])
    )
    names = ("Name", "Result", "Error", "Target", "Bytes")
    assert [(row["Start (ns)"], row["Duration (ns)"], *(row[name] for name in names)) for row in found] == [
        (row["start"] - ORIGIN, row["end"] - row["start"], *(row[name.lower()] for name in names))
        for row in expected
    ]
    assert {row["Thread Name"] for row in stat(report, "osrt_trace")} == {"main", "loader", "pool"}


@pytest.mark.parametrize("selection", SELECTIONS, ids=str)
def test_file_access_sum(report: Report, selection: Selection) -> None:
    rows = inside(report, selection, "file_access")
    found = {row["File"]: row for row in stat(report, "file_access_sum", selection)}
    assert set(found) == {row["path"] or "[unknown]" for row in rows}
    for name, row in found.items():
        mine = [item for item in rows if (item["path"] or "[unknown]") == name]
        count = {what: sum(item["operation"] == what for item in mine) for what in ("open", "read", "write")}
        moved = {
            what: sum(item["bytes"] or 0 for item in mine if item["operation"] == what) for what in count
        }
        assert (row["Opens"], row["Reads"], row["Writes"], row["Others"]) == (
            *count.values(),
            len(mine) - sum(count.values()),
        )
        assert (row["Read (MB)"], row["Written (MB)"]) == (moved["read"] / 1e6, moved["write"] / 1e6)
        assert row["Errors"] == sum(item["error"] is not None for item in mine)
        assert row["Total Time (ns)"] == sum(item["end"] - item["start"] for item in mine)
        slowest = max(item["end"] - item["start"] for item in mine)
        assert row["Max (ns)"] == slowest
        assert row["Slowest"] in {item["name"] for item in mine if item["end"] - item["start"] == slowest}
        reading = sum(item["end"] - item["start"] for item in mine if item["operation"] == "read")
        assert row["Read (MB/s)"] == (
            pytest.approx(moved["read"] / 1e6 / (reading / 1e9)) if reading else None
        )
    assert len(stat(report, "file_access_sum", by="process")) == 6


def test_a_phase_is_said(report: Report) -> None:
    table = (
        catalog.find("stats.tables", "osrt_sum").load().table(report, Selection(nvtx=("step", None, None)))
    )
    assert notes(table) == ["of what threads did inside 3 ranges 'step' (2 threads)."]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("osrt_sum", "OS runtime trace data"),
        ("osrt_trace", "OS runtime trace data"),
        ("file_access_sum", "file access data"),
    ],
)
def test_without_data(report: Report, name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=f"^does not contain {what} in the selected part.$"):
        stat(report, name, Selection((10**9, 2 * 10**9)))
    timeline(tmp_path / "r.warplens", "main |[a  ]")
    from warplens.report import open as open_report

    with pytest.raises(MissingData, match=f"^does not contain {what}.$"):
        stat(open_report(tmp_path / "r.warplens"), name)


IDLE = """
main:python |(main;wait        )(main;work       )
idle:python |(run;get                            )
pool:python |(main;work                          )
beat:python |(beat;poll                          )
"""


def test_threads_that_only_wait_do_not_lead(tmp_path: Path) -> None:
    def row(number: int, thread: int, ticks: int, more: Row) -> Row:
        at = {"process": 0, "thread": thread, "start": ORIGIN, "end": ORIGIN + ticks}
        return {"id": number, **at, **more}

    call = {"group": "lock", "result": 0}
    calls = [(0, 50, "read"), (0, 10, "sem_wait"), (1, 900, "sem_wait"), (3, 700, "poll")]
    osrt = [row(number, *one[:2], {"name": one[2], **call}) for number, one in enumerate(calls)]
    blocked = {"state": "blocked", "exact": True, "reason": "lock"}
    states = [row(thread, thread, 1000 - thread, blocked) for thread in range(4)]
    states.append(row(4, 2, 998, {"state": "running", "exact": True, "reason": None}))
    tables = {"osrt": osrt, "thread_states": states}
    cpu = {"run;get": {"on_cpu": False}, "main;wait": {"on_cpu": False}}
    timeline(tmp_path / "r.warplens", IDLE, main="main", cpu=cpu, origin=ORIGIN, tables=tables)
    with open_report(tmp_path / "r.warplens") as report:
        unit = catalog.find("stats.tables", "osrt_sum").load()
        table = unit.table(report, Selection())
        assert table["Name"].to_pylist() == ["read", "sem_wait", "poll"]
        assert table["Total Time (ns)"].to_pylist() == [50, 910, 700]
        assert notes(table) == [
            "Threads that only waited at one place have 1.60 us of it: this does not decide the order."
        ]
        assert [one["Total Time (ns)"] for one in stat(report, "osrt_sum", by="thread")] == [50, 10, 900, 700]
        by_reason = stat(report, "thread_state_sum", by="reason")
        assert [one["Total Time (ns)"] for one in by_reason] == [1000, 998, 998, 999, 997]
