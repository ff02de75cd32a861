"""A recording of a real GPU becomes a report that has what torch.profiler counted there."""

from __future__ import annotations

import json
import tarfile
from collections import Counter
from typing import Any

import pytest

from tests.gpu.recording import bare
from tests.pieces import ROOT
from warplens.report.finish import finish

pytestmark = pytest.mark.require("native", "duckdb")
GOLDEN = ROOT / "tests" / "golden" / "gpu"


@pytest.fixture(scope="module", name="report")
def _report(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from warplens.query import open as open_report

    folder = tmp_path_factory.mktemp("golden")
    with tarfile.open(GOLDEN / "training.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    finish(folder / "spool", folder / "training.warplens")
    with open_report(folder / "training.warplens") as report:
        yield report


def _rows(report: Any, sql: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = report.sql(sql).to_pylist()
    return rows


def _in_training(table: str, columns: str) -> str:
    """GPU work whose call was made in the range `training`."""
    return f"""
        SELECT {columns} FROM {table} w JOIN cuda_api a ON w.api = a.id
        JOIN nvtx_ranges r ON r.message = 'training' AND a.start BETWEEN r.start AND r."end" """


def test_the_work_is_what_torch_profiler_counted(report: Any) -> None:
    events = json.loads((GOLDEN / "training.json").read_text())["events"]
    kernels: Counter[str] = Counter()
    copies = sets = 0
    for kind, name, count in events:
        if kind == "kernel":
            kernels[bare(name)] += count
        elif kind == "gpu_memcpy":
            copies += count
        else:
            sets += count
    assert Counter(bare(row["demangled"]) for row in _rows(report, _in_training("kernels", "w.demangled"))) == kernels
    assert len(_rows(report, _in_training("memcpys", "w.id"))) == copies
    assert len(_rows(report, _in_training("memsets", "w.id"))) == sets


def test_work_follows_its_call_and_lies_in_its_step(report: Any) -> None:
    rows = _rows(
        report, _in_training("kernels", 'w.start, w."end", a.start AS called, a.name AS call, a.range, a.thread, w.graph_node, w.stream')
    )
    assert all(row["called"] <= row["start"] < row["end"] for row in rows)
    steps = {row["id"]: row["message"] for row in _rows(report, "SELECT id, message FROM nvtx_ranges WHERE message LIKE 'step %'")}
    by_step = Counter(steps[row["range"]] for row in rows if row["range"] is not None)
    assert by_step == {"step 0": 17, "step 1": 17, "step 2": 17}
    backward = [row["thread"] for row in rows if row["range"] is None]  # of a thread without ranges: PyTorch's autograd
    assert (len(backward), len(set(backward))) == (30, 1)
    assert not set(backward) & {row["thread"] for row in rows if row["range"] is not None}
    assert {row["call"] for row in rows if row["graph_node"] is not None} == {"cudaGraphLaunch"}
    assert len({row["stream"] for row in rows}) == 2


def test_nothing_was_lost_and_the_gpu_is_named(report: Any) -> None:
    assert _rows(report, "SELECT code, message FROM diagnostics WHERE severity <> 'info'") == []
    (device,) = _rows(report, "SELECT name, compute_major, multiprocessors FROM devices")
    assert device == {"name": "NVIDIA H200", "compute_major": 9, "multiprocessors": 132}
