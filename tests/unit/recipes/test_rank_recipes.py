"""The heat map of GPU use and the pace of a range, on ranks whose times are known."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reports.nsys_export import ERAS, Export
from tests.unit.importers.cpu_story import tell
from warplens.errors import MissingData, UsageError
from warplens.importers.importing import import_file
from warplens.recipes import engine, heat_maps
from warplens.recipes.base import Answer
from warplens.recipes.process_pool import ProcessPool
from warplens.report import Report
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
    busy = answer.maps["map"].values
    assert busy[0] == pytest.approx([100] * 5 + [0] * 5, abs=0.5)
    assert busy[1] == pytest.approx([0] * 5 + [100] * 5, abs=0.5)
    drawn = heat_maps.drawn(answer.maps["map"])
    assert [line.split("│")[1] for line in drawn] == ["█████     ", "     █████"]
    assert heat_maps.as_table(answer.maps["map"]).column("Busy (%)").to_pylist() == busy.ravel().tolist()
    assert answer.facts["same_time"] is True


def test_the_map_shows_one_kind_of_work(tmp_path: Path) -> None:
    answer = answered("gpu_time_util_map", gpu_ranks(tmp_path)[1:], bins=4, kind="communication")
    assert answer.maps["map"].values[0] == pytest.approx([0, 0, 100, 100], abs=1)
    with pytest.raises(MissingData, match="does not contain GPU work of this kind"):
        answered("gpu_time_util_map", gpu_ranks(tmp_path / "more")[:1], bins=4, kind="communication")


@pytest.mark.parametrize(("option", "value"), [("kind", "heat"), ("bins", 0)])
def test_the_map_refuses_what_it_cannot_draw(option: str, value: object, tmp_path: Path) -> None:
    with pytest.raises((UsageError, MissingData), match=option):
        answered("gpu_time_util_map", gpu_ranks(tmp_path), **{option: value})


def test_a_metric_is_drawn_as_the_readings_say(tmp_path: Path) -> None:
    """A reading holds since the one before: 20 from tick 9 to 19, 80 from 19 to 29, then nothing."""
    picture = (
        "main |[" + "x".ljust(38) + "]\ngpu0~SM_Active|" + " " * 9 + "0" + " " * 9 + "20" + " " * 8 + "80"
    )
    timeline(tmp_path / "a.warplens", picture)
    answer = answered("gpu_metric_util_map", [tmp_path / "a.warplens"], bins=4)
    shown = answer.maps["map"]
    assert shown.value == "SM Active (%)"
    assert shown.values[0] == pytest.approx([2, 26, 72, 0], abs=0.1)
    with pytest.raises(MissingData, match="does not contain the metric 'Power'; it has: SM Active"):
        answered("gpu_metric_util_map", [tmp_path / "a.warplens"], metric="Power")


def test_time_in_mpi_is_drawn(tmp_path: Path) -> None:
    """Calls at 500 to 515, 520 to 530 and 540 ns, and MPI_Init before."""
    import_file(tell(Export(ERAS[-1])).write(tmp_path / "x.sqlite"), tmp_path / "x.warplens")
    answer = answered("mpi_util_map", [tmp_path / "x.warplens"], kind="collective", bins=1)
    with Report.open(tmp_path / "x.warplens") as report:
        begin, end = report.span
    assert answer.maps["map"].rows == ("rank 3",)
    assert answer.maps["map"].values[0, 0] == pytest.approx(100 * 15 / (end - begin), rel=0.01)
    with pytest.raises(MissingData, match="kind=heat"):
        answered("mpi_util_map", [tmp_path / "x.warplens"], kind="heat")


def test_the_histogram_counts_every_launch_of_all_ranks(tmp_path: Path) -> None:
    """`gemm` takes 10 ticks on two ranks and 20 on one; a tick is 1,000 ns."""
    paths = []
    for rank, length in enumerate((10, 10, 20)):
        path = tmp_path / f"rank{rank}.warplens"
        timeline(path, f"gpu0.7 |({'gemm'.ljust(length - 2)})  (tanh)", part=f"host-{rank}-1")
        paths.append(path)
    answer = answered("kern_hist", paths)
    row = answer.tables["kernels"].to_pylist()[0]
    assert (row["Name"], row["Launches"], row["Reports"], row["Total (ns)"]) == ("gemm", 3, 3, 40_000)
    assert row["Med from (ns)"] <= 10_000 < row["Med from (ns)"] * 2 ** (1 / 4)
    assert row["P99 from (ns)"] <= 20_000 < row["P99 from (ns)"] * 2 ** (1 / 4)
    shown = answer.maps["map"]
    assert sorted(shown.values[0][shown.values[0] > 0].tolist()) == pytest.approx([100 / 3, 200 / 3])
    assert answered("kern_hist", paths, name="tanh").facts == {"launches": 3, "kernels": 1}


def test_memory_is_compared_by_its_peak(tmp_path: Path) -> None:
    """The second rank has 8 MB at most, the first one 4 MB."""
    paths = []
    for rank, more in enumerate(("         ", "+4000000#2")):
        paths.append(tmp_path / f"rank{rank}.warplens")
        picture = f"main:api |(cudaMalloc#1) (cudaMalloc#2)\ngpu0:memory |+4000000#1    {more}"
        timeline(paths[-1], picture, part=f"host-{rank}-1")
    answer = answered("sums", paths, stat="gpu_memory_sum")
    (row,) = answer.tables["over_ranks"].to_pylist()
    assert answer.facts["column"] == "Peak (MB)"
    assert (row["Min (MB)"], row["Max (MB)"], row["Max at"]) == (4.0, 8.0, "rank1.warplens")


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
