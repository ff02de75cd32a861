"""What kernels recorded inside, in the terminal timeline: asked for by name, or alone in what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warplens.cli.group import commands
from warplens.testing.kernel_insides import DrawnLaunch, Region, Warp, launch_tables, pipeline
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow

PICTURE = """
    main:api |(cudaLaunchKernel#1)        (cudaLaunchKernel#2)
    gpu0.7   |     (gemm#1   )                (gemm#2    )
"""
REGIONS = [
    Region("tile", 0, 6_000),
    Region("load", 500, 3_000),
    Region("copy", 2_000, 7_500, asynchronous=True),
    Region("store", 4_000, 6_000),
    Region("go", 1_000),
]


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    launches = [
        DrawnLaunch("gemm", 0, 10_000, [Warp(4, 1, 3, 0, 8_000, REGIONS)]),
        DrawnLaunch(
            "many",
            20_000,
            24_000,
            list(pipeline(20_000, 24_000, blocks=30, sms=30)),
            kernel=None,
            device=None,
        ),
    ]
    timeline(tmp_path / "r.warplens", PICTURE, origin=0, tables=launch_tables(launches, origin=0))
    return tmp_path / "r.warplens"


def ask(path: Path, *options: str) -> Result:
    return CliRunner().invoke(commands, ["timeline", str(path), "--ascii", "--width", "80", *options])


def inside(path: Path, *options: str) -> list[str]:
    result = ask(path, *options)
    assert result.exit_code == 0, result.output or result.exception
    lines = result.stdout.splitlines()
    at = next((number for number, line in enumerate(lines) if line.startswith("inside ")), len(lines))
    return [line for line in lines[at:] if not line.startswith(("v mark", "busy:"))]


def test_lanes_are_regions_and_marks(report: Path) -> None:
    head, *lines = inside(report, "--inside", "GEMM")
    assert head == "inside gemm #1 (GPU 0, stream 7, 1 warp)"
    assert lines[0].startswith("  SM 3 b4 w1    [tile-")
    assert [
        [name for name in ("tile", "load", "copy", "store", "go") if name in line] for line in lines[:4]
    ] == [
        ["tile"],
        ["load", "store"],
        ["copy"],
        ["go"],
    ]


def test_the_only_launch_of_what_is_shown_is_there_unasked(report: Path) -> None:
    assert inside(report) == []
    assert inside(report, "--range", "0/9us")[0].startswith("inside gemm")


def test_many_warps_are_left_out_and_counted(report: Path) -> None:
    lines = inside(report, "--inside", "many", "--tracks", "5")
    assert lines[0] == "inside many #2 (60 warps)"
    assert sum(" SM " in line for line in lines) == 5
    assert "55 less busy tracks not shown" in ask(report, "--inside", "many", "--tracks", "5").stdout
    assert sum(" SM " in line for line in inside(report, "--range", "20us/24us")) == 8


def test_a_name_that_no_launch_has_is_an_error_that_says_which_do(report: Path) -> None:
    result = ask(report, "--inside", "softmax")
    assert result.exit_code != 0
    assert "called gemm, many" in str(result.exception)


def test_of_a_report_with_nothing_else_the_longest_launch_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Drawn whole it would be next to nothing: launches take a thousandth of a program that compiles kernels before it runs them."""
    monkeypatch.delenv("COLUMNS", raising=False)
    launches = [
        DrawnLaunch(
            "short",
            900_000,
            901_000,
            [Warp(0, 0, 0, 900_000, 901_000, [Region("load", 900_000, 901_000)])],
            kernel=None,
            device=None,
        ),
        DrawnLaunch(
            "long",
            950_000,
            960_000,
            [Warp(0, 0, 0, 950_000, 960_000, [Region("store", 951_000, 959_000)])],
            kernel=None,
            device=None,
        ),
    ]
    path = tmp_path / "r.warplens"
    timeline(path, "", origin=0, tables=launch_tables(launches, origin=0))
    manifest = path / "manifest.d" / "host-100-1.json"
    manifest.write_text(manifest.read_text().replace('"end": 0', '"end": 1000000'))
    shown = ask(path).stdout
    assert "inside long #2 (1 warp)" in shown
    assert "10 us shown" in shown
    assert "[store-" in shown
    assert "1 other launch that recorded: --inside NAME, --range" in shown
    within = ask(path, "--range", "890us/970us")
    assert "2 launches recorded inside their kernels: --inside long." in str(within.exception)
