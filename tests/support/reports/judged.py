"""Cases of `tests/judged`: each names a report and the findings that it must have, may have and must not have.

A case is a TOML file:

    report = "golden/gpu/pairs/masks.tar.xz"    below tests/, or below ../shared/data with `shared = true`
    why = "what costs time there, from the raw rows"
    [[must]]                                    a finding that has to be there
    rule = "unneeded_sync"
    words = "cudaStreamSynchronize"             optional: in its title or subject
    saves = [1.0, 2.0]                          optional: expected saving, s
    place = 1                                   optional: at most this place in the list
    won = 1.36                                  optional: what the same program without the mistake took less, s
    [[may]]                                     true, though not what matters most
    rule = "gpu_time_util"
    [[never]]
    rule = "gpu_waits_for_cpu"

Every other finding of at least medium severity is false. A case without [[must]] is clean.
"""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tomllib

from tests.support.pieces import ROOT
from warplens.analysis.cpu.source_lines import read_source
from warplens.convert.finish import finish
from warplens.importers.importing import import_file
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules import hosts
from warplens.rules.base import Finding
from warplens.rules.judging import Judgement, judge

CASES = ROOT / "tests" / "judged"
SHARED = ROOT.parent / "shared" / "data"
_COUNTS = ("high", "medium")
# Rules whose fix lets a GPU that does nothing begin sooner: none wins more than the time in which one did nothing.
IDLE_RULES = (
    "gpu_waits_for_cpu",
    "unneeded_sync",
    "cuda_api_sync",
    "cuda_memcpy_sync",
    "cuda_memset_sync",
    "data_loader",
    "small_kernels",
)


@dataclass(frozen=True)
class Verdict:
    """How findings compare with a case: counts, what is wrong in words, and of which rules which saving (s) was expected and won."""

    case: str
    reported: int
    true: int
    wanted: int
    named: int
    wrong: tuple[str, ...] = field(default=())
    won: tuple[tuple[str, float, float], ...] = field(default=())


def cases() -> list[Path]:
    """Return the files of all cases."""
    return sorted(CASES.glob("*.toml"))


def source(case: Mapping[str, Any]) -> Path:
    """Return where the report of a case lies."""
    return (SHARED if case.get("shared") else ROOT / "tests") / str(case["report"])


@contextmanager
def report_of(case: Mapping[str, Any], folder: Path) -> Iterator[Report]:
    """Open the report of a case; recordings are converted, files of other tools imported, below `folder`."""
    path = source(case)
    if path.name.endswith(".tar.xz"):
        with tarfile.open(path) as packed:
            packed.extractall(folder, filter="data")
        finish(folder / "spool", folder / "case.warplens")
        path = folder / "case.warplens"
    elif path.is_file():
        import_file(path, folder / "case.warplens")
        path = folder / "case.warplens"
    with open_report(path) as report:
        yield report


@contextmanager
def _sources_of(case: Mapping[str, Any]) -> Iterator[None]:
    """Let rules read the programs beside a recording: the paths in it are those of the machine that made it."""
    programs = source(case).parent / "programs"
    read = read_source

    def nearby(path: str) -> list[str] | None:
        own = programs / Path(path).name
        return read(str(own)) if own.is_file() else read(path)

    with patch("warplens.rules.checks.sleeping.read_source", nearby):
        yield


def compared(path: Path, folder: Path) -> Verdict:
    """Judge the report of a case and compare."""
    case = tomllib.loads(path.read_text(encoding="utf-8"))
    with report_of(case, folder) as report, _sources_of(case):
        judgement = judge(report, Selection())
        idle = room(report, judgement)
    findings = judgement.distinct
    must, may, never = (case.get(name, []) for name in ("must", "may", "never"))
    wrong = []
    missing = [
        want
        for want in must
        if not any(_meets(finding, place, want) for place, finding in enumerate(findings, 1))
    ]
    wrong += [f"missing: {want}" for want in missing]
    wrong += [
        f"reported although never: {finding.title}"
        for finding in findings
        for no in never
        if _is(finding, no)
    ]
    serious = [finding for finding in findings if finding.severity in _COUNTS]
    false = [finding for finding in serious if not any(_is(finding, known) for known in (*must, *may))]
    wrong += [
        f"false: {finding.severity} {finding.rule} ({finding.subject}): {finding.title}" for finding in false
    ]
    wrong += [
        f"more than the idle time ({idle / 1e6:.3f} ms): {finding.title}"
        for finding in judgement.findings
        if finding.rule in IDLE_RULES and idle is not None and (finding.estimate or 0) > idle
    ]
    won = [
        (finding.rule, finding.estimate / 1e9, want["won"])
        for want in must
        if "won" in want
        for finding in findings
        if _is(finding, want) and finding.estimate is not None
    ]
    return Verdict(
        path.stem,
        len(serious),
        len(serious) - len(false),
        len(must),
        len(must) - len(missing),
        tuple(wrong),
        tuple(won),
    )


def room(report: Report, judgement: Judgement) -> int | None:
    """Return for how long any GPU did nothing in the time that was judged, ns; None without a GPU."""
    begin, end = (
        (judgement.begin, judgement.end)
        if judgement.loop is None
        else (judgement.loop.begin, judgement.loop.end)
    )
    idle = hosts.idle(report, Selection(time=(begin - report.origin, end - report.origin)), whole=True)
    return None if idle is None else idle.total


def _is(finding: Finding, wanted: Mapping[str, Any]) -> bool:
    return finding.rule == wanted["rule"] and wanted.get("words", "") in f"{finding.title} {finding.subject}"


def _meets(finding: Finding, place: int, wanted: Mapping[str, Any]) -> bool:
    low, high = wanted.get("saves", (0, float("inf")))
    return (
        _is(finding, wanted)
        and place <= wanted.get("place", place)
        and low <= (finding.estimate or 0) / 1e9 <= high
    )
