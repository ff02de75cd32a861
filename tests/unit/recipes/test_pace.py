"""Ranks, hosts and GPUs that are slower than others in a range, a kernel or the steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from warplens.errors import MissingData
from warplens.recipes import engine, pace
from warplens.recipes.base import Answer
from warplens.recipes.process_pool import ProcessPool
from warplens.testing.timeline import timeline


def answered(recipe: str, paths: list[Path], **options: object) -> Answer:
    answer, broken = engine.run(recipe, paths, ProcessPool(1), options=options)
    assert not broken
    return answer


def paced(folder: Path, lengths: dict[int, list[int]]) -> list[Path]:
    """Write ranks with a range `step` for each length, in ticks."""
    paths = []
    for rank, own in lengths.items():
        path = folder / f"rank{rank}.warplens"
        timeline(
            path,
            "main |" + " ".join(f"[{'step'.ljust(length - 2)}]" for length in own),
            part=f"host-{rank}-1",
        )
        paths.append(path)
    return paths


def test_a_rank_that_is_slower_in_nearly_all_iterations_is_named(tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    lengths = {rank: (random.integers(50, 60, 30) + (8 if rank == 2 else 0)).tolist() for rank in range(4)}
    answer = answered("nvtx_pace", paced(tmp_path, lengths), name="step")
    assert answer.facts["slow"] == ["report 2"]
    assert answer.lines[1].startswith("Report 2 is slower: ")
    row = answer.tables["by_rank"].to_pylist()[0]
    assert (row["Rank"], row["Iterations"], row["Med (ns)"]) == (
        "report 2",
        30,
        1000 * float(np.median(lengths[2])),
    )


def test_chance_names_nobody(tmp_path: Path) -> None:
    random = np.random.default_rng(4)
    lengths = {rank: random.integers(50, 60, 30).tolist() for rank in range(4)}
    answer = answered("nvtx_pace", paced(tmp_path, lengths), name="step")
    assert answer.facts["slow"] == []
    assert answer.lines[1] == "No rank is slower than the others beyond chance."


def test_one_rank_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="no iteration in common"):
        answered("nvtx_pace", paced(tmp_path, {0: [10, 12]}), name="step")


def test_steps_with_numbers_are_compared_by_number(tmp_path: Path) -> None:
    """The second rank began to record two steps later; by position it would look slower in every step."""
    lengths = {number: 10 + 3 * number for number in range(12)}
    paths = []
    for rank, first in enumerate((0, 2)):
        path = tmp_path / f"rank{rank}.warplens"
        ranges = "".join(
            f"[{f'step_{number}'.ljust(lengths[number] - 2)}]" for number in range(first, first + 10)
        )
        timeline(path, f"main |{ranges}", part=f"host-{rank}-1")
        paths.append(path)
    answer = answered("nvtx_pace", paths)
    assert answer.facts["slow"] == []
    assert answer.maps["map"].columns == list(range(12))
    assert np.nanmax(np.ptp(answer.maps["map"].values[:, 2:10], axis=0)) == 0


def instances(excess: dict[int, int], *, ranks: int = 8, per_host: int = 2) -> pa.Table:
    """Return instances of 30 iterations; ranks of a host share a clock, a GPU number is that on the host."""
    random = np.random.default_rng(5)
    rows: list[dict[str, Any]] = [
        {
            "report": rank,
            "process": 0,
            "device": rank % per_host,
            "rank": rank,
            "host": f"host{rank // per_host}",
            "name": "step",
            "iteration": iteration,
            "start": iteration * 10_000,
            "length": 5_000 + int(random.integers(0, 100)) + excess.get(rank, 0),
        }
        for rank in range(ranks)
        for iteration in range(30)
    ]
    return pa.Table.from_pylist(rows)


def test_a_slow_host_is_named_with_its_ranks() -> None:
    answer = pace.compared(instances({2: 500, 3: 500}), "step")
    assert sorted(answer.facts["slow"]) == ["rank 2", "rank 3"]
    assert (answer.facts["slow_hosts"], answer.facts["slow_gpus"]) == (["host1"], [])
    assert any(line.startswith("Host host1 is slower: ") for line in answer.lines)


def test_a_gpu_that_is_slow_on_every_host_is_named() -> None:
    answer = pace.compared(instances({1: 500, 3: 500, 5: 500, 7: 500}), "step")
    assert (answer.facts["slow_hosts"], answer.facts["slow_gpus"]) == ([], ["1"])


def test_a_slow_kernel_names_its_rank(tmp_path: Path) -> None:
    paths = []
    for rank, length in enumerate((8, 8, 12)):
        path = tmp_path / f"rank{rank}.warplens"
        row = f"({'gemm'.ljust(length - 2)}) (small) " * 12
        timeline(path, f"gpu0.7 |{row}", part=f"host-{rank}-1")
        paths.append(path)
    answer = answered("kern_pace", paths)
    assert (answer.facts["range"], answer.facts["slow"]) == ("Kernel gemm", ["report 2"])
    assert answered("kern_pace", paths, name="small").facts["slow"] == []
    with pytest.raises(MissingData, match="does not contain a kernel with 'softmax' in its name"):
        answered("kern_pace", paths, name="softmax")


def test_ranks_that_wait_for_one_another_are_compared_by_their_own_work(tmp_path: Path) -> None:
    """All steps take 40 ticks; the last rank computes for 28 of them, the others for 20 and wait."""
    paths = []
    for rank, length in enumerate((20, 20, 28)):
        path = tmp_path / f"rank{rank}.warplens"
        gemm = f"({'gemm#1'.ljust(length - 2)})"
        wait = f"({'ncclAllReduce'.ljust(38 - length - 2)})" if length < 28 else " " * 10
        row = f"{gemm}{wait.ljust(38 - length)}  " * 10
        steps = f"[{'step'.ljust(38)}]" * 10
        timeline(path, f"main |{steps}\ngpu0.7 |{row}", part=f"host-{rank}-1")
        paths.append(path)
    assert answered("nvtx_pace", paths).facts["slow"] == []
    answer = answered("step_pace", paths)
    assert answer.facts["slow"] == ["report 2"]
    rows = answer.tables["steps_by_rank"].to_pylist()
    assert [row["Step (ns)"] for row in rows] == pytest.approx([40_000] * 3)
    assert [row["GPU Compute (ns)"] for row in rows] == pytest.approx([20_000, 20_000, 28_000])
