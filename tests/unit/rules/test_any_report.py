"""Every rule on reports in which nothing fits anything: it judges or says what it lacks, and what it states can be true."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.support.reports.gpu_schedule import chaos
from tests.support.reports.judged import claims_without_idle_time
from tests.support.thorough import few
from warplens import catalog
from warplens.catalog import Unit
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", few(range(4)))
def test_chaos(tmp_path: Path, seed: int) -> None:
    with open_report(chaos(seed).write(tmp_path / "r.warplens")) as report:
        for window in [None, (0, 0), (0, 1), (100, 400), (399, 400), (10**9, 2 * 10**9)]:
            judgement = judge(report, Selection(time=window))
            for finding in judgement.findings:
                assert finding.subject
                assert finding.occurrences >= 1
                assert finding.bound is None or 0 < finding.bound <= judgement.span, finding.rule
                assert len(finding.evidence) <= 50
                assert all(row.start <= row.end for row in finding.evidence)
            if window is None:
                assert claims_without_idle_time(report, judgement) == []


def test_the_same_question_has_the_same_answer(tmp_path: Path) -> None:
    with open_report(chaos(9).write(tmp_path / "r.warplens")) as report:
        first = judge(report, Selection()).as_json()
    with open_report(tmp_path / "r.warplens") as report:
        assert judge(report, Selection()).as_json() == first


@pytest.mark.parametrize("picture", ["main |!mark", "main |<open"])
def test_a_report_without_duration_is_not_judged(tmp_path: Path, picture: str) -> None:
    timeline(tmp_path / "r.warplens", picture, tick_ns=0)
    with open_report(tmp_path / "r.warplens") as report:
        judgement = judge(report, Selection())
    assert not judgement.findings
    assert not judgement.silent
    assert set(judgement.not_judged.values()) == {"lasts no time."}


CALLS = (
    "cudaLaunchKernel",
    "cudaMallocManaged",
    "cudaFree",
    "cudaMalloc",
    "cudaGraphInstantiate",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
)
WORK = ("gemm", "ncclDevKernel_AllReduce", "HtoD", "DtoH", "memset", "graph")
STACKS = ("main;step:3;_compile", "main;step:3;empty_cache", "main;step:4")
SENSITIVE = (
    "tiny_grids",
    "recompilation",
    "unified_memory_migration",
    "allocator_churn",
    "exposed_communication",
    "rank_imbalance",
)


def drawn_at_random(rng: random.Random) -> Iterator[str]:
    """Lines of processes that call, run, compile, step and migrate without any order."""

    def line(head: str, names: Sequence[str], label: bool = False) -> str:
        pieces = (
            f"{' ' * rng.randrange(9)}({rng.choice(names)}{f'#{rng.randrange(9)}' if label else ''}{' ' * rng.randrange(1, 30)})"
            for _ in range(rng.randrange(1, 30))
        )
        return f"{head} |{''.join(pieces)}"

    for process in "abc"[: rng.randrange(1, 4)]:
        yield line(f"{process}/main:api", CALLS, label=True)
        yield line(f"{process}/gpu0.7", WORK, label=True)
        yield line(f"{process}/gpu0.8", WORK, label=True)
        yield line(f"{process}/main:python", STACKS)
        yield line(f"{process}/:um", ("HtoD", "DtoH", "CPU_page_fault"))
        yield f"{process}/main |" + "".join(f"[step{' ' * rng.randrange(1, 40)}]" for _ in range(9))


@pytest.mark.parametrize("seed", few(range(12), step=6))
def test_random_pictures(tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    tick = (1, 1000, 5_000_000)[seed % 3]
    cuda: dict[str, dict[str, int | None]] = {
        "gpu0": {"multiprocessors": rng.choice([None, 1, 132])},
        "gemm": {"grid_x": rng.choice([1, 500])},
    }
    cpu = {"_compile": {"file": "torch/_dynamo/convert_frame.py"}, "step": {"file": "/home/me/train.py"}}
    picture = "\n".join(drawn_at_random(rng))
    timeline(
        tmp_path / "r.warplens", picture, tick_ns=tick, cuda=cuda, cpu=cpu, ranks={"a": 0, "b": 1, "c": 2}
    )
    with open_report(tmp_path / "r.warplens") as report:
        for window in [None, (0, 1), (10 * tick, 40 * tick)]:
            judgement = judge(
                report, Selection(time=window), None, {rule: {"least": 0} for rule in SENSITIVE}
            )
            for finding in judgement.findings:
                assert finding.occurrences >= 1
                assert finding.bound is None or 0 < finding.bound <= judgement.span, finding.rule
            if window is None:
                assert claims_without_idle_time(report, judgement) == []


def test_rules_that_are_silent_are_not_read_as_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(unit: Unit) -> None:
        raise AssertionError(f"{unit.id} is parsed, which takes longer than to ask it")

    monkeypatch.setattr(Unit, "tree", property(parse))
    catalog._units.cache_clear()
    timeline(tmp_path / "r.warplens", "main |[work    ]", tick_ns=1_000)
    with open_report(tmp_path / "r.warplens") as report:
        judgement = judge(report, Selection())
    assert judgement.silent
    assert not judgement.findings
