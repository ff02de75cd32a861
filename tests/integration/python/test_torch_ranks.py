"""A training on several ranks by `torchrun`: the rank that the others wait for, and why."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.optional_dependencies import LIBRARIES, ROOT, find_library
from tests.support.programs.launching import environment, warplens
from warplens.recipes import engine
from warplens.recipes.process_pool import ProcessPool

pytestmark = [pytest.mark.require("native", "pytorch"), pytest.mark.timeout(600)]


def test_a_rank_with_slow_data_is_named_with_its_reason(tmp_path: Path) -> None:
    """Four ranks of DDP over Gloo; rank 2 sleeps for 20 ms in each of 20 fetches."""
    place = find_library(LIBRARIES["pytorch"])
    assert place is not None
    torchrun = [place[0], "-m", "torch.distributed.run", "--nproc-per-node", "4"]
    report = tmp_path / "job.warplens"
    alone = ["env", "-u", "PYTHONPATH", "OMP_NUM_THREADS=1", "SLOW_RANK=2"]
    command: list[str | Path] = [*alone, *torchrun, ROOT / "examples" / "slow_rank.py"]
    done = warplens(
        "profile", "-q", "-t", "torch", "-o", report, "--", *command, cwd=tmp_path, env=environment()
    )
    assert done.returncode == 0, done.stderr
    answer, broken = engine.run("straggler", [report], ProcessPool(1), options={})
    assert not broken
    assert answer.facts["straggler"] == "rank 2"
    assert answer.facts["reason"] == "it loaded data for longer"
    rows = {row["Rank"]: row for row in answer.tables["by_rank"].to_pylist()}
    assert rows["rank 2"]["Last"] >= 15
    assert rows["rank 2"]["Late (ns)"] > 15 * 15_000_000
