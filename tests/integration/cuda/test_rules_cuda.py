"""Programs with a planted mistake, and their fixed twins, recorded on the look-alike libcuda: what the rules find in the recordings.

What would have been won is computed from the recording itself, replayed without its waits: the same however slow the machine was.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.native.fake_cuda import FakeCuda
from tests.support.programs.launching import environment, warplens
from tests.support.thorough import few
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

pytestmark = [pytest.mark.require("gcc", "native"), pytest.mark.timeout(300)]

STEPS = 12
KERNEL = "kernel:gemm:20000000:1"  # 20 ms
# rule -> the words of a step with the mistake and without it
PLANTED = {
    "unneeded_sync": (["sleep:20", KERNEL, "sync:1"], ["sleep:20", KERNEL]),
    "cuda_api_sync": (["sleep:20", KERNEL, "device_sync"], ["sleep:20", KERNEL]),
    "cuda_memcpy_sync": (["sleep:20", "d2h:500000000:0"], ["sleep:20", "d2h:500000000:1"]),
    "allocator_churn": (["sleep:20", "malloc:1048576", KERNEL, "free"], ["sleep:20", KERNEL]),
}


def record(folder: Path, target: Target, words: list[str]) -> Report:
    """Profile the C program with these words, which it plays one after the other."""
    fake = FakeCuda()
    folder.mkdir()
    env = environment(**fake.environment(), TRUTH=str(folder / "said"))
    program = target("cuda_program", *fake.words())
    run = warplens(
        "profile",
        "-q",
        "-o",
        "x",
        "--trace=cuda",
        program,
        "malloc:1024",
        *words,
        "device_sync",
        cwd=folder,
        env=env,
    )
    assert run.returncode == 0, run.stderr
    return open_report(folder / "x.warplens")


def found(report: Report, rule: str) -> tuple[Finding, ...]:
    """What a rule finds; it must have judged."""
    judgement = judge(report, Selection(), [rule])
    assert not judgement.not_judged
    return judgement.findings


@pytest.mark.parametrize("rule", few(PLANTED))
def test_a_mistake_and_its_twin(tmp_path: Path, target: Target, rule: str) -> None:
    mistake, twin = PLANTED[rule]
    with record(tmp_path / "mistake", target, mistake * STEPS) as report:
        (finding,) = found(report, rule)
        assert finding.bound is not None
        assert finding.estimate is not None
        assert 0 < finding.estimate <= finding.bound
        assert finding.evidence
        if rule in ("unneeded_sync", "cuda_api_sync"):
            saved = won_without_waits(report)
            assert finding.estimate / 2 <= saved <= 1.1 * finding.bound
    with record(tmp_path / "twin", target, twin * STEPS) as report:
        assert found(report, rule) == ()


def won_without_waits(report: Report) -> int:
    """Return how much sooner the last kernel would have ended, ns, had the host not waited and all else taken as long."""
    calls = report.sql('SELECT id, name, "start", "end" FROM cuda_api ORDER BY "start"').to_pylist()
    kernels = {row["api"]: row for row in report.sql('SELECT api, "start", "end" FROM kernels').to_pylist()}
    assert len(kernels) == STEPS
    recorded = now = calls[0]["start"]  # the host, in the recording and without waits
    was_free = free = now  # the stream
    for call in calls:
        now += call["start"] - recorded
        recorded = call["end"]
        if (kernel := kernels.get(call["id"])) is not None:
            latency = max(kernel["start"] - max(call["start"], was_free), 0)
            was_free = kernel["end"]
            free = max(now + latency, free) + kernel["end"] - kernel["start"]
        if "Synchronize" not in call["name"]:
            now += call["end"] - call["start"]
    return int(was_free - free)
