"""`warplens stats --by`: handed to the tables that know it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.support.reports.gpu_schedule import chaos
from tests.support.reports.kernel_story import chance as chance_inside
from tests.support.thorough import few
from warplens.cli.group import commands
from warplens.errors import UsageError
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(chaos(1).write(tmp_path_factory.mktemp("by") / "run.warplens"))


def rows(*words: str) -> list[dict[str, object]]:
    result = CliRunner().invoke(commands, ["stats", "-f", "json", "-q", *words])
    assert result.exit_code == 0, result.output
    found: list[dict[str, object]] = json.loads(result.stdout)
    return found


def test_by_is_an_argument_of_a_table(report: str) -> None:
    assert rows("--by", "process", "-r", "temporal_breakdown", report) == rows(
        "-r", "temporal_breakdown:by=process", report
    )
    assert len(rows("--by", "process", "-r", "temporal_breakdown", report)) == 2
    assert len(rows("--by", "stream", "-r", "temporal_breakdown", report)) == 8


def test_an_argument_of_its_own_comes_first(report: str) -> None:
    assert len(rows("--by", "stream", "-r", "temporal_breakdown:by=device", report)) == 4


def test_other_tables_do_not_mind(report: str) -> None:
    result = CliRunner().invoke(commands, ["stats", "--by", "rank", report])
    assert result.exit_code == 0
    assert "cuda_api_sum" in result.stdout
    assert "gpu_utilization" in result.stdout


def test_by_without_a_table_that_supports_it_is_refused(report: str) -> None:
    result = CliRunner().invoke(commands, ["stats", "--by", "rank", "-r", "gpu_idle_trace", report])
    assert isinstance(result.exception, UsageError)
    assert "grouped by rank" in str(result.exception)
    assert "gpu_utilization" in str(result.exception)
    assert CliRunner().invoke(commands, ["stats", "--by", "colour", report]).exit_code == 2


def test_the_tables_are_printed(report: str, tmp_path: Path) -> None:
    for name in (
        "queue_length",
        "launch_latency",
        "memory_bandwidth",
        "gpu_idle_trace",
        "kernel_breakdown",
        "comm_comp_overlap",
    ):
        result = CliRunner().invoke(commands, ["stats", "-r", name, report])
        assert result.exit_code == 0, result.output
        assert f"({name}):" in result.stdout
    timeline(tmp_path / "r.warplens", "main |[step ]")
    result = CliRunner().invoke(commands, ["stats", "-r", "gpu_utilization", str(tmp_path / "r.warplens")])
    assert (result.exit_code, result.stderr) == (
        1,
        "SKIPPED: r.warplens does not contain CUDA kernel or GPU memory data.\n",
    )


SUMS = ("cuda_gpu_kern_sum", "cuda_gpu_mem_time_sum", "cuda_gpu_mem_size_sum", "cuda_gpu_sum")


@pytest.mark.parametrize("name", few(SUMS))
def test_sums_of_gpus_are_kept_apart_by_it(report: str, name: str) -> None:
    operation = "Name" if name == "cuda_gpu_kern_sum" else "Operation"
    count = "Count" if "mem" in name else "Instances"

    def summed(*words: str) -> dict[object, int]:
        sums: dict[object, int] = {}
        for row in rows(*words, report):
            sums[row[operation]] = sums.get(row[operation], 0) + int(str(row[count]))
        return sums

    whole = summed("-r", f"{name}:all-gpus")
    sizes = {}
    for by in ("process", "device", "stream", "rank"):
        assert summed("--by", by, "-r", name) == whole
        found = rows("--by", by, "-r", name, report)
        sizes[by] = len(found)
        assert all(
            ("Stream" in row) == (by == "stream") and ("Device" in row) == (by in ("device", "stream"))
            for row in found
        )
    assert rows("--by", "device", "-r", name, report) == rows("-r", name, report)
    assert sizes["process"] < sizes["device"] < sizes["stream"]


def test_calls_are_kept_apart_by_process_or_rank(report: str) -> None:
    whole, apart = rows("-r", "cuda_api_sum", report), rows("--by", "process", "-r", "cuda_api_sum", report)
    assert sum(int(str(row["Num Calls"])) for row in apart) == sum(
        int(str(row["Num Calls"])) for row in whole
    )
    assert {"PID"} <= apart[0].keys()
    assert "PID" not in whole[0]


@pytest.mark.parametrize("by", ["launch", "sm", "warp", "role"])
def test_regions_inside_kernels_are_kept_apart_by_it(tmp_path: Path, by: str) -> None:
    inside = str(chance_inside(3).write(tmp_path / "inside.warplens"))
    whole, apart = rows("-r", "intrakernel_sum", inside), rows("--by", by, "-r", "intrakernel_sum", inside)
    assert apart == rows("-r", f"intrakernel_sum:by={by}", inside)
    assert len(apart) >= len(whole)
    assert {"launch": "Launch", "sm": "SM"}.get(by, by.title()) in apart[0]
    assert sum(int(str(row["Count"])) for row in apart) == sum(int(str(row["Count"])) for row in whole)
    if by == "warp":
        assert rows("--by", by, "-r", "intrakernel_overlap", inside) == rows(
            "-r", f"intrakernel_overlap:by={by}", inside
        )
    with pytest.raises(UsageError, match="intrakernel_sum"):
        CliRunner().invoke(commands, ["stats", "--by", by, "-r", "nvtx_sum", inside], catch_exceptions=False)
