"""Regions lie inside their kernel's slice on the common timeline, and the stated uncertainty is small."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gpu.recording import record
from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native", "numpy"), pytest.mark.timeout(600)]
LAUNCHES = 100
MOST = (
    10_000  # ns; simulated launches of the same lead and tail came to 0.8 us, and one launch alone to 3.3 us
)
_PROGRAM = f"""
from warplens import intrakernel
from warplens.intrakernel.device.cuda_kernels import GpuKernels, compile_gpu
from warplens.intrakernel.driver import driver
from warplens.intrakernel.dsl import cuda

source = open({str(ROOT / "tests" / "dsl" / "programs" / "cuda_recording.cu")!r}).read()
buffer = intrakernel.allocate(grid=64, warps=4, slots=64, tags=cuda.tags(source), device="cuda", library="cuda", name="profile")
major, minor = driver().capability(0)
kernels = GpuKernels(compile_gpu(source, f"sm_{{major}}{{minor}}", cuda.bind(buffer, generation=True).options), buffer.pointer)
for _ in range({LAUNCHES}):
    with buffer.launch("regions"):
        kernels.launch("regions", 64, 128, 20, buffer)
    buffer.read()
"""


def test_regions_lie_inside_their_kernels(tmp_path: Path) -> None:
    from warplens.intrakernel.device.cuda_kernels import gpu_compiler

    if gpu_compiler() is None:
        pytest.skip("neither nvcc nor cuda-bindings is installed")
    recorded = record(_PROGRAM, tmp_path, "-t", "cuda,nvtx")
    kernels = {row["id"]: row for row in recorded.table("kernels")}
    launches = recorded.table("intrakernel_launches")
    assert len(launches) == LAUNCHES
    units = recorded.table("intrakernel_units")
    for launch in launches:
        kernel = kernels[launch["kernel"]]
        assert (launch["events"], launch["dropped"]) == (64 * 4 * 40, 0)
        assert launch["merged"] == "kernel"
        assert 0 <= launch["uncertainty"] <= MOST
        slack = launch["uncertainty"]
        mine = [unit for unit in units if unit["launch"] == launch["id"]]
        assert len(mine) == 64 * 4
        assert min(unit["start"] for unit in mine) >= kernel["start"] - slack
        assert max(unit["end"] for unit in mine) <= kernel["end"] + slack
