"""A framework that compiles again in the loop, seen by samples; a column is 5 ms."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.unit.rules.asking import ask, drawn, not_judged, one
from warplens.report import Selection
from warplens.rules.checks.recompilation import third_of_loop
from warplens.rules.compiling import compiling

pytestmark = pytest.mark.slow

MS = 1_000_000
FILES: dict[str, Any] = {
    "step": {"file": "/home/me/train.py"},
    "main": {"file": "/home/me/train.py"},
    "_compile": {"file": "/site-packages/torch/_dynamo/convert_frame.py"},
    "call": {"file": "/cache/torchinductor_me/ab/cab.py"},
    "precompile": {"file": "/site-packages/torch/_inductor/runtime/triton_heuristics.py"},
}
COMPILES = "(main:5;step:11;_compile )"
WORKS = "(main:5;step:11    )"
KERNELS = "(a   )(b   )(loss  )"


def picture(*steps: bool) -> str:
    """A line of samples and one of kernels: `True` compiles, then the step works."""
    python = gpu = ""
    for compiles in steps:
        python += (COMPILES + " " if compiles else "") + WORKS
        gpu += (" " * (len(COMPILES) + 1) if compiles else "") + KERNELS
    return f"main:python |{python}\ngpu0.7      |{gpu}"


def report_of(path: Path, text: str, **how: Any) -> Any:
    return drawn(path, text, tick_ns=5 * MS, cpu=FILES, **how)


def test_compiled_again_in_the_loop(tmp_path: Path) -> None:
    finding = one(
        report_of(tmp_path, picture(True, False, False, False, True, False, True, False)), "recompilation"
    )
    # two of 25 columns, and GPUs are idle in all of it
    assert (finding.bound, finding.estimate, finding.occurrences) == (2 * 25 * 5 * MS, 2 * 25 * 5 * MS, 2)
    assert (finding.subject, finding.severity, finding.confidence) == ("step", "high", "medium")
    assert (
        finding.title == "torch.compile compiled again for step (train.py:11) after the start, 250 ms in all"
    )
    assert finding.evidence[0].text == "torch.compile compiles for step (train.py:11)"


def test_recompilation_costs_the_idle_time_of_gpus(tmp_path: Path) -> None:
    text = picture(True, False, False, False, True, False, False, False)
    second = len(COMPILES) + 1 + 4 * len(WORKS)
    busy = "\ngpu0.8      |" + " " * (second + 5) + "(long   )"
    finding = one(report_of(tmp_path, text + busy), "recompilation")
    assert finding.bound == (25 - 9) * 5 * MS
    assert "GPUs had nothing to do for" in finding.cause


def test_of_a_selected_part(tmp_path: Path) -> None:
    report = report_of(tmp_path, picture(True, False, False, False, True, False, True, False))
    second = (len(COMPILES) + 1 + 4 * len(WORKS)) * 5 * MS
    (finding,) = ask(report, "recompilation", Selection(time=(second - 10 * MS, second + 200 * MS)))
    assert finding.bound == 25 * 5 * MS
    assert ask(report, "recompilation", Selection(time=(0, second - 10 * MS))) == []


def test_the_start_may_compile(tmp_path: Path) -> None:
    assert (
        ask(report_of(tmp_path, picture(True, True, False, False, False, False, False)), "recompilation")
        == []
    )


def test_another_line_is_compiled_for_the_first_time(tmp_path: Path) -> None:
    text = picture(True, False, False, False, False, True, False, False)
    first = text.index("_compile") + 8
    other = text[:first] + text[first:].replace("step:11;_compile", "eval:19;_compile")
    files = {**FILES, "eval": {"file": "/home/me/train.py"}}
    assert ask(drawn(tmp_path, other, tick_ns=5 * MS, cpu=files), "recompilation") == []


def test_without_a_loop_nothing_is_said_of_torch(tmp_path: Path) -> None:
    text = picture(True, False, True, False).replace("(a   )(b   )(loss  )", "(z   )              ")
    assert ask(report_of(tmp_path, text), "recompilation") == []


def test_without_samples(tmp_path: Path) -> None:
    assert not_judged(drawn(tmp_path, "gpu0.7 |(a )"), "recompilation") == "does not contain Python samples."


def test_the_line_is_the_programs_own(tmp_path: Path) -> None:
    text = "main:python |(main:5;step:11;call:3;precompile )    (main:5;step:12;<module>                 )"
    files = {**FILES, "<module>": {"file": "/site-packages/jax/_src/compiler.py"}}
    (stretch,) = compiling(drawn(tmp_path, text, tick_ns=5 * MS, cpu=files), Selection())
    assert (stretch.line, stretch.compiler) == ("step (train.py:11)", "torch.compile")


def test_the_third_of_a_loop() -> None:
    # 7 starts, then 8 times `1 2 2 3`
    name = np.array([7, 7, 9, *[1, 2, 2, 3] * 8])
    assert third_of_loop(np.arange(len(name)) * 10, name) == (3 + 2 * 4) * 10
    assert third_of_loop(np.arange(12), np.arange(12)) is None
    assert third_of_loop(np.empty(0, np.int64), np.empty(0, np.int64)) is None
