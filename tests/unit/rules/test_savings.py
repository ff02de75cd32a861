"""Programs with a planted mistake and their fixed twins, on a simulated machine: what is won is what was expected.

Within a fifth, and at most 1.1 of the bound; and nothing is reported about the twin.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.reports.planted import PLANTED, Program, played
from tests.support.reports.simulated_gpu import Machine
from tests.support.thorough import examples, few
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.gpus import GpuOperations
from warplens.rules.host_calls import HostCalls, cost
from warplens.rules.judging import judge

pytestmark = pytest.mark.slow

US = 1_000


@pytest.mark.parametrize(
    ("rule", "program", "speed"),
    few(PLANTED, step=5),
    ids=[f"{r}-{p.__name__}-{h}-{k}" for r, p, (h, k) in PLANTED],
)
def test_the_saving_lies_between_what_was_stated(
    tmp_path: Path, rule: str, program: Program, speed: tuple[int, int]
) -> None:
    mistake, twin = played(program, True, speed), played(program, False, speed)
    saved = mistake.end - twin.end
    with open_report(mistake.write(tmp_path / "mistake.warplens")) as report:
        (finding,) = judge(report, Selection(), [rule]).findings
    assert finding.bound is not None
    assert finding.estimate is not None
    assert finding.estimate == pytest.approx(saved, rel=0.2)
    assert saved <= 1.1 * finding.bound
    with open_report(twin.write(tmp_path / "twin.warplens")) as report:
        judgement = judge(report, Selection(), [rule])
    assert judgement.findings == ()
    assert not judgement.not_judged


@given(st.lists(st.tuples(*[st.integers(0, 500)] * 3, st.booleans()), min_size=1, max_size=12))
@settings(max_examples=examples(150), deadline=None)
def test_without_its_waits_any_program_wins_what_was_stated(steps: list[tuple[int, int, int, bool]]) -> None:
    def run(planted: bool) -> Machine:
        machine = Machine()
        machine.launch(1000)
        for before, kernel, behind, waits in steps:
            machine.work(before * US)
            machine.launch(kernel * US)
            machine.work(behind * US)
            if waits and planted:
                machine.wait()
        machine.launch(1000)
        machine.wait()
        return machine

    mistake = run(True)
    spent = cost(_waits(mistake), (_gpu(mistake),), computing=True)
    saved = mistake.end - run(False).end
    # the host comes 2 us later from each wait than the GPU was done, and needs a call for it
    slack = 5_000 * len(steps)
    assert saved <= spent.bound + slack
    assert spent.estimate / 2 <= saved + slack
    assert 0 <= spent.estimate <= spent.bound


def _gpu(machine: Machine) -> GpuOperations:
    rows = sorted(machine.schedule.rows["kernels"], key=lambda row: row["start"])
    start, end = (np.array([row[name] for row in rows], np.int64) for name in ("start", "end"))
    number = np.arange(len(rows))
    return GpuOperations(
        0, 0, "GPU 0", np.zeros(len(rows), np.int8), np.full(len(rows), 7), start, end, number, number
    )


def _waits(machine: Machine) -> HostCalls:
    rows = [row for row in machine.schedule.rows["cuda_api"] if row["name"] == "cudaDeviceSynchronize"]
    start, end = (np.array([row[name] for row in rows], np.int64) for name in ("start", "end"))
    same = np.zeros(len(rows), np.int64)
    names = np.array([row["name"] for row in rows], object)
    return HostCalls(np.arange(len(rows)), same, same, start, end, same - 1, same - 1, names, names)
