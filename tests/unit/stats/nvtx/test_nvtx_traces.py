"""nvtx_startend_trace, nvtx_mark_trace, and what traces say about tasks and payloads."""

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
main    |[step        ][step      ]  !save
main#t1 |  {fetch     }
main#t1 |    [parse]
main#t2 |   {fetch      }   !done
w       |{plain   }
"""


@pytest.fixture
def report(tmp_path: Path) -> Report:
    timeline(
        tmp_path / "r.warplens",
        PICTURE,
        extra={"parse": {"payload_int": -3}, "plain": {"payload_float": 0.1}},
        tasks={"t2": {"name": None, "library": "trio"}},
        payloads={
            "step": [{"batch": 3, "loss": 0.25}, list(range(30))],
            "save": ["a.pt"],
            "done": [{"name": "x", "ok": True}],
        },
        end_payloads={"fetch": [{"bytes": 7}]},
    )
    return open_report(tmp_path / "r.warplens")


def trace(report: Report, stat: str, selection: Selection | None = None) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (
        catalog.find("stats.tables", stat).load().table(report, selection or Selection()).to_pylist()
    )
    return rows


def test_push_pop_ranges_say_their_task_and_payload(report: Report) -> None:
    rows = trace(report, "nvtx_pushpop_trace")
    assert [(row["Name"], row["Task"], row["Payload"]) for row in rows] == [
        (":step", None, "{batch: 3, loss: 0.25}"),
        (":parse", "t1", "-3"),
        (":step", None, "[" + ", ".join(map(str, range(24))) + ", … 6 more]"),
    ]
    assert "EndPayload" not in rows[0]
    parse = rows[1]
    assert (parse["Lvl"], parse["RangeStack"]) == (
        1,
        f":{parse['ParentId']}:{parse['RangeId']}",
    )  # inside the task's start/end range


def test_start_end_ranges_in_order_with_their_tasks(report: Report) -> None:
    rows = trace(report, "nvtx_startend_trace")
    assert [(row["Name"], row["Start (ns)"], row["Duration (ns)"], row["Task"]) for row in rows] == [
        (":plain", 0, 10_000, None),
        (":fetch", 2_000, 12_000, "t1"),
        (":fetch", 3_000, 13_000, "trio 1"),
    ]
    assert [(row["Payload"], row["EndPayload"]) for row in rows] == [
        ("0.1", None),
        (None, "{bytes: 7}"),
        (None, "{bytes: 7}"),
    ]
    assert (rows[0]["TID"], rows[0]["EndTID"], rows[0]["Lvl"]) == (1001, None, 0)


@pytest.mark.slow
def test_marks_in_order(report: Report) -> None:
    rows = trace(report, "nvtx_mark_trace")
    assert [(row["Name"], row["Time (ns)"], row["Task"], row["Payload"]) for row in rows] == [
        (":done", 19_000, "trio 1", '{name: "x", ok: true}'),
        (":save", 28_000, None, "a.pt"),
    ]
    assert [row["Name"] for row in trace(report, "nvtx_mark_trace", Selection.parse("28us/"))] == [":save"]


def test_without_tasks_and_payloads_there_are_no_columns_for_them(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ] {b } !c")
    plain = open_report(tmp_path / "r.warplens")
    for stat in ("nvtx_pushpop_trace", "nvtx_startend_trace", "nvtx_mark_trace"):
        assert not {"Task", "Payload", "EndPayload"} & set(trace(plain, stat)[0])


def test_a_trace_without_rows_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ]")
    plain = open_report(tmp_path / "r.warplens")
    for stat, what in (("nvtx_startend_trace", "start/end range"), ("nvtx_mark_trace", "mark")):
        with pytest.raises(MissingData, match=what):
            trace(plain, stat)


@pytest.mark.slow
def test_deep_nesting_has_its_stack(tmp_path: Path) -> None:
    depth = 300
    lines = [f"main |{' ' * number}[r{number}{' ' * (2000 - 2 * number)}]" for number in range(depth)]
    timeline(tmp_path / "r.warplens", "\n".join(lines))
    rows = trace(open_report(tmp_path / "r.warplens"), "nvtx_pushpop_trace")
    assert [row["Lvl"] for row in rows] == list(range(depth))
    assert rows[-1]["RangeStack"] == "".join(f":{row['RangeId']}" for row in rows)
