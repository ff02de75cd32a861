"""Findings whose cost is in the graph of calls and GPU work are priced by the run without it, on a simulated machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reports.simulated_gpu import Machine
from tests.unit.rules.asking import drawn
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

pytestmark = pytest.mark.slow

US, MS = 1_000, 1_000_000
STEPS = 20


def program(folder: Path, planted: bool, host: int, kernel: int) -> tuple[int, list[Finding]]:
    """Return the end of a loop, with or without a wait in each step, and the findings about waits."""
    machine = Machine()
    for _ in range(STEPS):
        machine.work(host)
        for _ in range(4):
            machine.launch(kernel)
        if planted:
            machine.wait()
    machine.wait()
    path = folder / f"{planted}.warplens"
    machine.schedule.write(path)
    with open_report(path) as report:
        return machine.schedule.end, list(judge(report, Selection(), ["unneeded_sync"]).findings)


@pytest.mark.parametrize(("host", "kernel"), [(4 * MS, 500 * US), (2 * MS, 2 * MS), (MS, 300 * US)])
def test_the_estimate_is_what_the_program_without_waits_wins(tmp_path: Path, host: int, kernel: int) -> None:
    long, (finding,) = program(tmp_path, True, host=host, kernel=kernel)
    short, _ = program(tmp_path, False, host=host, kernel=kernel)
    assert finding.priced_by == "what-if"
    assert finding.estimate == pytest.approx(long - short, rel=0.05)


def test_without_calls_there_is_an_interval_and_its_reason(tmp_path: Path) -> None:
    report = drawn(tmp_path, "main |[work" + " " * 200 + "]\nmain:gc |   (2" + " " * 100 + ")", tick_ns=MS)
    (finding,) = judge(report, Selection(), ["gc_pauses"]).findings
    assert finding.priced_by.startswith("interval: ")
    assert 0 < (finding.estimate or 0) <= (finding.bound or 0)


LOADS = """
main:api |(cudaLaunchKernel#1)                              (cudaLaunchKernel#2)
main     |[step                                            ][step                                     ]
main:osrt|                       {osrt}
gpu0.7   |     (gemm#1    )                                       (gemm#2 )
"""


def test_a_thread_that_the_graph_does_not_have_leaves_the_interval(tmp_path: Path) -> None:
    from warplens.analysis.intervals import Cover
    from warplens.rules.base import Without
    from warplens.rules.what_if import WhatIf

    report = drawn(tmp_path, LOADS.replace("main:osrt|                       {osrt}\n", ""))
    engine = WhatIf(report, Selection())
    begin, end = report.span
    unknown = engine.saving(Without(threads=frozenset((12345,)), time=Cover([begin], [end])))
    assert isinstance(unknown, str)
    assert "does not cover these threads" in unknown
