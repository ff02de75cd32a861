"""The heat map of GPU use and the pace of a range, on ranks whose times are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from warplens.errors import MissingData, UsageError
from warplens.recipes import engine
from warplens.recipes.base import Answer
from warplens.recipes.process_pool import ProcessPool
from warplens.testing.timeline import timeline


def answered(recipe: str, paths: list[Path], **options: object) -> Answer:
    answer, broken = engine.run(recipe, paths, ProcessPool(1), options=options)
    assert not broken
    return answer


def gpu_ranks(folder: Path) -> list[Path]:
    """Two ranks of 100 ticks: one works in the first half, the other one in the second."""
    rows = {
        0: "(gemm#1" + "-" * 42 + ")" + " " * 50,
        1: " " * 50 + "(ncclDevKernel_AllReduce#1" + "-" * 23 + ")",
    }
    paths = []
    for rank, row in rows.items():
        assert len(row) == 100
        path = folder / f"rank{rank}.warplens"
        timeline(
            path,
            f"main     |[{'step'.ljust(98)}]\nmain:api |(cudaLaunchKernel#1)\ngpu0.7   |{row}",
            part=f"host-{rank}-1",
        )
        paths.append(path)
    return paths


def test_the_map_shows_when_each_rank_worked(tmp_path: Path) -> None:
    answer = answered("gpu_time_util_map", gpu_ranks(tmp_path), bins=10, kind="all")
    busy = np.asarray(answer.details["map"].column("Busy (%)").to_pylist()).reshape(2, 10)
    assert busy[0] == pytest.approx([100] * 5 + [0] * 5, abs=0.5)
    assert busy[1] == pytest.approx([0] * 5 + [100] * 5, abs=0.5)
    assert [line.split("│")[1] for line in answer.lines[1:]] == ["█████     ", "     █████"]
    assert answer.facts["same_time"] is True


def test_the_map_shows_one_kind_of_work(tmp_path: Path) -> None:
    answer = answered("gpu_time_util_map", gpu_ranks(tmp_path)[1:], bins=4, kind="communication")
    assert np.asarray(answer.details["map"].column("Busy (%)").to_pylist()) == pytest.approx(
        [0, 0, 100, 100], abs=1
    )
    with pytest.raises(MissingData, match="does not contain GPU work of this kind"):
        answered("gpu_time_util_map", gpu_ranks(tmp_path / "more")[:1], bins=4, kind="communication")


@pytest.mark.parametrize(("option", "value"), [("kind", "heat"), ("bins", 0)])
def test_the_map_refuses_what_it_cannot_draw(option: str, value: object, tmp_path: Path) -> None:
    with pytest.raises((UsageError, MissingData), match=option):
        answered("gpu_time_util_map", gpu_ranks(tmp_path), **{option: value})


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


def test_findings_of_all_ranks_are_put_together(tmp_path: Path) -> None:
    """On the first two ranks the GPU waits for its host between kernels, on the second one for longer."""
    paths = []
    for rank, gap in enumerate((20, 40, 0)):
        calls = "".join(f"(cudaLaunchKernel#{number})" + " " * gap for number in range(1, 6))
        kernels = "".join(f"(gemm#{number}------------)" + " " * gap for number in range(1, 6))
        picture = (
            f"main     |[{'work'.ljust(len(kernels) + 20)}]\nmain:api |{calls}\ngpu0.7   |{' ' * 20}{kernels}"
        )
        paths.append(tmp_path / f"rank{rank}.warplens")
        timeline(paths[-1], picture, tick_ns=1_000_000, part=f"host-{rank}-1")
    answer = answered("findings", paths)
    rows = answer.tables["findings"].to_pylist()
    (waits,) = [row for row in rows if row["Rule"] == "gpu_time_util"]
    assert (waits["Ranks"], waits["Max at"]) == (2, "rank1.warplens")
    assert waits["Max (ns)"] == pytest.approx(2 * waits["Min (ns)"], rel=0.15)
    assert answer.lines[1].startswith("On 2 ranks: ")
