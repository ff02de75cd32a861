"""The start of a program is one finding: what came before its main loop, or its imports."""

from __future__ import annotations

from pathlib import Path

from tests.support.reports.simulated_gpu import Machine
from tests.unit.rules.asking import ask, drawn, not_judged
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge

MS, US = 1_000_000, 1_000


def test_the_time_before_the_main_loop(tmp_path: Path) -> None:
    machine = Machine()
    machine.call("cuLibraryLoadData", 900 * MS)
    machine.work(100 * MS)
    for _ in range(50):
        machine.launch(300 * US)
        machine.wait()
        machine.work(2 * MS)
    machine.write(tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        (finding,) = judge(report, Selection(), ["startup"]).findings
    assert finding.title == "Start-up took 1.00 s before the main loop: cuLibraryLoadData 900 ms"
    assert (finding.severity, finding.estimate) == ("low", 0)


def test_imports_of_a_program_without_a_loop(tmp_path: Path) -> None:
    picture = """
    main        |[work                                        ]
    main:import |(torch       )(numpy)
    """
    (finding,) = ask(drawn(tmp_path, picture, tick_ns=100 * MS), "startup")
    assert finding.title == "Imports took 2.10 s: import torch 1.40 s, import numpy 700 ms"
    assert finding.severity == "high"  # half of the run


def test_a_short_import_is_no_finding(tmp_path: Path) -> None:
    picture = """
    main        |[work                                        ]
    main:import |(numpy)
    """
    assert ask(drawn(tmp_path, picture, tick_ns=MS), "startup") == []


def test_a_report_without_imports_is_not_judged(tmp_path: Path) -> None:
    assert (
        not_judged(drawn(tmp_path, "main |[work   ]"), "startup")
        == "does not contain a main loop or imports of Python."
    )
