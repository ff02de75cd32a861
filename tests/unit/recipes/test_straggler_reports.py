"""`straggler` over reports: traces of ranks that others recorded."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.errors import MissingData
from warplens.recipes import engine
from warplens.recipes.process_pool import ProcessPool
from warplens.testing.timeline import timeline

DATA = Path(__file__).resolve().parents[4] / "shared" / "data"


def test_kernels_of_communication_stand_for_collectives(tmp_path: Path) -> None:
    """Two GPUs of one process: the second one begins its all-reduce later, because its kernel runs longer."""
    timeline(
        tmp_path / "a.warplens",
        f"main:api |{''.join(f'(cudaLaunchKernel#{number})' for number in range(1, 7))}\n"
        "gpu0.7   |                    (ncclAllReduce#1)(gemm#2)(ncclAllReduce#3------------------------)\n"
        "gpu1.7   |                    (ncclAllReduce#4)(gemm#5------------------)(ncclAllReduce#6-------)\n",
    )
    answer, broken = engine.run("straggler", [tmp_path / "a.warplens"], ProcessPool(1), options={})
    assert not broken
    assert answer.facts["collectives"] == 2
    assert answer.facts["straggler"] == "GPU 1"
    assert answer.facts["reason"] == "its kernels worked longer"


def test_a_report_without_collectives_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "a.warplens", "main |[work]")
    with pytest.raises(MissingData, match="contains neither collectives nor NCCL kernels"):
        engine.run("straggler", [tmp_path / "a.warplens"], ProcessPool(1), options={})


def test_eight_real_ranks_have_the_straggler_that_their_ends_show() -> None:
    traces = [DATA / "kineto" / "dlrm_8ranks" / f"rank{rank}.json.gz" for rank in range(8)]
    if not traces[0].is_file():
        pytest.skip("dlrm_8ranks is not beside the checkout")
    answer, broken = engine.run("straggler", traces, ProcessPool(1), options={})
    assert not broken
    assert answer.facts["collectives"] == 8
    assert answer.facts["straggler"] == "rank 7"
    assert max(answer.facts["clock_residual_ns"].values()) <= 7_000, "one host: ends agree within us"
