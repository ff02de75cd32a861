"""What `stats` prints where no table is named: the few that say most, and how to get the others."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from warplens.cli.group import commands
from warplens.testing.timeline import timeline

PICTURE = """
main        |[step      ][step     ]
main:python |(main;load )(main;step)
main:os     |(poll )(read:/a )
main:gil    |(hold )(wait )
main:gc     |(2   )(0 )
main:import |(numpy )
main:api    |(cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )
gpu0.7      |     (gemm#1  )        (HtoD#2      )
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    timeline(tmp_path / "run.warplens", PICTURE)
    return tmp_path / "run.warplens"


def _stats(*words: str | Path) -> str:
    return CliRunner().invoke(commands, ["stats", *map(str, words)]).stdout


def _titles(text: str) -> list[str]:
    return [line.rpartition("(")[2].rstrip("):") for line in text.splitlines() if line.startswith(" ** ")]


def test_five_tables_come_and_the_others_are_named(run: Path) -> None:
    few, everything = _stats("--native", run), _titles(_stats("--all", run))
    assert _titles(few) == ["nvtx_sum", "cuda_gpu_kern_sum", "cpu_hotspots", "gpu_utilization", "osrt_sum"]
    (line,) = [line for line in few.splitlines() if line.startswith("More tables: -r ")]
    named = line.removeprefix("More tables: -r ").partition(" ")[0].split(",")
    assert sorted(_titles(few) + named) == sorted(everything)


def test_a_python_program_has_functions_of_python_and_packages(run: Path) -> None:
    text = _stats(run)
    assert _titles(text)[2] == "python_hotspots"
    assert "Package" in _stats("-r", "import_sum:by=package", run)
    assert "import_sum" not in _titles(text)  # there are five tables before it


def test_columns_that_say_nothing_and_nanoseconds_come_by_request(run: Path) -> None:
    text = _stats(run)
    assert "StdDev" not in text
    assert "(ns)" in _stats("--timeunit", "ns", run)
    assert "StdDev (ns)" in _stats("-r", "nvtx_sum", run)


def test_named_tables_and_program_formats_are_complete(run: Path) -> None:
    assert _titles(_stats("-r", "gil_sum,gc_sum", run)) == ["gil_sum", "gc_sum"]
    assert "More tables" not in _stats("--all", run)
    written = _stats("-f", "csv", run)
    assert "More tables" not in written
    assert written.count("\n\n") >= len(_titles(_stats("--all", run))) - 1
