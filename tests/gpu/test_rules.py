"""PyTorch programs with a planted mistake and their fixed twins on a real GPU: what `warplens analyze` finds, and what fixing it wins.

The saving, as the programs measure it, lies between half of what was expected and 1.1 of what was stated at most.
"""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests.gpu.recording import Recorded, record

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native"), pytest.mark.timeout(600)]

HEAD = """
import sys, time, torch
planted, steps = sys.argv[1] == "mistake", 60
def busy(ms):
    end = time.perf_counter() + ms / 1000
    while time.perf_counter() < end: pass
def run(step):
    for _ in range(5): step(); torch.cuda.synchronize()
    begin = time.perf_counter()
    for _ in range(steps): step()
    torch.cuda.synchronize()
    print("took", int((time.perf_counter() - begin) * 1e9))
x = torch.randn(4096, 4096, device="cuda")
"""
PROGRAMS = {
    "unneeded_sync": """
def step():
    y = x
    for _ in range(4): y = y @ x
    total = y.sum()
    if planted: total.item()
    busy(4)
run(step)
""",
    "cuda_memcpy_async": """
data = torch.randn(1 << 20)
if not planted: data = data.pin_memory()
target = torch.empty_like(data, device="cuda")
def step():
    target.copy_(data, non_blocking=True)
    busy(4)
    (x @ x).sum()
run(step)
""",
    "pageable_memory": """
data = torch.randn(16 << 20)
if not planted: data = data.pin_memory()
target = torch.empty_like(data, device="cuda")
def step():
    target.copy_(data, non_blocking=True)
    (x @ x).sum()
    busy(1)
run(step)
""",
    "small_kernels": """
small = torch.zeros(64, device="cuda")
def work():
    for _ in range(400): small.add_(1)
work(); torch.cuda.synchronize()
graph = torch.cuda.CUDAGraph()
with torch.cuda.graph(graph): work()
run(work if planted else graph.replay)
""",
    "allocator_churn": """
def step():
    y = torch.empty(64 << 20, device="cuda").add_(1)
    (x @ x).sum()
    del y
    if planted: torch.cuda.empty_cache()
run(step)
""",
}


def took(recorded: Recorded) -> int:
    """What the program measured, ns."""
    found = re.search(r"^took (\d+)$", recorded.done.stdout, re.MULTILINE)
    assert found, recorded.done.stdout
    return int(found[1])


def findings(recorded: Recorded, rule: str) -> tuple[Any, ...]:
    """What a rule finds in the report."""
    pytest.importorskip("duckdb")
    from warplens.report import Selection
    from warplens.report import open as open_report
    from warplens.rules.judging import judge

    with open_report(recorded.report) as report:
        judgement = judge(report, Selection(), [rule])
    assert not judgement.not_judged
    return judgement.findings


@pytest.mark.parametrize("rule", PROGRAMS)
def test_a_mistake_and_its_twin(tmp_path: Path, rule: str) -> None:
    if find_spec("torch") is None:
        pytest.skip("PyTorch is not installed")
    runs = {}
    for which in ("mistake", "twin"):
        (tmp_path / which).mkdir()
        runs[which] = record(HEAD + PROGRAMS[rule], tmp_path / which, "--trace=cuda,nvtx", words=[which])
    (finding,) = findings(runs["mistake"], rule)
    saved = took(runs["mistake"]) - took(runs["twin"])
    assert finding.estimate / 2 <= saved <= 1.1 * finding.bound
    assert findings(runs["twin"], rule) == ()
