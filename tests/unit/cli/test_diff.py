"""`warplens diff` as it is typed: text, Markdown, JSON, and exit codes for CI."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from warplens.cli.group import commands
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


BEFORE = """
main:api |(cudaLaunchKernel#1)  (cudaLaunchKernel#2)
gpu0.7   |   (gemm#1   )          (gemm#2  )
main     |[step              ] [step              ]
"""
AFTER = BEFORE.replace("(gemm#1   )", "(gemm#1             )").replace("(gemm#2  )", "(gemm#2            )")


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    for name, picture in (("a", BEFORE), ("b é", AFTER)):
        timeline(tmp_path / f"{name}.warplens", picture)
    return tmp_path / "a.warplens", tmp_path / "b é.warplens"


def ask(*words: str | Path) -> Result:
    return CliRunner().invoke(commands, ["diff", *map(str, words)])


def test_text(two: tuple[Path, Path]) -> None:
    result = ask(*two)
    assert result.exit_code == 0, result.output
    (line,) = [line for line in result.stdout.splitlines() if line.endswith(" 1 gemm")]
    assert line.split()[:8] == ["10.5", "us", "20.5", "us", "+10.0", "us", "+95.2", "%"]
    assert "Steps, mean of one" in result.stdout


def test_text_begins_with_the_run_and_the_reason(two: tuple[Path, Path]) -> None:
    lines = [line for line in ask(*two).stdout.splitlines() if line.strip()]
    assert lines[0] == " ** The run:"
    title = next(number for number, line in enumerate(lines) if line.startswith(" ** One step took as long"))
    assert lines[title].endswith("GPU 0, and what the host did while it was idle:")
    assert "kernel: gemm" in [line[36:].strip() for line in lines[title:]]
    assert any(line.endswith("all of it") for line in lines[title:])


def test_a_condition_that_holds_exits_with_1(two: tuple[Path, Path]) -> None:
    result = ask("--fail-if", "kernel[gemm].time > +50%", "--fail-if", "step.p50 > +5%", *two)
    assert result.exit_code == 1
    assert "FAILED  kernel[gemm].time > +50%: kernel.time 10,500 -> 20,500 (+95.2 %)" in result.stdout
    assert "ok  step.p50 > +5%" in result.stdout
    assert ask("--fail-if", "step.p50 > +5%", *two).exit_code == 0


def test_a_condition_without_data_fails(two: tuple[Path, Path]) -> None:
    result = ask("--fail-if", "os[poll].time > +1ms", *two)
    assert result.exit_code == 1
    assert "NOT JUDGED" in result.stdout


def test_a_wrong_condition_is_a_usage_error(two: tuple[Path, Path]) -> None:
    result = ask("--fail-if", "step faster", *two)
    assert result.exit_code != 0
    assert 'write for example "step.p50 > +5%"' in str(result.exception)


def test_markdown_and_files(two: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "comment.md"
    assert ask("-f", "markdown", "-o", out, "--fail-if", "step.p50 > +5%", *two).exit_code == 0
    text = out.read_text("utf-8")
    assert "**ok** `step.p50 > +5%`" in text
    assert "**One step took as long as before" in text
    assert "| kernel: gemm |" in text
    assert "| 10.5 us | 20.5 us | +10.0 us | +95.2 % | 2.12 us |  | gemm |" in text
    assert "--force-overwrite" in str(ask("-f", "markdown", "-o", out, *two).exception)
    assert ask("-f", "markdown", "-o", out, "--force-overwrite", *two).exit_code == 0


def test_json(two: tuple[Path, Path]) -> None:
    told = json.loads(ask("-f", "json", "--no-rules", "--fail-if", "step.p50 > +5%", *two).stdout)
    assert (told["schema"], told["per"], told["steps"]) == (
        "warplens.diff/1",
        "step",
        {"before": 2, "after": 2},
    )
    (gemm,) = [change for change in told["changes"] if change["name"] == "gemm"]
    assert (gemm["status"], gemm["delta"], gemm["before"]["p50"]) == ("changed", 10_000, 10_000)
    assert told["findings"] == []
    assert told["conditions"][0]["met"] is False


def test_sets(two: tuple[Path, Path]) -> None:
    a, b = two
    told = json.loads(ask("-f", "json", "--no-rules", "--before", a, a, b, "--after", b).stdout)
    assert told["steps"] == {"before": 4, "after": 4}
