"""Ranks with unequal work in their steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import ask, costs, drawn, looped, not_judged, one

pytestmark = pytest.mark.slow

RULE = "rank_imbalance"
RANKS = {"a": 0, "b": 1}
# Rank 1 computes 40 in each step, rank 0 20; the exchange takes what is left.
STEP = """
a/main     |[step                                                               ]
a/main:api |(cudaLaunchKernel#g__)
a/gpu0.7   |     (gemm#g__         )(ncclDevKernel_AllReduce                    )
b/main     |[step                                                               ]
b/main:api |(cudaLaunchKernel#g__)
b/gpu0.7   |     (gemm#g__                             )(ncclDevKernel_AllReduce)"""


def test_one_rank_computes_longer(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(STEP, 4), ranks=RANKS), RULE)
    assert costs(finding) == (4 * 20, 4 * 10)
    assert (finding.subject, finding.occurrences, finding.confidence) == ("step", 4, "medium")
    assert finding.title == "Rank 1 has 34 % more work in its steps than the 2 ranks on average"
    assert (
        "It had most work in 4 of 4 steps. It ran about as many kernels as the others, each for longer."
        in finding.cause
    )
    assert finding.evidence[0].text == "step: 39.0 us of work on rank 1, 29.0 us on average"


def test_one_rank_runs_more_kernels(tmp_path: Path) -> None:
    two = STEP.replace("(gemm#g__                             )", "(gemm#g__         )(gelu#g__        )")
    assert (
        "It ran 100 % more kernels than the others"
        in one(drawn(tmp_path, looped(two, 4), ranks=RANKS), RULE).cause
    )


def test_two_steps_may_be_chance(tmp_path: Path) -> None:
    assert one(drawn(tmp_path, looped(STEP, 2), ranks=RANKS), RULE).confidence == "low"


def test_equal_ranks(tmp_path: Path) -> None:
    lines = STEP.splitlines()
    equal = "\n".join(
        [*lines[:4], lines[1].replace("a/", "b/"), lines[2].replace("a/", "b/"), lines[3].replace("a/", "b/")]
    )
    assert ask(drawn(tmp_path, looped(equal, 4), ranks=RANKS), RULE) == []


def test_ranks_that_do_not_communicate(tmp_path: Path) -> None:
    alone = looped(STEP.replace("ncclDevKernel_AllReduce", "gelu                   "), 4)
    assert (
        not_judged(drawn(tmp_path, alone, ranks=RANKS), RULE)
        == "does not contain steps of several ranks that communicate."
    )


def test_without_steps(tmp_path: Path) -> None:
    reason = not_judged(drawn(tmp_path, looped(STEP.replace("[step", "[work"), 4), ranks=RANKS), RULE)
    assert reason.startswith("does not contain training steps")
