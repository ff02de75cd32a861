"""The findings of real recordings are true, and they name what costs time there; two recordings differ by what was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import tomllib
from click.testing import CliRunner

from tests.support.reports.judged import cases, compared, report_of, source
from warplens.cli.group import commands

pytestmark = pytest.mark.require("native", "duckdb")


@pytest.mark.parametrize("case", cases(), ids=lambda path: path.stem)
def test_findings_are_those_of_the_case(case: Path, tmp_path: Path) -> None:
    path = source(tomllib.loads(case.read_text(encoding="utf-8")))
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    verdict = compared(case, tmp_path)
    assert not verdict.wrong, "\n".join(verdict.wrong)


def test_two_runs_without_a_gpu_differ_by_the_function_that_was_changed(tmp_path: Path) -> None:
    """`price` converts 900,000 texts, or the 8,633 that differ. The parts of the explanation are all of the difference of the runs."""
    paths = []
    for name in ("row_by_row", "row_by_row_fixed"):
        with report_of({"report": f"golden/cpu/{name}.tar.xz"}, tmp_path / name) as report:
            paths.append(str(report.path))
    text = CliRunner().invoke(commands, ["diff", *paths]).stdout
    heads = [line for line in text.splitlines() if line.startswith(" ** ")]
    assert heads[0] == " ** The run:"
    assert heads[1].startswith(" ** Why the run took ")
    answer = json.loads(CliRunner().invoke(commands, ["diff", "-f", "json", *paths]).stdout)
    figures = {fact["name"]: fact for fact in answer["run"]}
    assert next(iter(figures)) == "wall time"
    assert {"CPU time", "most memory"} <= set(figures)
    explained = answer["explained"]
    wall = figures["wall time"]["after"] - figures["wall time"]["before"]
    assert explained["per"] == "run"
    assert explained["delta"] == pytest.approx(wall, rel=0.1)
    assert sum(part["delta"] for part in explained["parts"]) == pytest.approx(explained["delta"])
    largest = explained["parts"][0]
    assert "price" in f"{largest['name']} {largest['detail']}"
    assert largest["delta"] < 0.5 * explained["delta"] < 0
