"""Operators of PyTorch as the agent records them, in programs that know nothing of it."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.optional_dependencies import LIBRARIES, find_library
from tests.support.programs.launching import COMMAND, environment, warplens
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(600)]

TRAINING = """
import json, os, signal, sys, threading
import torch
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters())
batches = DataLoader(TensorDataset(torch.randn(64, 8), torch.randint(0, 4, (64,))), batch_size=16)
def epoch():
    for inputs, labels in batches:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
"""

BESIDE_ITS_OWN = (
    TRAINING
    + """
from torch.profiler import ProfilerActivity, profile, record_function
epoch()
with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as profiler:
    with record_function("window"):
        epoch()
        epoch()
rows = [[event.name, event.sequence_nr, event.scope == 1, event.input_shapes] for event in profiler.events()]
json.dump(rows, open("expected.json", "w"))
"""
)


def run(folder: Path, program: str, *options: str, exit_status: int = 0, python: str | None = None) -> Path:
    """Record `program` with the options, in an environment with PyTorch; return the report."""
    if python is None:
        place = find_library(LIBRARIES["pytorch"])
        assert place is not None
        python = place[0]
    (folder / "program.py").write_text(program, encoding="utf-8")
    report = folder / "run.warplens"
    alone = ["env", "-u", "PYTHONPATH", python, "program.py"]
    done = warplens(
        "profile", "-q", "-f", "-o", report, *options, "--", *alone, cwd=folder, env=environment()
    )
    assert done.returncode == exit_status, done.stderr
    return report


def rows(report: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with open_report(report) as opened:
        return [tuple(row.values()) for row in opened.sql(sql).to_pylist()]


@pytest.mark.require("pytorch")
def test_operators_are_those_of_torch_profiler(tmp_path: Path) -> None:
    report = run(tmp_path, BESIDE_ITS_OWN, "-t", "torch", "--torch-inputs")
    expected = json.loads((tmp_path / "expected.json").read_text())
    ours = rows(
        report,
        """SELECT o.name::VARCHAR, coalesce(o.sequence, -1), o.shapes::VARCHAR FROM ops o, (SELECT * FROM ops WHERE name = 'window') w
           WHERE o.start >= w.start AND o.end <= w.end""",
    )
    assert len(ours) > 1000
    assert Counter(name for name, *_ in ours) == Counter(name for name, *_ in expected)
    # Its profiler gives the number of a node to the engine's function around it, too.
    assert _numbers(ours) == _numbers(expected)
    shaped = {(name, json.dumps(shapes)) for name, _, _, shapes in expected if name == "aten::addmm"}
    assert {(name, json.dumps(json.loads(text))) for name, _, text in ours if name == "aten::addmm"} == shaped


def _numbers(events: Iterable[Sequence[Any]]) -> Counter[tuple[str, int]]:
    return Counter((name, number) for name, number, *_ in events if "evaluate_function" not in name)


@pytest.mark.require("pytorch")
def test_backward_knows_its_forward(tmp_path: Path) -> None:
    report = run(tmp_path, TRAINING + "epoch()\n", "-t", "torch")
    pairs = rows(
        report,
        """SELECT b.name::VARCHAR, f.name::VARCHAR, count(*) FROM ops b JOIN ops f ON b.forward = f.range GROUP BY ALL""",
    )
    assert ("AddmmBackward0", "aten::addmm", 8) in pairs
    assert ("ReluBackward0", "aten::relu", 4) in pairs
    backward = dict(rows(report, "SELECT name::VARCHAR, bool_and(backward) FROM ops GROUP BY ALL"))
    assert backward["AddmmBackward0"]
    assert backward["aten::threshold_backward"]
    assert not backward["aten::addmm"]


@pytest.mark.require("pytorch")
def test_every_thread_and_child_is_seen(tmp_path: Path) -> None:
    program = (
        TRAINING
        + """
other = threading.Thread(target=lambda: [torch.ones(3).sinh() for _ in range(10)])
other.start(); other.join()
with torch.profiler.record_function("open in the parent"):
    child = os.fork()
    if child == 0:
        [torch.ones(3).cosh() for _ in range(5)]
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
"""
    )
    report = run(tmp_path, program, "-t", "torch")
    counts = rows(
        report,
        """SELECT name::VARCHAR, count(*), count(DISTINCT process), count(DISTINCT thread) FROM ops
           WHERE name IN ('aten::sinh', 'aten::cosh', 'open in the parent') GROUP BY ALL ORDER BY ALL""",
    )
    assert counts == [("aten::cosh", 5, 1, 1), ("aten::sinh", 10, 1, 1), ("open in the parent", 2, 2, 2)]
    where = rows(
        report,
        "SELECT count(DISTINCT process) FROM ops WHERE name IN ('aten::sinh', 'aten::cosh') AND NOT backward",
    )
    assert where == [(2,)]


@pytest.mark.require("pytorch")
def test_open_operators_of_a_killed_program_are_kept(tmp_path: Path) -> None:
    program = (
        TRAINING
        + """
with torch.profiler.record_function("killed in here"):
    torch.ones(3).add(1)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    )
    report = run(tmp_path, program, "-t", "torch", exit_status=137)
    assert rows(
        report,
        """SELECT o.name::VARCHAR, r.unfinished, o.sequence FROM ops o JOIN nvtx_ranges r ON o.range = r.id
           WHERE o.name = 'killed in here' OR r.unfinished""",
    ) == [("killed in here", True, None)]


WINDOWS = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parents[3] / 'src')!r})\n"
    + TRAINING
    + """
import warplens
from torch.autograd.profiler import record_function
shared, gate = torch.ones(3), threading.Barrier(3)
def both(operator):
    gate.wait(); [operator(shared, 1) for _ in range(50)]; gate.wait()
def work():
    for operator in [torch.add, torch.mul, torch.sub, torch.div, torch.atan2]:
        both(operator if operator is not torch.atan2 else lambda one, two: torch.atan2(one, one))
workers = [threading.Thread(target=work) for _ in range(2)]
[worker.start() for worker in workers]
def run():
    gate.wait(); gate.wait()
run()
with record_function("before and in"):
    window = warplens.capture(); window.__enter__()
    shared.neg()
run()
with record_function("in and after"):
    with record_function("ends after"):
        window.__exit__(None, None, None)
        with record_function("after"):
            shared.cos()
run()
with record_function("between"):
    shared.sin()
with warplens.capture():
    with record_function("second"):
        shared.exp()
    run()
    child = os.fork()
    if child == 0:
        shared.log()
        os._exit(0)
    os.waitpid(child, 0)
run()
child = os.fork()
if child == 0:
    shared.tan()
    with warplens.capture():
        shared.tanh()
    os._exit(0)
os.waitpid(child, 0)
[worker.join() for worker in workers]
"""
)


@pytest.mark.require("pytorch")
def test_only_windows_have_them(tmp_path: Path) -> None:
    repeat = ("-c", "cudaProfilerApi", "--capture-range-end", "repeat")
    report = run(tmp_path, WINDOWS, "-t", "torch", *repeat)
    counts = dict(rows(report, "SELECT name::VARCHAR, count(*) FROM ops GROUP BY ALL"))
    outside = {f"aten::{name}" for name in ("add", "sub", "atan2", "cos", "sin", "tan")}
    assert not counts.keys() & {*outside, "before and in", "after", "between"}
    expected = {
        **dict.fromkeys(("aten::mul", "aten::div"), 100),
        **dict.fromkeys(("aten::neg", "aten::exp", "aten::log", "aten::tanh"), 1),
        **dict.fromkeys(("in and after", "ends after", "second"), 1),
    }
    assert {name: counts.get(name) for name in expected} == expected
    # What was open at the window's end has its own end.
    assert rows(report, "SELECT count(*) FROM nvtx_ranges WHERE unfinished") == [(0,)]


@pytest.mark.require("pytorch")
def test_operators_are_recorded_by_default_but_not_with_light(tmp_path: Path) -> None:
    place = find_library(LIBRARIES["pytorch"])
    assert place is not None
    (tmp_path / "program.py").write_text(TRAINING + "epoch()\n", encoding="utf-8")
    recorded = []
    for options in ([], ["--light"]):
        report = tmp_path / f"run{len(options)}.warplens"
        program = ["env", "-u", "PYTHONPATH", place[0], "program.py"]
        words = [*COMMAND, "profile", "-q", "-o", str(report), *options, *program]
        subprocess.run(words, cwd=tmp_path, env=environment(), check=True, capture_output=True)
        recorded.append(rows(report, "SELECT count(*) > 0 FROM ops")[0][0])
    assert recorded == [True, False]


LIKE_IT = """
import ctypes, time
ctypes.CDLL("./torch/lib/libtorch_cpu.so")
time.sleep(0.5)
print("goes on")
"""


@pytest.mark.require("gcc")
@pytest.mark.parametrize(
    ("version", "why"),
    [
        ("2.3.1+cpu", "operators are recorded from PyTorch 2.6 on"),
        ("2.13.0+cpu", "it does not export the functions that observe operators"),
        ("9.0.0", "it does not export the functions that observe operators"),
    ],
)
def test_a_library_that_is_unlike_it_is_left_alone(tmp_path: Path, version: str, why: str) -> None:
    library = tmp_path / "torch" / "lib" / "libtorch_cpu.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "torch" / "version.py").write_text(f"__version__ = '{version}'\n", encoding="utf-8")
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(library)],
        input=b"int nothing;",
        check=True,
    )
    report = run(tmp_path, LIKE_IT, "-t", "torch", python="python3")
    messages = [
        text for (text,) in rows(report, "SELECT message FROM diagnostics WHERE code = 'torch-unknown'")
    ]
    assert len(messages) == 1
    assert f"{version}: {why}" in messages[0]
