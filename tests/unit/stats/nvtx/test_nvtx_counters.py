"""nvtx_counter_sum and nvtx_counter_trace: values, changes, and what holds between samples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

PICTURE = """
main           |[step        ]
main~mem       |1   3 ?  2
main~mem@io    |5
main~sent      |10   20  30
p1/main~level  |  1.5  4.5
"""
COUNTERS: dict[str, dict[str, Any]] = {
    "sent": {"value_type": "delta", "unit": "bytes", "scale": 1024.0},
    "level": {"interpolation": "linear"},
}


def rows(
    report: Report, stat: str = "nvtx_counter_sum", selection: Selection | None = None
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (
        catalog.find("stats.tables", stat).load().table(report, selection or Selection()).to_pylist()
    )
    return found


def drawn(tmp_path: Path, **interpolation: str) -> Report:
    counters = COUNTERS | {name: {"interpolation": kind} for name, kind in interpolation.items()}
    timeline(tmp_path / "r.warplens", PICTURE, counters=counters)
    return open_report(tmp_path / "r.warplens")


def test_values_of_each_counter(tmp_path: Path) -> None:
    found = {row["Counter"]: row for row in rows(drawn(tmp_path))}
    assert list(found) == [":mem", "io:mem", ":sent", ":level"]
    mem = found[":mem"]
    assert [mem[name] for name in ("Samples", "Avg", "Med", "Min", "Max", "Last", "PID")] == [
        3,
        2.0,
        2.0,
        1,
        3,
        2,
        100,
    ]
    assert (mem["TimeAvg"], mem["Total"], mem["Rate (1/s)"], mem["Unit"]) == (None, None, None, None)
    assert (found["io:mem"]["Last"], found[":level"]["PID"]) == (5, 101)


def test_changes_are_summed_in_their_unit(tmp_path: Path) -> None:
    sent = next(row for row in rows(drawn(tmp_path)) if row["Counter"] == ":sent")
    assert (sent["Total"], sent["Min"], sent["Unit"]) == (60 * 1024, 10 * 1024, "bytes")
    assert sent["Rate (1/s)"] == pytest.approx(60 * 1024 / 9e-6)
    assert sent["TimeAvg"] is None


@pytest.mark.parametrize(
    ("kind", "average"),
    # samples at 0 (1), 4 (3), 6 (none), 9 (2) us; the process ends at 14 us
    [
        ("until_next", (1 * 4 + 3 * 2 + 2 * 5) / 11),
        ("since_last", (3 * 4 + 2 * 3) / 7),
        ("linear", 2.0),
        ("point", None),
    ],
)
def test_the_mean_over_time_is_of_what_holds(tmp_path: Path, kind: str, average: float | None) -> None:
    found = rows(drawn(tmp_path, mem=kind))
    assert found[0]["TimeAvg"] == (None if average is None else pytest.approx(average))
    assert found[3]["TimeAvg"] == pytest.approx(3.0)


def test_a_filter_keeps_its_samples_and_knows_what_held_before(tmp_path: Path) -> None:
    report = drawn(tmp_path, mem="until_next")
    found = {row["Counter"]: row for row in rows(report, selection=Selection.parse("2us/6us"))}
    mem = found[":mem"]
    assert (mem["Samples"], mem["Last"], mem["TimeAvg"]) == (1, 3, pytest.approx((1 * 2 + 3 * 2) / 4))
    assert found[":sent"]["Rate (1/s)"] == pytest.approx(20 * 1024 / 4e-6)
    between = rows(report, selection=Selection.parse("1us/2us"))
    assert [(row["Counter"], row["Samples"], row["Last"], row["TimeAvg"]) for row in between] == [
        (":mem", 0, None, 1.0),
        ("io:mem", 0, None, 5.0),
    ]


def test_samples_without_a_value_are_told(tmp_path: Path) -> None:
    from warplens.stats.base import notes

    table = catalog.find("stats.tables", "nvtx_counter_sum").load().table(drawn(tmp_path), Selection())
    assert notes(table) == ["1 without a value, not counted."]


def test_samples_without_a_value_repeat_or_skip(tmp_path: Path) -> None:
    samples: list[dict[str, Any]] = [
        {"no_value": "unchanged"},
        {"value_int": 7},
        {"no_value": "unchanged"},
        {"no_value": "zero"},
    ]
    tables: dict[str, list[dict[str, Any]]] = {
        "nvtx_counters": [{"counter": 0, "process": 0, "id": 1, "name": "n", "type": "int64"}],
        "nvtx_counter_samples": [
            {"id": number, "process": 0, "thread": 0, "counter": 0, "start": 1_000_000_000 + number, **row}
            for number, row in enumerate(samples)
        ],
    }
    timeline(tmp_path / "r.warplens", "main |[step ]", tables=tables)
    report = open_report(tmp_path / "r.warplens")
    (found,) = rows(report)
    assert (found["Samples"], found["Avg"], found["Last"], found["Max"]) == (3, pytest.approx(14 / 3), 0, 7)
    assert [row["Value"] for row in rows(report, "nvtx_counter_trace")] == [None, 7, None, 0]


def test_large_unsigned_values_and_odd_floats(tmp_path: Path) -> None:
    counters = [
        {"counter": 0, "process": 0, "id": 1, "name": "u", "type": "uint64"},
        {"counter": 1, "process": 0, "id": 2, "name": "f", "type": "float64", "interpolation": "linear"},
    ]
    values: list[dict[str, Any]] = [
        {"counter": 0, "value_int": -1},
        {"counter": 0, "value_int": 5},
        {"counter": 1, "value_float": float("nan")},
        {"counter": 1, "value_float": float("inf")},
        {"counter": 1, "value_float": 1.0},
    ]
    samples = [
        {"id": number, "process": 0, "thread": 0, "start": 1_000_000_000 + number, **row}
        for number, row in enumerate(values)
    ]
    timeline(
        tmp_path / "r.warplens",
        "main |[step ]",
        tables={"nvtx_counters": counters, "nvtx_counter_samples": samples},
    )
    report = open_report(tmp_path / "r.warplens")
    unsigned, real = rows(report)
    assert (unsigned["Max"], unsigned["Min"], real["Samples"], real["Max"], real["Last"]) == (
        2.0**64,
        5,
        2,
        float("inf"),
        1,
    )
    assert [row["Value"] for row in rows(report, "nvtx_counter_trace")] == [
        2.0**64,
        5,
        None,
        float("inf"),
        1.0,
    ]


@pytest.mark.parametrize("stat", ["nvtx_counter_sum", "nvtx_counter_trace"])
def test_counters_of_nothing_do_not_fail_in_python(stat: str, tmp_path: Path) -> None:
    samples = [{"id": 0, "process": 0, "thread": 9, "counter": 7, "start": 1_000_000_000, "value_int": 1}]
    timeline(tmp_path / "r.warplens", "main |[step ]", tables={"nvtx_counter_samples": samples})
    try:
        found = rows(open_report(tmp_path / "r.warplens"), stat)
    except MissingData:
        assert stat == "nvtx_counter_sum"
    else:
        assert [(row["Counter"], row["TID"]) for row in found] == [(None, None)]


def test_the_trace_has_every_sample(tmp_path: Path) -> None:
    found = rows(drawn(tmp_path), "nvtx_counter_trace")
    assert [(row["Time (ns)"], row["Value"]) for row in found if row["Counter"] == ":mem"] == [
        (0, 1.0),
        (4_000, 3.0),
        (6_000, None),
        (9_000, 2.0),
    ]
    assert [(row["Value"], row["Unit"]) for row in found if row["Counter"] == ":sent"] == [
        (10_240, "bytes"),
        (20_480, "bytes"),
        (30_720, "bytes"),
    ]
    assert [row["Time (ns)"] for row in found] == sorted(row["Time (ns)"] for row in found)


@pytest.mark.parametrize("stat", ["nvtx_counter_sum", "nvtx_counter_trace"])
def test_a_report_without_counters_says_so(stat: str, tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    with pytest.raises(MissingData, match="counter data"):
        rows(open_report(tmp_path / "r.warplens"), stat)
