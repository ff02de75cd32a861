"""The story of the guide to kernels: a pipeline with one buffer starves its consumers, the rule says so, and three buffers mend it."""

from __future__ import annotations

import csv
import io
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.optional_dependencies import ROOT, find_nvcc
from tests.support.programs.launching import environment
from warplens.flows.differing import diff
from warplens.intrakernel import include_path
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

PROGRAM = ROOT / "examples" / "intrakernel_pipeline"
RULE = "intrakernel_starved_consumer"
TILES, BLOCKS = 60, 2
_CHANCES = 4  # a busy machine may hold the program up just while it waits for its first tile

pytestmark = [pytest.mark.require("native", "g++"), pytest.mark.timeout(900)]


def warplens(*words: str) -> str:
    command = [sys.executable, "-m", "warplens", *words]
    done = subprocess.run(
        command, env=environment(COLUMNS="100"), capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def record(out: Path, stages: int) -> tuple[Path, str]:
    """Run the program; return its report and the sum that it printed."""
    program = [sys.executable, str(PROGRAM / "pipeline.py"), "--cpu", "--stages", str(stages)]
    said = warplens("profile", "-q", "-o", str(out), "--", *program)
    return out.with_suffix(".warplens"), said.rpartition("sum ")[2].strip()


def starved(report: Report) -> list[Finding]:
    return list(judge(report, Selection(), [RULE]).findings)


@dataclass
class Twins:
    """The reports with one buffer and with three, and what the kernel computed in both."""

    before: Report
    after: Report
    sums: tuple[str, str]


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Twins]:
    """Recordings in which the machine did not hold the program up where it must not."""
    with ExitStack() as stack:
        kept: list[tuple[Report, str]] = []
        for stages in (1, 3):
            for chance in range(_CHANCES):
                path, total = record(tmp_path_factory.mktemp(f"stages{stages}") / f"run{chance}", stages)
                report = stack.enter_context(open_report(path))
                if bool(starved(report)) == (stages == 1):
                    break
            kept.append((report, total))
        yield Twins(kept[0][0], kept[1][0], (kept[0][1], kept[1][1]))


def test_the_rule_finds_one_buffer_and_not_three(twins: Twins) -> None:
    (finding,) = starved(twins.before)
    assert finding.title.startswith("warps 1-2 of pipeline wait ")
    assert finding.title.endswith(" while warp 0 loads")
    assert finding.bound is not None
    assert finding.bound > 0
    assert not starved(twins.after)
    (change,) = (one for one in diff(twins.before, twins.after).findings if one.rule == RULE)
    assert (change.status, change.subject) == ("gone", "pipeline")


def test_both_do_the_same_work_and_all_of_it_is_recorded(twins: Twins) -> None:
    assert twins.sums[0] == twins.sums[1]
    assert float(twins.sums[0]) > 0
    for report, stages in ((twins.before, 1), (twins.after, 3)):
        counts = dict(
            report.sql("SELECT tag, count(*) AS n FROM intrakernel_events GROUP BY tag")
            .to_pandas()
            .itertuples(index=False)
        )
        both = 2 * BLOCKS * TILES
        expected = {
            "load": BLOCKS * (TILES + (stages == 3)),
            "wait_free": BLOCKS * TILES,
            "wait_full": both,
            "compute": both,
        }
        assert counts == expected
        (launch,) = report.table("intrakernel_launches").to_pylist()
        assert (launch["units"], launch["dropped"], launch["units_lost"]) == (3 * BLOCKS, 0, 0)


def test_loading_goes_on_behind_computing_only_with_three(twins: Twins) -> None:
    together = """
        SELECT count(*) AS n FROM intrakernel_events load JOIN intrakernel_events own
        ON load.tag = 'load' AND own.tag = 'compute' AND load.start < own."end" AND own.start < load."end" """
    assert twins.before.sql(together).to_pylist()[0]["n"] == 0, "with one buffer they take turns"
    assert twins.after.sql(together).to_pylist()[0]["n"] > 0


def test_the_commands_of_the_guide_answer(twins: Twins) -> None:
    path = str(twins.before.path)
    roles = list(
        csv.DictReader(io.StringIO(warplens("stats", "-q", "-r", "intrakernel_roles", "-f", "csv", path)))
    )
    assert {row["Role"]: row["Waits For"] for row in roles} == {"warp 0": "warps 1-2", "warps 1-2": "warp 0"}
    assert [row["Critical"] for row in roles].count("yes") == 1
    drawn = warplens("timeline", path, "--inside", "pipeline").splitlines()
    assert [line.split("  ")[1] for line in drawn if " b1 w" in line] == [
        f"SM 0 b1 w{warp}" for warp in range(3)
    ]


@pytest.mark.require("nvcc")
@pytest.mark.parametrize(("arch", "stages"), [("sm_80", 1), ("sm_90a", 3)])
def test_the_example_compiles_for_gpus(tmp_path: Path, arch: str, stages: int) -> None:
    compiler, out = find_nvcc(), tmp_path / "out.ptx"
    assert compiler is not None
    options = [
        "-std=c++17",
        "-O3",
        f"-arch={arch}",
        f"-I{include_path()}",
        f"-DSTAGES={stages}",
        "-ptx",
        "-o",
        str(out),
    ]
    command = [compiler, *options, str(PROGRAM / "pipeline.cu")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    text = out.read_text(encoding="utf-8")
    assert "cp.async" in text
    assert ".local" not in text, "registers do"
