"""`warplens analyze` as it is typed: which rules, of which part, in which form, and exit codes for CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import UsageError
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


# The second copy is of pageable memory (as copies in pictures are), under an asynchronous call: it blocks.
PICTURE = """
main:api |(cudaLaunchKernel#1)(cudaMemcpyAsync#2                    )(cudaLaunchKernel#3)
gpu0.7   |        (gemm#1  )          (HtoD#2                    )      (gemm#3 )
main     |[step               ][step                                                   ]
"""


@pytest.fixture
def run(tmp_path: Path) -> Path:
    timeline(tmp_path / "run é.warplens", PICTURE, cuda={"#2": {"asynchronous": True}})
    return tmp_path / "run é.warplens"


def ask(*words: str | Path) -> Result:
    return CliRunner().invoke(commands, ["analyze", *map(str, words)])


def test_every_rule_is_told_somewhere(run: Path) -> None:
    result = ask(run, "-f", "json")
    assert result.exit_code == 0, result.exception
    told = json.loads(result.stdout)
    rules = {
        *told["silent"],
        *(row["rule"] for row in told["not_judged"]),
        *(finding["rule"] for finding in told["findings"]),
    }
    assert rules == {unit.id for unit in catalog.units("rules.checks")}
    assert all(
        finding["fix"] and finding["link"].startswith("https://") and finding["wrong_when"]
        for finding in told["findings"]
    )


def test_one_rule_with_its_finding(run: Path) -> None:
    result = ask("-r", "cuda_memcpy_async", run)
    assert result.exit_code == 0, result.exception
    assert result.stdout.startswith("1. HIGH  ")
    assert "(cuda_api 1)" in result.stdout
    assert "Not judged" not in result.stdout


def test_a_part_without_it_is_silent(run: Path) -> None:
    assert "Nothing found by 1 rule" in ask("-r", "cuda_memcpy_async", "--filter-nvtx", "step/0", run).stdout


def test_analyze_lists_rules_that_lack_data(tmp_path: Path) -> None:
    timeline(tmp_path / "cpu.warplens", "main |[step ]")
    printed = ask("-r", "cuda_memcpy_async", tmp_path / "cpu.warplens").stdout
    assert "Nothing found by 0 rules" in printed
    assert "Not judged: cuda_memcpy_async: the report does not contain" in printed


def test_exit_codes_for_ci(run: Path) -> None:
    assert ask("-r", "cuda_memcpy_async", "--fail-on", "high", run).exit_code == 1
    assert ask("-r", "cuda_memset_sync,gpu_gaps", "--fail-on", "low", run).exit_code == 0


def test_options_of_rules(run: Path) -> None:
    assert isinstance(ask("-r", "gpu_gaps:gapp=1", run).exception, UsageError)
    assert isinstance(ask("-r", "no_such_rule", run).exception, UsageError)
    assert ask("-r", "gpu_gaps:gap=1", run).exit_code == 0


def test_markdown_into_a_file(run: Path, tmp_path: Path) -> None:
    out = tmp_path / "findings.md"
    assert ask("-f", "markdown", "-o", out, "-r", "cuda_memcpy_async", run).exit_code == 0
    assert out.read_text("utf-8").startswith("| | finding | at most |")
    assert isinstance(ask("-f", "markdown", "-o", out, run).exception, UsageError)


def test_rules_are_listed_and_explained() -> None:
    listed = ask("--help-rules").stdout
    assert all(unit.id in listed for unit in catalog.units("rules.checks"))
    assert "## When it does not apply" in ask("--help-rules", "gpu_gaps").stdout
