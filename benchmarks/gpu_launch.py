"""What recording CUDA adds to each launch, and to a training step, on a real GPU: the same program with and without us, in turn."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row

ROOT = Path(__file__).resolve().parent.parent
NEEDS = "gpu"  # a piece of tests/pieces.py
LAUNCH_BUDGET_US = 2.0
STEP_BUDGET = 1.05

_HEAD = """
import sys, time, torch
def measured(work, count):
    work(count // 10 + 1); torch.cuda.synchronize()
    begin = time.perf_counter()
    work(count); torch.cuda.synchronize()
    print((time.perf_counter() - begin) / count * 1e6)
"""
# Each prints µs per operation; the second word of the row says what an operation is.
PROGRAMS = {
    "launch of a tiny kernel": """
x = torch.zeros(32, device="cuda")
def work(count):
    for _ in range(count): x.add_(1)
measured(work, 100_000)
""",
    "launch in an eager model": """
def block(): return torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
model = torch.nn.Sequential(*[block() for _ in range(12)]).cuda()
x = torch.randn(64, 256, device="cuda")
launches = 36
def work(count):
    with torch.no_grad():
        for _ in range(count // launches): model(x)
measured(work, 36_000)
""",
    "replay of a graph of 100 kernels": """
x = torch.zeros(32, device="cuda")
side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
with torch.cuda.stream(side): x.add_(1)
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    for _ in range(100): x.add_(1)
def work(count):
    for _ in range(count): graph.replay()
measured(work, 5_000)
""",
}
_STEP = """
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True)
model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
x = torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16)
def work(count):
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()
        optimizer.step()
measured(work, 60)
"""
_ALL = ("--cuda-trace-all-apis=true", "--cuda-memory-usage=true", "--cuda-event-trace=true")
MODES = {
    "NVTX alone": ("-t", "nvtx"),
    "kernels and API": ("-t", "cuda,nvtx"),
    "kernels and API, graphs node by node": ("-t", "cuda,nvtx", "--cuda-graph-trace=node"),
    "every API call, memory and events": (
        "-t",
        "cuda,nvtx",
        "--cuda-trace-all-apis=true",
        "--cuda-memory-usage=true",
        "--cuda-event-trace=true",
    ),
}


def run(quick: bool) -> list[Row]:
    """Time each program bare and in each mode."""
    rounds = 3 if quick else 7
    rows = []
    with tempfile.TemporaryDirectory(prefix="warpline-bench-") as name:
        folder = Path(name)
        for what, text in PROGRAMS.items():
            bare, timed = _timed(text, folder, rounds)
            for mode, values in timed.items():
                added = statistics.median(value - alone for value, alone in zip(values, bare, strict=True))
                budget = LAUNCH_BUDGET_US if mode == "kernels and API" else None
                note = f"bare {statistics.median(bare):.2f} µs"
                rows.append(Row(f"{what}, {mode}: added", added, "µs", budget=budget, budget_on="value", note=note))
        bare, timed = _timed(_STEP, folder, rounds)
        for mode, values in timed.items():
            budget = STEP_BUDGET if mode == "kernels and API" else None
            rows.append(Row(f"training step, {mode}", statistics.median(values), "µs", "bare", statistics.median(bare), budget))
    return rows


def _timed(text: str, folder: Path, rounds: int) -> tuple[list[float], dict[str, list[float]]]:
    """Return µs per operation of each round: bare, and by mode."""
    program = folder / "program.py"
    program.write_text(_HEAD + text, encoding="utf-8")
    bare: list[float] = []
    timed: dict[str, list[float]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        bare.append(_output([sys.executable, str(program)], folder))
        for mode, options in MODES.items():
            command = [sys.executable, "-m", "warpline", "profile", "-q", "-f", "-o", str(folder / "run"), *options, "--"]
            timed[mode].append(_output([*command, sys.executable, str(program)], folder))
    return bare, timed


def _output(command: list[str], folder: Path) -> float:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    return float(done.stdout.splitlines()[0])
