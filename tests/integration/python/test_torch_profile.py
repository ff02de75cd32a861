"""`warplens.torch`: steps by a schedule, modules, operators as NVTX, and what torch.compile makes of it."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import warplens
from tests.integration.python.test_torch_ops import rows, run
from tests.support.optional_dependencies import LIBRARIES, find_library
from tests.support.programs.launching import environment

pytestmark = [pytest.mark.require("native", "pytorch"), pytest.mark.timeout(600)]

SOURCE = Path(__file__).parents[3] / "src"
MODEL = f"""
import ctypes, json, os, sys
sys.path.insert(0, {str(SOURCE)!r})
import torch, warplens.torch
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs, labels = torch.randn(16, 8), torch.randint(0, 4, (16,))
def train():
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(inputs), labels).backward()
    optimizer.step()
schedule = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=2)
"""
BY_ITSELF = (
    MODEL
    + """
library = ctypes.CDLL(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))
observed = library._ZN2at18hasGlobalCallbacksEv
observed.restype = ctypes.c_bool
ready = []
def save(prof):
    ready.append([prof.step_num, prof.report.name])
    prof.export_chrome_trace(f"trace{len(ready)}.json.gz")
with warplens.torch.profile(
    schedule=schedule, on_trace_ready=save, record_shapes=True, with_modules=True, output="run"
) as prof:
    for step in range(9):
        if prof.step_num % 4 < 2:
            inputs.sinh()
        train()
        prof.step()
print(json.dumps({"ready": ready, "observed": observed(), "hooks": len(model[0]._forward_hooks)}))
"""
)


def alone(folder: Path, program: str) -> Any:
    """What a program prints, in an environment with PyTorch and with what our reader needs."""
    place = find_library(LIBRARIES["pytorch"])
    assert place is not None
    (folder / "program.py").write_text(program, encoding="utf-8")
    paths = os.pathsep.join([str(SOURCE), sysconfig.get_paths()["purelib"]])
    command = [place[0], "program.py"]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment(PYTHONPATH=paths),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_schedule_makes_a_report_for_each_cycle(tmp_path: Path) -> None:
    told = alone(tmp_path, BY_ITSELF)
    assert told["ready"] == [[4, "run.warplens"], [8, "run-2.warplens"]]
    assert told["observed"] is False  # PyTorch's callbacks are removed at the end
    assert told["hooks"] == 0
    for name, first in (("run.warplens", 2), ("run-2.warplens", 6)):
        report = tmp_path / name
        steps = "SELECT message::VARCHAR FROM nvtx_ranges WHERE message LIKE 'ProfilerStep#%' ORDER BY start"
        assert rows(report, steps) == [(f"ProfilerStep#{first}",), (f"ProfilerStep#{first + 1}",)]
        counts = dict(rows(report, "SELECT name::VARCHAR, count(*) FROM ops GROUP BY ALL"))
        assert counts["aten::addmm"] == 4
        assert counts["AddmmBackward0"] == 4
        assert "aten::sinh" not in counts
    with warplens.open(tmp_path / "run.warplens") as opened:
        asked = "SELECT DISTINCT shapes::VARCHAR AS shapes FROM ops WHERE name = 'aten::addmm' ORDER BY 1"
        shapes = opened.sql(asked).column("shapes").to_pylist()
        assert [json.loads(text) for text in shapes] == [
            [[16], [16, 8], [8, 16], [], []],
            [[4], [16, 16], [16, 4], [], []],
        ]
        modules = {row["Module"]: row for row in opened.stats("module_sum").to_pylist()}
        assert {path: (row["Calls"], row["Class"]) for path, row in modules.items()} == {
            "Sequential": (2, "Sequential"),
            "0": (2, "Linear"),
            "1": (2, "ReLU"),
            "2": (2, "Linear"),
        }
        assert all(modules[path]["Backward Self (ns)"] > 0 for path in "012")
        parts = {row["Part"]: row["Steps"] for row in opened.stats("step_breakdown").to_pylist()}
        assert parts.items() >= {"step": 2, "forward": 2, "backward": 2, "optimizer": 2}.items()
        # Operators are no rows of the NVTX summary; what PyTorch and the program named is there.
        ranges = opened.stats("nvtx_sum").column("Range").to_pylist()
        assert {":ProfilerStep#2", ":Optimizer.step#SGD.step", "torch.nn:0"} <= set(ranges)
        assert not [name for name in ranges if name.startswith("pytorch:")]
    with gzip.open(tmp_path / "trace1.json.gz", "rt") as file:
        trace = json.load(file)
    assert {"schemaVersion", "deviceProperties", "traceEvents", "baseTimeNanoseconds"} <= trace.keys()
    events = {(event.get("cat"), event["name"]): event for event in trace["traceEvents"]}
    operator = events["cpu_op", "aten::addmm"]
    assert {"ph", "pid", "tid", "ts", "dur", "args"} <= operator.keys()
    assert {"External id", "Sequence number", "Input Dims", "Input type"} <= operator["args"].keys()
    assert {("user_annotation", "ProfilerStep#2"), ("user_annotation", "Optimizer.step#SGD.step")} <= {
        *events
    }
    assert ("fwdbwd", "fwdbwd") in events


LAUNCHED = (
    MODEL
    + """
with warplens.torch.profile(schedule=schedule) as prof:
    for step in range(9):
        if prof.step_num == 2:
            with warplens.torch.emit_nvtx():
                train()
        train()
        prof.step()
"""
)


def test_a_launched_run_has_a_window_for_each_cycle_and_operators_as_nvtx(tmp_path: Path) -> None:
    repeat = ("-c", "cudaProfilerApi", "--capture-range-end", "repeat")
    report = run(tmp_path, LAUNCHED, "-t", "nvtx", *repeat)
    assert rows(report, "SELECT count(*) FROM capture_windows") == [(2,)]
    steps = "SELECT message::VARCHAR FROM nvtx_ranges WHERE message LIKE 'ProfilerStep#%' ORDER BY start"
    assert rows(report, steps) == [(f"ProfilerStep#{number}",) for number in (2, 3, 6, 7)]
    emitted = rows(
        report,
        """SELECT message::VARCHAR, count(*), count(DISTINCT thread), any_value(domain) FROM nvtx_ranges
           WHERE message IN ('aten::addmm', 'AddmmBackward0') GROUP BY ALL ORDER BY ALL""",
    )
    assert emitted == [("AddmmBackward0", 2, 1, None), ("aten::addmm", 2, 1, None)]
    assert rows(report, "SELECT count(*) FROM nvtx_ranges WHERE unfinished") == [(0,)]


COMPILED = (
    MODEL
    + """
import io, pickle
from torch._dynamo.utils import counters
graphs = []
def backend(graph, inputs):
    graphs.append(graph)
    return graph.forward
class Block(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = torch.nn.Linear(8, 8)
    def forward(self, x):
        return torch.relu(self.linear(x))
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = Block(), torch.nn.Linear(8, 2)
    def forward(self, x):
        return self.second(self.first(x))
def compiled(way, model):
    if way == "model":
        return torch.compile(model, backend=backend)
    if way == "function":
        return torch.compile(lambda x: model(x).sum(), backend=backend)
    (model if way == "in place" else model.first).compile(backend=backend)
    return model
def counts(way, moment):
    torch._dynamo.reset(); graphs.clear(); counters.clear()
    model, names = Net(), None
    call = compiled(way, model)
    for now in ("before", "within", "behind"):
        if now == "behind" and names is not None:
            names.remove()
        if now == moment:
            names = warplens.torch.name_modules(call if isinstance(call, torch.nn.Module) else model)
        for _ in range(2):
            call(inputs).sum().backward()
    return [len(graphs), sum(counters["graph_break"].values()), dict(counters["frames"])]
ways = ("model", "function", "in place", "part")
result = {way: [counts(way, moment) for moment in ("never", "before", "within")] for way in ways}
saved = io.BytesIO()
with warplens.torch.name_modules(model):
    torch.save(model, saved)
text = saved.getvalue()
saved.seek(0)
same = torch.equal(torch.load(saved, weights_only=False)(inputs), model(inputs))
print(json.dumps({"counts": result, "foreign": b"warplens" not in text, "same": same}))
"""
)


def test_compiled_models_are_compiled_as_without_names(tmp_path: Path) -> None:
    told = alone(tmp_path, COMPILED)
    for way, (never, *named) in told["counts"].items():
        assert never[0] > 0, way
        assert named == [never] * len(named), way
    assert told["foreign"]
    assert told["same"]
