"""Cost of recording PyTorch operators per step of a small transformer, beside torch.profiler and emit_itt.

The ways take turns in one process, ours in windows that open and close; the figures are the least CPU time of a step. "An observer that
does nothing" is the floor: what PyTorch adds to an operator by itself as soon as anybody observes it. Needs an environment with PyTorch
(`make peers`, or WARPLENS_PEERS).
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
import contextlib, ctypes, json, os, sys, time
import torch
from torch.autograd.profiler import emit_itt
from torch.profiler import ProfilerActivity, profile
torch.set_num_threads(1)
torch.manual_seed(0)
layer = torch.nn.TransformerEncoderLayer(32, 2, 64, batch_first=True)
model = torch.nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)
optimizer = torch.optim.SGD(model.parameters(), 0.01)
batch = torch.randn(2, 8, 32)
def step():
    optimizer.zero_grad()
    model(batch).sum().backward()
    optimizer.step()
def took():  # of three steps the least: one alone is rarely disturbed
    times = []
    for _ in range(3):
        begin = time.process_time_ns()
        step()
        times.append(time.process_time_ns() - begin)
    return min(times)
class Callback(ctypes.Structure):  # TorchCallback of native/drivers/torch.h
    _fields_ = [("start", ctypes.c_void_p), ("end", ctypes.c_void_p), ("sampling", ctypes.c_double),
                ("scopes", ctypes.c_bool * 10), ("rest", ctypes.c_bool * 70)]
library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
add = library._ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE
add.argtypes, add.restype = [Callback], ctypes.c_uint64
remove = library._ZN2at14removeCallbackEm
remove.argtypes = [ctypes.c_uint64]
@contextlib.contextmanager
def observed():
    handles = []
    for scope in (0, 1, 2, 4, 7):  # as ours: one for each scope
        callback = Callback(sampling=1.0)
        callback.scopes[scope] = True
        handles.append(add(callback))
    yield
    for handle in handles:
        remove(handle)
inputs = sys.argv[3] == "inputs"
ways = {
    "off": contextlib.nullcontext,
    "torch.profiler": lambda: profile(activities=[ProfilerActivity.CPU], record_shapes=inputs),
}
if not inputs:
    ways["nothing"] = observed
if not sys.argv[1]:
    ways["emit_itt"] = emit_itt
else:
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
_PATIENCE_S = 300
_RECORDED = ("-t", "torch", "-s", "none", "-c", "cudaProfilerApi", "--capture-range-end", "repeat")


def _measure(
    python: str, folder: Path, rounds: int, options: tuple[str, ...] | None
) -> tuple[dict[str, float], int]:
    """The least time (ns) of a step in each way, and its operators; of a recorded process with these options, or of a bare one."""
    source = "" if options is None else str(ROOT / "src")
    given = "inputs" if options else ""
    words = ["env", "-u", "PYTHONPATH", python, "work.py", source, str(rounds), given]
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
        timeout=_PATIENCE_S,
    )
    least, operators = json.loads(done.stdout.splitlines()[-1])
    return least, int(operators)


def run(quick: bool) -> list[Row]:
    """A row for each way: what it adds to an operator, beside what torch.profiler adds in the same process."""
    from tests.support.optional_dependencies import LIBRARIES, find_library

    place = find_library(LIBRARIES["pytorch"])
    if place is None:
        return []
    rounds = 12 if quick else 300
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

    profiler, floor = (plain[way] - plain["off"] for way in ("torch.profiler", "nothing"))
    return [
        row("operators", plain["ours"] - plain["off"], profiler, budget=0.45),
        row("an observer that does nothing", floor, profiler),
        row("operators, beyond such an observer", plain["ours"] - plain["nothing"], profiler),
        row("operators and inputs", inputs["ours"] - inputs["off"], inputs["torch.profiler"] - inputs["off"]),
        row("no window open, against a bare process", plain["off"] - bare["off"], profiler),
        row("emit_itt", bare["emit_itt"] - bare["off"], bare["torch.profiler"] - bare["off"]),
    ]
