"""Calls of CUDA without any work of a GPU: not recorded, or failed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import ask, drawn, not_judged, one

pytestmark = pytest.mark.slow

CALLS = "main:api |" + "(cudaLaunchKernel )(cudaMemcpyAsync )(cudaGetDevice )" * 5


def test_calls_without_work(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, CALLS), "no_gpu_work")
    assert (finding.subject, finding.severity, finding.bound, finding.occurrences) == (
        "GPU work that is not in the report",
        "info",
        None,
        10,
    )
    assert finding.title == "10 calls gave work to a GPU, and the report has no kernel, copy or memset"
    assert {row.text for row in finding.evidence} == {"cudaLaunchKernel", "cudaMemcpyAsync"}


def test_calls_that_fail(tmp_path: Path) -> None:
    report = drawn(
        tmp_path, CALLS, cuda={"cudaLaunchKernel": {"result": 209}, "cudaMemcpyAsync": {"result": 700}}
    )
    finding = one(report, "no_gpu_work")
    assert (finding.subject, finding.severity, finding.occurrences) == ("calls that fail", "medium", 10)
    assert finding.title == "10 of 10 calls that give work to a GPU failed"
    assert {row.text for row in finding.evidence} == {
        "cudaLaunchKernel returned 209",
        "cudaMemcpyAsync returned 700",
    }


def test_one_of_two_processes(tmp_path: Path) -> None:
    picture = "\n".join(f"{name}/{CALLS}" for name in ("a", "b")) + "\na/gpu0.7 |(gemm )"
    finding = one(drawn(tmp_path, picture), "no_gpu_work")
    assert (finding.occurrences, len({row.process for row in finding.evidence})) == (10, 1)


@pytest.mark.parametrize("work", ["(gemm )", "(HtoD )", "(memset )", "(graph )"])
def test_any_work_will_do(tmp_path: Path, work: str) -> None:
    assert ask(drawn(tmp_path, f"{CALLS}\ngpu0.7 |{work}"), "no_gpu_work") == []


def test_a_few_calls_say_nothing(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, "main:api |" + "(cudaLaunchKernel )" * 9), "no_gpu_work") == []


def test_without_calls(tmp_path: Path) -> None:
    assert not_judged(drawn(tmp_path, "gpu0.7 |(gemm )"), "no_gpu_work") == "does not contain CUDA API data."
