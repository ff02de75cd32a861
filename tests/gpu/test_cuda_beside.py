"""Other profilers in the same program: they or we may lose CUPTI, nobody may lose the program, and the report says what happened."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.gpu.recording import record, run

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native", "torch"), pytest.mark.timeout(300)]

_STEPS = """
import json, torch
model = torch.nn.Sequential(*[torch.nn.Linear(1024, 1024) for _ in range(8)]).cuda()
x = torch.randn(256, 1024, device="cuda")
def step():
    model.zero_grad(set_to_none=True)
    model(x).square().mean().backward()
for _ in range(5): step()
torch.cuda.synchronize()
"""
_PROFILED = (
    _STEPS
    + """
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
    for _ in range(20): step()
    torch.cuda.synchronize()
kernels = [event for event in profile.events() if event.device_type == torch.autograd.DeviceType.CUDA and not event.name.startswith("Mem")]
print(json.dumps({"count": len(kernels), "us": sum(event.device_time_total for event in kernels)}))
"""
)
_MARKED = (
    _STEPS
    + """
with torch.cuda.nvtx.range("measured"):
    for _ in range(20): step()
    torch.cuda.synchronize()
"""
)


def test_kernels_agree_with_torch_profiler(tmp_path: Path) -> None:
    theirs = json.loads(run(_PROFILED, tmp_path).stdout.splitlines()[-1])
    recorded = record(_MARKED, tmp_path, "-t", "cuda,nvtx")
    measured = next(row for row in recorded.table("nvtx_ranges") if row["message"] == "measured")
    calls = {row["id"]: row["start"] for row in recorded.table("cuda_api")}
    ours = [
        row for row in recorded.table("kernels") if measured["start"] <= calls[row["api"]] <= measured["end"]
    ]
    assert len(ours) == theirs["count"]
    total = sum(row["end"] - row["start"] for row in ours) / 1e3
    assert total == pytest.approx(theirs["us"], rel=0.05)  # two runs: the GPU's clock differs a little


def test_torch_profiler_beside_us(tmp_path: Path) -> None:
    """CUPTI has one subscriber up to 13.2: torch.profiler is refused, or takes the records, which the report then says."""
    recorded = record(_PROFILED, tmp_path, "-t", "cuda,nvtx")
    theirs: int = json.loads(recorded.done.stdout.splitlines()[0])["count"]
    of_a_step = json.loads(run(_PROFILED, tmp_path).stdout.splitlines()[-1])["count"] // 20
    ours = len(recorded.table("kernels"))
    complete = ours >= 25 * of_a_step
    assert complete or recorded.diagnostics("cupti-stolen"), (theirs, ours, recorded.diagnostics())
    if theirs == 0:
        assert complete
        assert "MULTIPLE_SUBSCRIBERS" in recorded.done.stderr  # torch.profiler says why it has nothing
