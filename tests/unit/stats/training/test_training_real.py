"""Steps, operations and critical paths of recordings of real GPUs, against plain loops over what PyTorch's profiler wrote."""

from __future__ import annotations

import gzip
import json
from bisect import bisect_right
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.real_recordings import some
from warplens import catalog
from warplens.analysis.critical_path import build, path
from warplens.errors import MissingData
from warplens.importers.importing import import_file
from warplens.report import Report, Selection
from warplens.report import open as open_report

FOLDER = Path(__file__).resolve().parents[5] / "shared" / "data"
_LACKING = pytest.mark.skip(reason=f"the recordings of real GPUs are not here ({FOLDER})")
TRACES: list[Any] = some(
    file.name
    for name in ("hta_df_index_resolver", "tracelens_h100_qwen15_05b", "tracelens_mi300_resnet_actckpt")
    for file in FOLDER.glob(f"kineto/{name}.json.gz")
) or [pytest.param("real ones", marks=_LACKING)]
EXPORTS: list[Any] = sorted(FOLDER.glob("nsys/*2gpu*.sqlite"))[:1] or [
    pytest.param("real ones", marks=_LACKING)
]
Row = dict[str, Any]


class Real:
    """A trace as a report, and its complete events."""

    def __init__(self, file: Path, folder: Path) -> None:
        self.file = file
        import_file(file, folder / "run.warplens")
        self.report: Report = open_report(folder / "run.warplens")
        with gzip.open(file, "rt", encoding="utf-8") as opened:
            self.events: list[Row] = [
                event for event in json.load(opened)["traceEvents"] if event.get("ph") == "X"
            ]

    def stat(self, name: str, **options: Any) -> list[Row]:
        found: list[Row] = (
            catalog.find("stats.tables", name).load().table(self.report, Selection(), **options).to_pylist()
        )
        return found

    def of(self, *categories: str) -> list[Row]:
        return [event for event in self.events if event.get("cat") in categories]


@pytest.fixture(scope="module", params=TRACES)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Real:
    return Real(FOLDER / "kineto" / request.param, tmp_path_factory.mktemp("real"))


def test_steps_are_those_of_the_profiler(real: Real) -> None:
    marked = {
        event["name"]: event
        for event in real.of("user_annotation")
        if event["name"].startswith("ProfilerStep#")
    }
    try:
        rows = real.stat("step_breakdown", steps=True)
    except MissingData:
        assert not marked
        return
    assert {row["Name"] for row in rows} == set(marked)
    for row in rows:
        assert row["Duration (ns)"] == pytest.approx(marked[row["Name"]]["dur"] * 1000, abs=2)
        parts = ("Data", "Forward", "Backward", "Optimizer", "Communication", "Wait", "Other")
        assert sum(row[f"{part} (ns)"] for part in parts) == row["Duration (ns)"]
        assert (
            sum(row[f"GPU {state} (ns)"] for state in ("Compute", "Comm", "Memory", "Idle"))
            == row["Duration (ns)"]
        )
    summed = {row["Part"]: row["Total Time (ns)"] for row in real.stat("step_breakdown")}
    assert summed.pop("step") == sum(summed.values()) == sum(row["Duration (ns)"] for row in rows)


def test_operations_launch_what_their_threads_launched_in_them(real: Real) -> None:
    calls = {
        event["args"].get("correlation"): event
        for event in real.of("cuda_runtime", "cuda_driver", "hip_runtime", "Runtime")
    }
    operations = defaultdict(list)
    for event in real.of("cpu_op", "Operator"):
        operations[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    joined = {key: _union(spans) for key, spans in operations.items()}
    inside = 0
    for event in real.of("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"):
        call = calls.get(event["args"].get("correlation"))
        own = joined.get((call["pid"], call["tid"]), []) if call else []
        place = bisect_right(own, (call["ts"], float("inf"))) - 1 if call else -1
        inside += place >= 0 and call is not None and call["ts"] < own[place][1]
    assert sum(row["Launches"] for row in real.stat("op_sum")) == pytest.approx(inside, rel=0.01)
    named = Counter(event["name"] for event in real.of("cpu_op", "Operator"))
    found = {row["Op"]: row["Calls"] for row in real.stat("op_sum")}
    assert found == dict(named)


def _union(spans: list[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for begin, end in sorted(spans):
        if found and begin <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((begin, end))
    return found


def test_memory_is_what_the_allocator_said(real: Real) -> None:
    if not real.report.tables["tensor_memory"]:
        pytest.skip("this trace has no memory events")
    levels = [
        event["args"]["Total Allocated"]
        for event in _instants(real)
        if event.get("name") == "[memory]"
        and event["args"].get("Device Type") == 1
        and "Total Allocated" in event["args"]
    ]
    rows = real.stat("gpu_memory_timeline")
    assert max(row["Tensors (MB)"] for row in rows) == pytest.approx(max(levels) / 1e6)


def _instants(real: Real) -> list[Row]:
    with gzip.open(real.file, "rt", encoding="utf-8") as opened:
        return [event for event in json.load(opened)["traceEvents"] if event.get("ph") == "i"]


def test_the_critical_path_is_whole(real: Real) -> None:
    _whole(real.report)


@pytest.mark.slow
@pytest.mark.parametrize("file", EXPORTS, ids=lambda file: Path(str(file)).name)
def test_the_critical_path_of_an_export_is_whole(file: Path, tmp_path: Path) -> None:
    import_file(file, tmp_path / "run.warplens")
    with open_report(tmp_path / "run.warplens") as report:
        _whole(report)


def _whole(report: Report) -> None:
    graph = build(report, Selection())
    found = path(report, graph)
    start, length = found.all.start[found.on], found.all.length[found.on]
    assert (start[1:] == (start + length)[:-1]).all()
    assert int(length.sum()) + found.before == found.length
    every = found.matching("*")
    assert found.what_if(every, 1.0) == found.length
    assert 0 <= found.what_if(every, 0.0) <= found.length
    assert found.what_if(every, 2.0) >= found.length
    assert found.slack().min() >= 0
    for name in ("kernel", "CPU", "CUDA API"):
        rows = found.matching(name)
        on = set(found.on.tolist())
        spent = sum(int(found.all.length[row]) for row in rows.tolist() if row in on)
        assert found.length - found.what_if(rows, 0.0) <= spent
