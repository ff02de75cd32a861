"""collective_sum on operations whose sizes and times are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import warplens
from warplens.testing.timeline import timeline

ORIGIN = 1_000_000_000


def operation(number: int, start: int, length: int, **columns: Any) -> dict[str, Any]:
    about = {
        "name": "all_reduce",
        "group": "dp",
        "group_size": 8,
        "type": "Float",
        "bytes_in": 4_000_000,
        "bytes_out": 4_000_000,
    }
    return {
        "id": number,
        "process": 0,
        "start": ORIGIN + start,
        "end": ORIGIN + start + length,
        **about,
        **columns,
    }


@pytest.fixture
def report(tmp_path: Path) -> warplens.Report:
    rows = [
        operation(0, 0, 1_000_000),
        operation(1, 2_000_000, 3_000_000, bytes_out=8_000_000),
        operation(
            2,
            6_000_000,
            500_000,
            name="send",
            group="pp",
            group_size=2,
            bytes_in=None,
            bytes_out=None,
            type=None,
        ),
    ]
    timeline(tmp_path / "r.warplens", "main |[step ]", tick_ns=1_000_000, tables={"collectives": rows})
    return warplens.open(tmp_path / "r.warplens")


def test_each_operation_of_each_group(report: warplens.Report) -> None:
    first, second = report.stats("collective_sum").to_pylist()
    assert (first["Name"], first["Group"], first["Ranks"], first["Type"], first["Instances"]) == (
        "all_reduce",
        "dp",
        8,
        "Float",
        2,
    )
    assert (first["Total Time (ns)"], first["Min (ns)"], first["Med (ns)"], first["Max (ns)"]) == (
        4_000_000,
        1_000_000,
        2e6,
        3_000_000,
    )
    assert (first["Total (MB)"], first["Avg (MB)"], first["Throughput (MB/s)"]) == (
        12,
        6,
        pytest.approx(3_000),
    )
    assert first["Time (%)"] == pytest.approx(100 * 8 / 9)
    assert (second["Name"], second["Total (MB)"], second["Throughput (MB/s)"], second["StdDev (ns)"]) == (
        "send",
        None,
        None,
        0,
    )


@pytest.mark.slow
def test_of_a_part(report: warplens.Report) -> None:
    assert report.stats("collective_sum", time="1500us/2500us").column("Instances").to_pylist() == [1]
    with pytest.raises(warplens.MissingData, match="collective operations in the selected part"):
        report.stats("collective_sum", time="5500us/5600us")
