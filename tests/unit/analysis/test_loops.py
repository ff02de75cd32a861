"""The main loop of a program is that of its named steps, or of kernels that come again and again."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.support.reports.simulated_gpu import Machine
from warplens.analysis.steps.loops import inferred, main_loop
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge

US, MS = 1_000, 1_000_000
INITIAL, LAYER, HEAD, LOSS, UPDATE, EVALUATION, LOG = range(7)
ITERATION = [HEAD, *[LAYER] * 12, LOSS, *[LAYER] * 12, UPDATE]


def begins(code: list[int]) -> list[int] | None:
    """Return at which kernels the iterations begin, the end as the last; kernel n begins at n."""
    result = inferred(np.arange(len(code)), np.array(code))
    return None if result is None else result.tolist()


def test_the_iteration_is_the_step_and_not_the_layer() -> None:
    starts = begins([*[INITIAL] * 40, *ITERATION * 30])
    assert starts is not None
    assert np.diff(starts).tolist() == [len(ITERATION)] * (len(starts) - 2) + [starts[-1] - starts[-2]]
    assert len(starts) == 31
    assert starts[0] >= 40


def test_an_iteration_that_logs_now_and_then_is_one_iteration() -> None:
    code = [kernel for step in range(60) for kernel in ([*ITERATION, LOG] if step % 10 == 9 else ITERATION)]
    starts = begins(code)
    assert starts is not None
    assert len(starts) == 61


def test_an_evaluation_in_the_middle_does_not_end_the_loop() -> None:
    starts = begins([*ITERATION * 20, *[EVALUATION] * len(ITERATION) * 2, *ITERATION * 20])
    assert starts is not None
    assert len(starts) == 41


@pytest.mark.parametrize("seed", range(5))
def test_kernels_in_no_order_are_no_loop(seed: int) -> None:
    rng = random.Random(seed)
    assert begins([rng.randrange(200) for _ in range(2000)]) is None
    assert begins(list(range(1000))) is None
    assert begins([]) is None
    assert begins([LAYER, HEAD] * 4) is None  # four iterations are too few


def trains(path: Path, *, start_up: int, slow: int, steps: int = 40, pause: int = 0) -> tuple[int, int, int]:
    """Play a program: a kernel, start-up, then steps of 2 ms, the first `slow` of which take 50 ms. Return when the usual ones begin."""
    machine = Machine()
    machine.launch(10 * US)
    machine.work(start_up)
    usual = 0
    for step in range(steps):
        if step == slow:
            usual = machine.now
        if step < slow:
            machine.work(50 * MS)
        machine.launch(300 * US)
        machine.wait()
        machine.work(2 * MS + pause)
    machine.write(path)
    return usual, machine.now, machine.end


def test_slow_first_iterations_are_start_up(tmp_path: Path) -> None:
    usual, end, _ = trains(tmp_path / "r.warplens", start_up=5_000 * MS, slow=2)
    with open_report(tmp_path / "r.warplens") as report:
        loop = main_loop(report, Selection())
        assert loop is not None
        assert abs(loop.begin - report.origin - usual) < 3 * MS
        assert abs(loop.end - report.origin - end) < 5 * MS
        judgement = judge(report, Selection())
        assert judgement.loop is not None
        by_rule = {finding.rule: finding for finding in judgement.findings}
    assert by_rule["gpu_waits_for_cpu"].within == loop.end - loop.begin
    assert (by_rule["gpu_waits_for_cpu"].estimate or 0) < 0.1e9  # not the five seconds before the loop
    assert by_rule["startup"].bound == loop.begin - judgement.begin
    assert by_rule["startup"].severity == "low"
    assert judgement.findings[-1].rule != "gpu_waits_for_cpu"


def test_a_selected_part_is_judged_as_it_is(tmp_path: Path) -> None:
    _, _, end = trains(tmp_path / "r.warplens", start_up=5_000 * MS, slow=0)
    with open_report(tmp_path / "r.warplens") as report:
        judgement = judge(report, Selection(time=(0, end)), ["gpu_gaps"])
    assert judgement.loop is None
    assert [finding.rule for finding in judgement.findings] == ["gpu_gaps"]  # the start-up


def test_a_run_that_is_all_loop_is_judged_as_a_whole(tmp_path: Path) -> None:
    trains(tmp_path / "r.warplens", start_up=0, slow=0)
    with open_report(tmp_path / "r.warplens") as report:
        assert main_loop(report, Selection()) is not None
        assert judge(report, Selection(), ["gpu_gaps"]).loop is None
