"""um_sum, um_total_sum, gpu_memory_sum and gpu_metrics_sum on small reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.stats.asking import stat
from warplens import catalog
from warplens.errors import MissingData
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


def drawn(path: Path, picture: str, **more: Any) -> Report:
    timeline(path / "r.warplens", picture, origin=5_000_000, **more)
    return open_report(path / "r.warplens")


UNIFIED: dict[str, dict[str, Any]] = {
    "#a": {"address": 0x7F0000000000, "bytes": 3_000_000},
    "#b": {"address": 0x7F0000200000, "bytes": 1_000_000},
    "#c": {"address": 0xFFFF_8000_0000_0000},
    "GPU_page_fault": {"faults": 5},
}
MOVES = ":um |(HtoD#a  )(DtoH#a)(DtoH#b)(CPU_page_fault#b )(GPU_page_fault#c )(GPU_page_fault#c )(DtoD#b )(thrashing#b )"


def test_unified_memory_by_address(tmp_path: Path) -> None:
    report = drawn(tmp_path, MOVES, cuda=UNIFIED)
    found = stat(report, "um_sum")
    sizes = ["HtoD Migration Size (MB)", "DtoH Migration Size (MB)"]
    assert list(found[0]) == [
        "Virtual Address",
        *sizes,
        "CPU Page Faults",
        "GPU Page Faults",
        "Migration Throughput (MB/s)",
    ]
    assert [tuple(row.values())[:-1] for row in found] == [
        ("0x00007f0000000000", 3.0, 3.0, 0, 0),
        ("0x00007f0000200000", 0.0, 1.0, 1, 0),
        ("0xffff800000000000", 0.0, 0.0, 0, 10),
    ]
    assert [row["Migration Throughput (MB/s)"] for row in found] == [
        pytest.approx(6e6 / 18),
        pytest.approx(2e6 / 17),
        None,
    ]
    assert len(stat(report, "um_sum", rows=2)) == 2
    short = catalog.find("stats.tables", "um_sum").load().table(report, Selection(), rows=1)
    assert notes(short) == ["2 more addresses; um_sum:rows=-1 has all."]
    assert notes(catalog.find("stats.tables", "um_sum").load().table(report, Selection(), rows=-1)) == []


def test_unified_memory_in_all(tmp_path: Path) -> None:
    report = drawn(tmp_path, MOVES, cuda=UNIFIED)
    (found,) = stat(report, "um_total_sum")
    assert found == {
        "Total HtoD Migration Size (MB)": 3.0,
        "Total DtoH Migration Size (MB)": 4.0,
        "Total CPU Page Faults": 1,
        "Total GPU Page Faults": 10,
        "Minimum Virtual Address": "0x00007f0000000000",
        "Maximum Virtual Address": "0xffff800000000000",
    }
    (begin,) = stat(report, "um_total_sum", Selection.parse("0us/1us"))
    assert (begin["Total HtoD Migration Size (MB)"], begin["Total DtoH Migration Size (MB)"]) == (3.0, 0.0)


def test_processes_have_unified_memory_of_their_own(tmp_path: Path) -> None:
    report = drawn(tmp_path, "a/:um |(HtoD#a )\nb/:um |(HtoD#a )", cuda=UNIFIED)
    assert [row["PID"] for row in stat(report, "um_total_sum")] == [100, 101]
    assert [row["PID"] for row in stat(report, "um_sum")] == [100, 101]


MEMORY = """
gpu0:memory |+4000000   +1000000 -4000000   +2000000
gpu1:memory | +500
"""


def test_memory_of_each_gpu(tmp_path: Path) -> None:
    report = drawn(tmp_path, MEMORY, cuda={"gpu0": {"name": "H100"}, "gpu1": {"name": "H100"}})
    first, second = stat(report, "gpu_memory_sum")
    assert first == {
        "Peak (MB)": 5.0,
        "Peak At (ns)": 11_000,
        "End (MB)": 3.0,
        "Allocations": 3,
        "Frees": 1,
        "Allocated (MB)": 7.0,
        "Largest (MB)": 4.0,
        "Device": "H100 (0)",
        "Kind": "Device",
    }
    assert (second["Device"], second["Peak (MB)"], second["Peak At (ns)"]) == ("H100 (1)", 0.0005, 1_000)


def test_memory_held_before_the_selection_counts(tmp_path: Path) -> None:
    report = drawn(tmp_path, MEMORY)
    (found,) = stat(report, "gpu_memory_sum", Selection.parse("15us/"))
    assert (found["Peak (MB)"], found["Peak At (ns)"], found["End (MB)"]) == (5.0, 15_000, 3.0)
    assert (found["Allocations"], found["Frees"], found["Largest (MB)"]) == (1, 1, 2.0)


def test_totals_are_counted_where_there_are_none(tmp_path: Path) -> None:
    step = {"process": 0, "device": 0, "kind": "Device", "address": 1}
    steps = [
        ("allocate", 10_000_000, 0),
        ("allocate", 5_000_000, 1),
        ("free", 10_000_000, 2),
        ("pool create", 0, 3),
    ]
    memory = [
        {**step, "id": n, "operation": what, "bytes": size, "start": 5_000_000 + n} for what, size, n in steps
    ]
    report = drawn(
        tmp_path, "main |[x ]", tables={"gpu_memory": [{**row, "pool_size": 1 << 20} for row in memory]}
    )
    (found,) = stat(report, "gpu_memory_sum")
    assert (found["Peak (MB)"], found["Peak At (ns)"], found["End (MB)"], found["Pool Peak (MB)"]) == (
        15.0,
        1,
        5.0,
        1.048576,
    )


def test_metrics_of_each_gpu(tmp_path: Path) -> None:
    report = drawn(tmp_path, "gpu0~SM_Active |0   60  30\ngpu1~SM_Active |5")
    found = stat(report, "gpu_metrics_sum")
    assert list(found[0]) == ["Samples", "Avg", "Med", "Min", "Max", "StdDev", "Unit", "GPU", "Metric"]
    assert tuple(found[0].values()) == (3, 30.0, 30.0, 0.0, 60.0, 30.0, "%", 0, "SM Active")
    assert tuple(found[1].values()) == (1, 5.0, 5.0, 5.0, 5.0, 0.0, "%", 1, "SM Active")
    assert [row["Avg"] for row in stat(report, "gpu_metrics_sum", Selection.parse("4us/9us"))] == [45.0]


def test_a_report_without_such_data_says_so(tmp_path: Path) -> None:
    report = drawn(tmp_path, "main |[step ]")
    for name, what in (
        ("um_sum", "CUDA Unified Memory data"),
        ("um_total_sum", "CUDA Unified Memory data"),
        ("gpu_memory_sum", "CUDA memory usage data"),
        ("gpu_metrics_sum", "GPU metrics data"),
    ):
        with pytest.raises(MissingData, match=rf"^does not contain {what}\.$"):
            stat(report, name)
