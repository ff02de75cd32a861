"""Managed memory that host and GPU touch in turn, with and without recorded migrations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import US, ask, costs, drawn, looped, not_judged, one
from warplens.report import Selection

pytestmark = pytest.mark.slow

RULE = "unified_memory_migration"
# The first kernel of each step lasts 60, the others 10; before it the GPU has nothing to do for 30.
STEP = "gpu0.7 |" + " " * 30 + "(scale ".ljust(59) + ")" + "(scale   )" * 3
EVEN = "gpu0.7 |" + " " * 30 + "(scale   )" * 4
ALLOCATED = "\nmain:api |(cudaMallocManaged )"


def test_by_the_length_of_kernels(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(STEP, 4) + ALLOCATED), RULE)
    # four times 50 longer, and three pauses of 30; once the pages have to come
    assert costs(finding) == (4 * 50 + 3 * 30, 3 * 50 + 3 * 30)
    assert (
        finding.title
        == "Kernels on managed memory took 200 us longer because pages had to come from the host"
    )
    assert (finding.subject, finding.occurrences, finding.confidence) == ("GPU 0", 4, "medium")
    assert "--cuda-um-migrations" in finding.fix
    assert finding.evidence[0].values == {"longer_ns": 50 * US}


def test_with_recorded_migrations(tmp_path: Path) -> None:
    moves = ":um |" + " " * 10 + "(DtoH )" + " " * 13 + "(HtoD )" * 2
    finding = one(drawn(tmp_path, looped(f"{STEP}\n{moves}", 4)), RULE)
    assert finding.confidence == "high"
    assert "32.0 KiB moved to the GPU in 8 pieces; 16.0 KiB moved to the host in 4 pieces" in finding.cause
    assert "--cuda-um-migrations" not in finding.fix


def test_kernels_that_wait_each_time(tmp_path: Path) -> None:
    step = "gpu0.7 |" + " " * 30 + "(scale ".ljust(59) + ")"
    moves = (
        ":um |"
        + " " * 10
        + "(DtoH )"
        + " " * 14
        + "(GPU_page_fault            )\n:um |"
        + " " * 50
        + "(HtoD            )"
    )
    finding = one(drawn(tmp_path, looped(f"{step}\n{moves}", 4)), RULE)
    # faults and moves from column 31 to 68 of each step
    assert costs(finding)[0] == 4 * 37 + 3 * 30
    assert "waited for pages in each launch" in finding.cause
    assert finding.confidence == "high"
    assert ask(drawn(tmp_path / "unseen", looped(step, 4) + ALLOCATED), RULE) == []


@pytest.mark.parametrize(
    "picture",
    [
        looped(EVEN, 4) + ALLOCATED,  # prefetched
        looped(STEP, 4) + "\nmain:api |(cudaMalloc )",
        looped(STEP, 2) + ALLOCATED,
        "gpu0.7 |"
        + "(scale ".ljust(59)
        + ")"
        + looped(EVEN, 4).partition("|")[2]
        + ALLOCATED,  # once, at the begin
    ],
)
def test_the_rule_is_silent_without_slow_launches(tmp_path: Path, picture: str) -> None:
    assert ask(drawn(tmp_path, picture), RULE) == []


def test_without_calls_and_migrations(tmp_path: Path) -> None:
    assert not_judged(drawn(tmp_path, looped(STEP, 4)), RULE) == "does not distinguish managed memory."


def test_kernels_that_last_no_time(tmp_path: Path) -> None:
    report = drawn(tmp_path, looped(STEP, 4) + ALLOCATED, tick_ns=0)
    assert ask(report, RULE, Selection(time=(0, 10))) == []
