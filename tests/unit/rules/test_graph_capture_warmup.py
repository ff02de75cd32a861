"""CUDA graphs that are captured one after the other at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import ask, drawn, looped, not_judged, one
from warplens.report import Selection
from warplens.rules.judging import judge

pytestmark = pytest.mark.slow

RULE = "graph_capture_warmup"
CAPTURE = """
main:api |(cudaLaunchKernel#k__)(cudaStreamBeginCapture )(cudaStreamEndCapture )(cudaGraphInstantiate )
gpu0.7   |              (gemm#k__ )"""
LAUNCH = """
main:api |(cudaGraphLaunch#g__)
gpu0.7   |        (graph#g__       )"""


def program(captures: int, launches: int) -> str:
    """Captures, then launches."""
    start, requests = looped(CAPTURE, captures).splitlines(), looped(LAUNCH, launches).splitlines()
    return "\n".join(one + other.partition("|")[2] for one, other in zip(start, requests, strict=True))


def test_a_server(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, program(4, 20)), RULE)
    assert finding.title.startswith("4 CUDA graphs were captured at the start, within ")
    assert (finding.severity, finding.estimate, finding.occurrences) == ("low", 0, 4)
    assert "20 launches of graphs followed" in finding.cause
    assert finding.bound is not None
    assert [row.text for row in finding.evidence] == [f"graph {number} of 4" for number in (1, 2, 3, 4)]


def test_few_graphs(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, program(2, 60)), RULE) == []
    # most of the time, and the process makes no others: a recording of nothing but captures
    assert one(drawn(tmp_path / "most", program(1, 3)), RULE).severity == "low"


@pytest.mark.parametrize("captures", [1, 4])
def test_captures_at_the_start_are_nobodys_slow_host(tmp_path: Path, captures: int) -> None:
    report = drawn(tmp_path, program(captures, captures) + "\n" + "gpu0.7   | (gemm )")
    judgement = judge(report, Selection())
    assert "gpu_waits_for_cpu" in judgement.silent
    assert {finding.rule for finding in judgement.distinct} == {RULE}
    assert {finding.same_as for finding in judgement.findings if finding.rule != RULE} <= {RULE}


def test_captures_in_the_loop_keep_gpus_waiting(tmp_path: Path) -> None:
    step = """
    main:api |(cudaStreamBeginCapture )(cudaStreamEndCapture )(cudaGraphInstantiate )(cudaGraphLaunch#g__)(cudaGraphLaunch )
    gpu0.7   |                                                                                  (graph#g__  )"""
    report = drawn(tmp_path, looped(step, 8))
    assert ask(report, RULE) == []
    found = ask(report, "gpu_waits_for_cpu")
    assert sum(finding.occurrences for finding in found) >= 7


def test_a_short_start(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, program(3, 20)), RULE, least=90) == []


def test_graphs_that_are_made_in_the_loop(tmp_path: Path) -> None:
    step = """
    main:api |(cudaGraphInstantiate )(cudaGraphLaunch#g__)(cudaGraphLaunch )
    gpu0.7   |                              (graph#g__       )"""
    assert ask(drawn(tmp_path, looped(step, 8)), RULE) == []


def test_without_calls(tmp_path: Path) -> None:
    assert not_judged(drawn(tmp_path, "gpu0.7 |(gemm )"), RULE) == "does not contain CUDA API data."
