"""Whole programs on a GPU, as people run them: data loaders, forks, several processes, a queue that is never empty, windows, metrics."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.gpu.recording import Recorded, environment, launched, record

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native", "torch"), pytest.mark.timeout(300)]


def test_a_data_loader_with_pinned_memory(tmp_path: Path) -> None:
    program = """
import torch
class Data(torch.utils.data.Dataset):
    def __len__(self): return 64
    def __getitem__(self, index): return torch.full((256, 1024), float(index))
if __name__ == "__main__":
    loader = torch.utils.data.DataLoader(Data(), batch_size=8, num_workers=2, pin_memory=True)
    total = torch.zeros((), device="cuda")
    for batch in loader:
        total += batch.to("cuda", non_blocking=True).sum()
    print(float(total.item()))
"""
    recorded = record(program, tmp_path, "-t", "cuda,nvtx")
    assert float(recorded.done.stdout.splitlines()[0]) == 256 * 1024 * sum(range(64))
    batches = [row for row in recorded.table("memcpys") if row["bytes"] == 8 * 256 * 1024 * 4]
    assert [(row["source_kind"], row["kind"]) for row in batches] == [("Pinned", "Host-to-Device")] * 8
    assert not recorded.diagnostics()


def test_a_fork_after_cuda_has_started(tmp_path: Path) -> None:
    program = """
import os, torch
x = torch.zeros(1024, device="cuda")
for _ in range(50): x.add_(1)
torch.cuda.synchronize()
child = os.fork()
if child == 0:
    sum(range(1000000))
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
for _ in range(50): x.add_(1)
torch.cuda.synchronize()
print(int(x[0].item()))
"""
    recorded = record(program, tmp_path, "-t", "cuda,nvtx")
    assert recorded.done.stdout.splitlines()[0] == "100"
    kernels = recorded.table("kernels")
    assert len({row["process"] for row in kernels}) == 1
    assert sum("add" in row["demangled"].lower() for row in kernels) >= 100


def test_two_processes_on_one_gpu(tmp_path: Path) -> None:
    program = """
import subprocess, sys, torch
if len(sys.argv) == 1:
    other = subprocess.Popen([sys.executable, sys.argv[0], "other"])
x = torch.zeros(1024, device="cuda")
for _ in range(500): x.add_(1)
torch.cuda.synchronize()
if len(sys.argv) == 1:
    assert other.wait() == 0
"""
    recorded = record(program, tmp_path, "-t", "cuda,nvtx")
    by_process: dict[int, int] = {}
    for kernel, call in launched(recorded):
        assert call["process"] == kernel["process"]
        by_process[kernel["process"]] = by_process.get(kernel["process"], 0) + 1
    assert len(by_process) == 2
    assert min(by_process.values()) >= 500


def test_sigkill_loses_little_though_the_queue_is_never_empty(tmp_path: Path) -> None:
    """CUPTI returns a buffer when all its work is done: what is lost is an interval, and what was in the queue."""
    program = """
import os, signal, time, torch
x = torch.randn(4096, 4096, device="cuda")
events = []
torch.mm(x, x); torch.cuda.synchronize()
end = time.monotonic() + 3
while time.monotonic() < end:
    torch.mm(x, x)
    events.append(torch.cuda.Event()); events[-1].record()
    if len(events) > 20: events[-20].synchronize()
with torch.cuda.nvtx.range("killed"): pass
print(len(events), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    recorded = record(program, tmp_path, "-t", "cuda,nvtx", status=128 + signal.SIGKILL)
    killed = next(row["start"] for row in recorded.table("nvtx_ranges") if row["message"] == "killed")
    last = max(row["end"] for row in recorded.table("kernels"))
    assert killed - last < 600_000_000, f"the last {(killed - last) / 1e6:.0f} ms of the GPU's work are lost"


def test_a_program_that_does_nothing_is_hardly_flushed_and_nobody_is_suspected(tmp_path: Path) -> None:
    program = """
import time, torch
x = torch.zeros(1024, device="cuda")
for _ in range(3):
    x.add_(1)
    torch.cuda.synchronize()
    time.sleep(2.5)
"""
    recorded = record(program, tmp_path, "-t", "cuda,nvtx")
    flushes = [row for row in recorded.table("overhead") if row["kind"] == "Buffer flush"]
    assert len(flushes) <= 20, f"{len(flushes)} flushes in 7.5 s"
    assert sum("add" in row["demangled"].lower() for row in recorded.table("kernels")) >= 3
    assert not recorded.diagnostics()


def test_the_end_of_a_program_waits_for_its_last_work_only(tmp_path: Path) -> None:
    """Nothing is waited for where nothing runs; what is queued is waited for, but for a fifth of a second at most."""
    took = {}
    for name, last in (("idle", "torch.cuda.synchronize()"), ("queued", "pass")):
        program = f"""
import torch
x = torch.randn(4096, 4096, device="cuda")
for _ in range(20): torch.mm(x, x)
{last}
torch.cuda.nvtx.mark("end")
"""
        (tmp_path / name).mkdir()
        recorded = record(program, tmp_path / name, "-t", "cuda,nvtx")
        assert (
            sum(
                "gemm" in row["demangled"].lower() or "nvjet" in row["demangled"]
                for row in recorded.table("kernels")
            )
            == 20
        )
        end = next(row["start"] for row in recorded.table("nvtx_marks") if row["message"] == "end")
        took[name] = (recorded.table("processes")[0]["end"] - end) / 1e6
    print(took)
    assert took["queued"] < took["idle"] + 1000


def _warplens(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "warplens", *words]
    return subprocess.run(
        command, cwd=folder, env=environment(), capture_output=True, text=True, check=True, timeout=60
    )


def test_windows_that_another_terminal_opens(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text("""
import os, time, torch
x = torch.zeros(1024, device="cuda")
torch.cuda.synchronize()
open("ready", "w").close()
while not os.path.exists("stop"):
    x.add_(1)
    torch.cuda.synchronize()
    time.sleep(0.001)
""")
    name = f"gpu-{os.getpid()}"
    command = [
        sys.executable,
        "-m",
        "warplens",
        "launch",
        "--light",
        f"--session-new={name}",
        "-o",
        "run",
        sys.executable,
        "program.py",
    ]
    running = subprocess.Popen(command, cwd=tmp_path, env=environment(), stdout=subprocess.DEVNULL)
    try:
        until = time.monotonic() + 60
        while not (tmp_path / "ready").exists() and time.monotonic() < until:
            time.sleep(0.1)
        for _ in range(2):
            _warplens(tmp_path, "start", "--session", name)
            time.sleep(0.7)
            _warplens(tmp_path, "stop", "--session", name)
            time.sleep(0.3)
    finally:
        (tmp_path / "stop").touch()
        running.wait(60)
    recorded = Recorded(tmp_path / "run.warplens", subprocess.CompletedProcess([], 0, "", ""))
    windows = [(row["start"], row["end"]) for row in recorded.table("capture_windows")]
    calls = [call["start"] for _, call in launched(recorded)]
    assert len(windows) == 2
    by_window = [sum(start <= call <= end for call in calls) for start, end in windows]
    assert min(by_window) > 50
    assert sum(by_window) == len(calls), "work between the windows was recorded"


@pytest.mark.parametrize("kind", ["nvml", "gpm"])
def test_metrics_of_a_busy_gpu(tmp_path: Path, kind: str) -> None:
    program = """
import time, torch
x = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
end = time.monotonic() + 3
while time.monotonic() < end:
    torch.mm(x, x); torch.cuda.synchronize()
"""
    recorded = record(
        program, tmp_path, "-t", "cuda,nvtx", f"--gpu-metrics={kind}", "--gpu-metrics-frequency=20"
    )
    rows = recorded.table("gpu_metrics")
    highest = {
        name: max(row["value"] for row in rows if row["metric"] == name)
        for name in {row["metric"] for row in rows}
    }
    assert highest["GPU Utilization"] >= 90, highest
    if kind == "gpm" and not recorded.diagnostics("gpu-metrics-none"):
        assert highest["Tensor Active"] > 20, highest
