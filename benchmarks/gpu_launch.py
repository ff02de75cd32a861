"""What recording CUDA adds to each launch, and to a training step, on a real GPU: the same program with and without us, in turn."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness import Row

_Found = dict[str, float]

ROOT = Path(__file__).resolve().parent.parent
NEEDS = "gpu"  # a piece of tests/pieces.py
LAUNCH_BUDGET_US = 2.0
STEP_BUDGET = 1.05

# Starting PyTorch and CUDA takes longer than what is measured, so each process measures all.
_HEAD = """
import json, time, torch
found = {}
def measured(what, work, count):
    work(count // 10 + 1); torch.cuda.synchronize()
    begin = time.perf_counter()
    work(count); torch.cuda.synchronize()
    found[what] = (time.perf_counter() - begin) / count * 1e6
"""
# µs per operation: a launch, or a replay.
PROGRAMS = {
    "launch of a tiny kernel": """
x = torch.zeros(32, device="cuda")
def work(count):
    for _ in range(count): x.add_(1)
measured(WHAT, work, 100_000)
""",
    "launch in an eager model": """
def block(): return torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))
model = torch.nn.Sequential(*[block() for _ in range(12)]).cuda()
x = torch.randn(64, 256, device="cuda")
launches = 36
def work(count):
    with torch.no_grad():
        for _ in range(count // launches): model(x)
measured(WHAT, work, 36_000)
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
measured(WHAT, work, 5_000)
""",
}
_STEP = "training step"
PROGRAMS[_STEP] = """
layer = torch.nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, norm_first=True)
model = torch.nn.TransformerEncoder(layer, 8, enable_nested_tensor=False).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
x = torch.randn(16, 512, 1024, device="cuda", dtype=torch.bfloat16)
def work(count):
    for _ in range(count):
        optimizer.zero_grad(set_to_none=True)
        model(x).float().square().mean().backward()
        optimizer.step()
measured(WHAT, work, 60)
"""
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


def run(quick: bool) -> Iterator[Row]:
    """Time the programs bare and in each mode, in turn."""
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as name:
        bare, timed = _timed(Path(name), 2 if quick else 5)
    for what in PROGRAMS:
        alone = [one[what] for one in bare]
        for mode, found in timed.items():
            values = [one[what] for one in found]
            kept = mode == "kernels and API"
            if what == _STEP:
                budget = STEP_BUDGET if kept else None
                yield Row(f"{what}, {mode}", statistics.median(values), "µs", "bare", statistics.median(alone), budget)
                continue
            added = statistics.median(value - other for value, other in zip(values, alone, strict=True))
            note = f"bare {statistics.median(alone):.2f} µs"
            yield Row(f"{what}, {mode}: added", added, "µs", budget=LAUNCH_BUDGET_US if kept else None, budget_on="value", note=note)


def _timed(folder: Path, rounds: int) -> tuple[list[_Found], dict[str, list[_Found]]]:
    """Return µs per operation of each program and round: bare, and by mode."""
    program = folder / "program.py"
    texts = [text.replace("WHAT", repr(what)) for what, text in PROGRAMS.items()]
    program.write_text("".join([_HEAD, *texts, "print(json.dumps(found))\n"]), encoding="utf-8")
    bare: list[_Found] = []
    timed: dict[str, list[_Found]] = {mode: [] for mode in MODES}
    for _ in range(rounds):
        bare.append(_output([sys.executable, str(program)], folder))
        for mode, options in MODES.items():
            command = [sys.executable, "-m", "warplens", "profile", "-q", "-f", "-o", str(folder / "run"), *options, "--"]
            timed[mode].append(_output([*command, sys.executable, str(program)], folder))
    return bare, timed


def _output(command: list[str], folder: Path) -> _Found:
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True, timeout=300)
    found: _Found = json.loads(done.stdout.splitlines()[0])
    return found
