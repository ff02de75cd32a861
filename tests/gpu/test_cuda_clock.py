"""GPU times are on our clock: over very many launches no kernel begins before its launch, and none ends after it was waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.recording import record

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native", "torch"), pytest.mark.timeout(600)]

LAUNCHES = 1_000_000
_PROGRAM = f"""
import time, torch
x = torch.zeros(32, device="cuda")
marks = []
for block in range(100):
    for _ in range({LAUNCHES} // 100):
        x.add_(1)
    torch.cuda.synchronize()
    torch.cuda.nvtx.mark("settled")
    if block == 50:
        time.sleep(20)  # clocks of an idle GPU drift, too
"""


def test_a_million_launches(tmp_path: Path) -> None:
    compute = pytest.importorskip("pyarrow.compute")
    parquet = pytest.importorskip("pyarrow.parquet")
    recorded = record(_PROGRAM, tmp_path, "-t", "cuda,nvtx", timeout=560)
    tables = recorded.report / "tables"
    kernels = parquet.read_table(tables / "kernels", columns=["start", "end", "api"])
    calls = parquet.read_table(tables / "cuda_api", columns=["id", "start"]).rename_columns(["api", "called"])
    assert kernels.num_rows >= LAUNCHES
    joined = kernels.join(calls, "api")
    assert joined.num_rows == kernels.num_rows
    early = compute.subtract(joined.column("called"), joined.column("start"))
    assert compute.max(early).as_py() <= 0, "a kernel began before its launch"
    assert compute.min(compute.subtract(kernels.column("end"), kernels.column("start"))).as_py() > 0
    settled = sorted(row["start"] for row in recorded.table("nvtx_marks") if row["message"] == "settled")
    assert len(settled) == 100
    assert compute.max(kernels.column("end")).as_py() <= settled[-1] + 1_000_000
    assert not recorded.diagnostics("cuda-clock", "cuda-invalid-records", "cupti-dropped-records")
