"""`tensor_memory_sum`, of drawn rows: by device, and by the range that took it."""

from __future__ import annotations

from pathlib import Path

from tests.unit.rules.asking import ORIGIN, drawn
from warplens.report import Report, Selection
from warplens.stats.tables.tensor_memory_sum import table
from warplens.viewer.answers.counters import counters

MB = 1_000_000


def report(tmp_path: Path) -> Report:
    steps = [(0, 5, 3, None), (1, 8, 2, None), (2, 9, -3, None), (3, 12, 7, 0)]
    rows = [
        {
            "id": number,
            "process": 0,
            "thread": 0,
            "start": ORIGIN + at * 1000,
            "device": device,
            "device_type": "CPU" if device is None else "CUDA",
            "address": 64 * number,
            "bytes": size * MB,
            "range": 0,
        }
        for number, at, size, device in steps
    ]
    return drawn(tmp_path, "main |[aten::mm          ]", tables={"tensor_memory": rows})


def test_each_device_has_its_peak_and_its_end(tmp_path: Path) -> None:
    rows = table(report(tmp_path), Selection()).to_pylist()
    assert [
        (row["Device"], row["Peak (MB)"], row["End (MB)"], row["Allocations"], row["Frees"]) for row in rows
    ] == [
        ("CUDA 0", 7, 7, 1, 0),
        ("CPU", 5, 2, 2, 1),
    ]
    assert rows[1]["Peak At (ns)"] == 8000


def test_by_range_it_is_what_was_taken_there(tmp_path: Path) -> None:
    (row,) = table(report(tmp_path), Selection(), by="range").to_pylist()
    assert (row["Range"], row["Allocated (MB)"], row["Largest (MB)"]) == (":aten::mm", 12, 7)


def test_tensors_of_the_cpu_have_a_track(tmp_path: Path) -> None:
    (track,) = (one for one in counters(report(tmp_path)) if one.layer == "tensor_memory")
    assert track.values.tolist() == [3 * MB, 5 * MB, 2 * MB]
