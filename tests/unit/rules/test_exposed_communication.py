"""Communication that no computation hides: how much, of which operation, and what of it is waiting."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.rules.asking import ask, costs, drawn, looped, not_judged, one

pytestmark = pytest.mark.slow

RULE = "exposed_communication"
# All-reduce of 44, the first 17 beside a kernel; then the optimizer.
STEP = """
main   |[step                                                          ]
gpu0.7 |(backward      )                            (adam              )
gpu0.8 |(ncclDevKernel_AllReduce_Sum_f32_RING_LL   )"""


def test_exposed_communication_is_counted(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, looped(STEP, 3)), RULE)
    # 44 - 16 in each; the GPU computes 20 without communication
    assert costs(finding) == (3 * 28, 3 * 20)
    assert (finding.subject, finding.occurrences, finding.confidence, finding.severity) == (
        "communication",
        3,
        "low",
        "high",
    )
    assert finding.title == "Communication kept the GPU from computing for 84.0 us, most of it AllReduce"
    assert "28.0 us in each of 3 steps" in finding.cause
    assert "does not say how much of it is waiting" in finding.cause
    assert finding.evidence[0].text == "AllReduce on GPU 0, step 0: 28.0 us of 44.0 us not hidden"
    assert "DDP" in finding.fix


def test_hidden_communication_costs_nothing(tmp_path: Path) -> None:
    hidden = STEP.replace(
        "(backward      )                            (adam              )", "(backward".ljust(63) + ")"
    )
    assert ask(drawn(tmp_path, looped(hidden, 3)), RULE) == []


def test_copies_hide_nothing(tmp_path: Path) -> None:
    copies = STEP.replace(
        "(backward      )                            (adam ",
        "(HtoD                                   )(adam    ",
    )
    assert (
        costs(one(drawn(tmp_path, looped(copies, 2)), RULE))[0] == 2 * 41
    )  # the next kernel begins 3 before its end


def test_waiting_for_the_last_rank_is_kept_apart(tmp_path: Path) -> None:
    ranks = """
    a/gpu0.7 |(gemm   )                                             (adam    )
    a/gpu0.8 |         (ncclDevKernel_AllReduce                     )
    b/gpu0.7 |(gemm                       )                         (adam    )
    b/gpu0.8 |                             (ncclDevKernel_AllReduce )
    """
    finding = one(drawn(tmp_path, ranks, ranks={"a": 0, "b": 1}), RULE)
    assert "Up to 20.0 us of it one GPU waited for the last rank to come, most often rank 1" in finding.cause
    # 45 of 45 on rank 0, of which 25 move data; no GPU computes for more than 38
    assert (costs(finding), finding.confidence) == ((45, 25), "medium")


def test_operations_by_the_frameworks_word(tmp_path: Path) -> None:
    report = drawn(
        tmp_path,
        STEP.replace(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL   ", "secret                                    "
        ),
    )
    process = report.table("processes", ["process"]).column(0)[0].as_py()
    kernel = next(row for row in report.table("kernels").to_pylist() if row["name"] == "secret")
    row = {name: kernel[name] for name in ("id", "process", "start", "end")} | {
        "name": "all_to_all",
        "kernel": kernel["id"],
    }
    assert row["process"] == process
    named = drawn(
        tmp_path / "named",
        STEP.replace("ncclDevKernel_AllReduce_Sum_f32_RING_LL   ", "secret".ljust(42)),
        tables={"collectives": [row]},
    )
    assert one(named, RULE).title.endswith("most of it all_to_all")


def test_a_program_without_communication(tmp_path: Path) -> None:
    assert (
        not_judged(drawn(tmp_path, "gpu0.7 |(gemm )"), RULE) == "does not contain communication between GPUs."
    )
