"""A timeline takes rows of the tables that frameworks fill, as they are."""

from __future__ import annotations

from pathlib import Path

from warplens.report import open as open_report
from warplens.testing.timeline import timeline


def test_rows_of_a_framework(tmp_path: Path) -> None:
    when = {"process": 0, "start": 1_000_000_000, "end": 1_000_004_000}
    timeline(
        tmp_path / "run.warplens",
        "main@pytorch |[aten::mm ]",
        tables={
            "ops": [{**when, "range": 0, "thread": 0, "name": "aten::mm", "shapes": "[[2,2],[2,2]]"}],
            "collectives": [{**when, "id": 0, "name": "all_reduce", "group": "0", "bytes_in": 64}],
            "tensor_memory": [
                {
                    "id": 0,
                    "process": 0,
                    "thread": 0,
                    "start": 1_000_001_000,
                    "device_type": "CPU",
                    "address": 64,
                    "bytes": -8,
                }
            ],
        },
    )
    with open_report(tmp_path / "run.warplens") as report:
        asked = (
            "SELECT o.name, o.shapes, o.forward, r.message FROM ops o JOIN nvtx_ranges r ON o.range = r.id"
        )
        assert report.sql(asked).to_pylist() == [
            {"name": "aten::mm", "shapes": "[[2,2],[2,2]]", "forward": None, "message": "aten::mm"}
        ]
        assert report.table("collectives", ["name", "group_size", "bytes_in"]).to_pylist() == [
            {"name": "all_reduce", "group_size": None, "bytes_in": 64}
        ]
        assert report.table("tensor_memory", ["bytes", "device"]).to_pylist() == [
            {"bytes": -8, "device": None}
        ]
