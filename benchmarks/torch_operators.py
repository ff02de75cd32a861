"""Cost of recording PyTorch operators per step of a small transformer, beside torch.profiler and emit_itt.

The ways take turns in one process, ours in windows that open and close; the figures are the least CPU time of a step. Needs an environment
with PyTorch (`make peers`, or WARPLENS_PEERS).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

_WORK = """
import contextlib, json, sys, time
import torch
from torch.autograd.profiler import emit_itt
from torch.profiler import ProfilerActivity, profile
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
inputs = torch.randn(2, 8, 32)
def step():
    optimizer.zero_grad()
    model(inputs).sum().backward()
    optimizer.step()
def took():
    begin = time.process_time_ns()
    for _ in range(3):
        step()
    return (time.process_time_ns() - begin) / 3
ways = {
    "off": contextlib.nullcontext,
    "torch.profiler": lambda: profile(activities=[ProfilerActivity.CPU]),
    "emit_itt": emit_itt,
}
if sys.argv[1]:
    sys.path.insert(0, sys.argv[1])
    import warplens
    ways["ours"] = warplens.capture
for _ in range(20):
    step()
with profile(activities=[ProfilerActivity.CPU]) as counting:
    step()
least = {}
for _ in range(int(sys.argv[2])):
    for way, context in ways.items():
        with context():
            step()
            least[way] = min(took(), least.get(way, 1e12))
print(json.dumps([least, len(counting.events())]))
"""
_RECORDED = ("-t", "torch", "-s", "none", "-c", "cudaProfilerApi", "--capture-range-end", "repeat")


def _measure(
    python: str, folder: Path, rounds: int, options: tuple[str, ...] | None
) -> tuple[dict[str, float], int]:
    """The least time (ns) of a step in each way, and its operators; of a recorded process with these options, or of a bare one."""
    source = "" if options is None else str(ROOT / "src")
    words = ["env", "-u", "PYTHONPATH", python, "work.py", source, str(rounds)]
    if options is not None:
        ours = [sys.executable, "-m", "warplens", "profile", "-q", "-f", "-o", "r"]
        words = [*ours, *_RECORDED, *options, *words]
    done = subprocess.run(
        words,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    least, operators = json.loads(done.stdout.splitlines()[-1])
    return least, int(operators)


def run(quick: bool) -> list[Row]:
    """A row for each way: what it adds to an operator, beside what torch.profiler adds in the same process."""
    from tests.support.optional_dependencies import LIBRARIES, find_library

    place = find_library(LIBRARIES["pytorch"])
    if place is None:
        return []
    rounds = 40 if quick else 400
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "work.py").write_text(_WORK)
        bare, operators = _measure(place[0], Path(folder), rounds, options=None)
        plain, _ = _measure(place[0], Path(folder), rounds, options=())
        inputs, _ = _measure(place[0], Path(folder), rounds, options=("--torch-inputs",))
    note = f"{operators} operators in a step of {bare['off'] / 1e6:.2f} ms"

    def row(what: str, spent: float, peer: float, budget: float | None = None) -> Row:
        return Row(
            f"{what}: added to an operator",
            spent / operators,
            "ns",
            peer="torch.profiler",
            peer_value=peer / operators,
            budget=budget,
            note=note,
        )

    profiler = plain["torch.profiler"] - plain["off"]
    return [
        row("operators", plain["ours"] - plain["off"], profiler, budget=0.45),
        row("operators and inputs", inputs["ours"] - inputs["off"], inputs["torch.profiler"] - inputs["off"]),
        row("no window open, against a bare process", plain["off"] - bare["off"], profiler),
        row("emit_itt", bare["emit_itt"] - bare["off"], bare["torch.profiler"] - bare["off"]),
    ]
