"""The lines that answer at once: the first findings, programs without Python, other processes."""

from __future__ import annotations

from pathlib import Path

import click

from warplens.cli.printing.summary import _findings, summary
from warplens.report import open as open_report
from warplens.rules.base import Finding, Severity
from warplens.rules.judging import Judgement
from warplens.storage.manifest import Manifest
from warplens.testing.timeline import timeline

SECOND = 1_000_000_000


def screen(path: Path, manifest: Manifest) -> str:
    with open_report(path) as report:
        return "\n".join(click.unstyle(line) for line in summary(report, manifest))


def finding(title: str, bound: int, estimate: int | None, severity: Severity = "high") -> Finding:
    return Finding(
        rule="rule",
        subject=title,
        title=title,
        cause="",
        fix="",
        evidence=(),
        occurrences=1,
        bound=bound,
        estimate=estimate,
        severity=severity,
        within=10 * SECOND,
    )


def test_a_finding_without_an_estimate_has_its_line_with_its_bound() -> None:
    """What `analyze` puts first stands there first, although nobody knows what exactly a fix wins."""
    first, second = finding("a database", 4 * SECOND, None), finding("garbage", SECOND, SECOND)
    small = finding("hardly anything", SECOND, SECOND, "low")
    judgement = Judgement((first, second, small), (), {}, 0, 10 * SECOND, 0)
    lines = [click.unstyle(line) for line in _findings(judgement)]
    assert lines == ["Fix        ≤4.00 s  a database", "            1.00 s  garbage"]


def test_programs_without_python_are_not_asked_for_annotations(tmp_path: Path) -> None:
    path = tmp_path / "run.warplens"
    note = {
        "severity": "warning",
        "code": "no-nvtx",
        "source": "nvtx",
        "message": "Annotate it",
        "count": None,
        "process": None,
    }
    silent = {
        "process": 5,
        "pid": 205,
        "parent_pid": 1,
        "host": "host",
        "executable": "cc1",
        "command": "cc1 x.c",
        "name": "cc1",
        "start": SECOND,
        "end": 2 * SECOND,
        "primary": False,
        "exited": True,
        "recorded": False,
        "user_time": SECOND,
        "system_time": 0,
    }
    manifest = timeline(path, "", tables={"processes": [silent]}, diagnostics=[note])
    text = screen(path, manifest)
    assert "Annotate" not in text
    assert "1.00 s of CPU time, by program:" in text
