"""Cases of `tests/judged`: each names a report and the findings that it must have, may have and must not have.

A case is a TOML file:

    report = "golden/gpu/pairs/masks.tar.xz"    a file, or a folder of ranks, below tests/, or below ../shared/data with `shared = true`
    why = "what costs time there, from the raw rows"
    [[must]]                                    a finding that has to be there
    rule = "unneeded_sync"
    words = "cudaStreamSynchronize"             optional: in its title or subject
    saves = [1.0, 2.0]                          optional: expected saving, s
    place = 1                                   optional: at most this place in the list
    won = 1.36                                  optional: what the same program without the mistake took less, s
    within = [13.9, 14.3]                       optional: in this part of the run (s), because other programs disturbed the rest
    [[may]]                                     true, though not what matters most
    rule = "gpu_time_util"
    [[never]]
    rule = "gpu_waits_for_cpu"

Every other finding of at least medium severity is false. A case without [[must]] is clean.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

import tomllib

from tests.support.optional_dependencies import ROOT
from tests.support.reports.real_recordings import unpack
from warplens import catalog
from warplens.analysis.cpu.source_lines import read_source
from warplens.analysis.gpu.idle import idle
from warplens.convert.finish import finish
from warplens.importers.importing import import_file
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding, own_idle
from warplens.rules.gpus import TABLES
from warplens.rules.judging import Judgement, judge

CASES = ROOT / "tests" / "judged"
SHARED = ROOT.parent / "shared" / "data"
_COUNTS = ("high", "medium")


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
        unpack(path, folder)
        finish(folder / "spool", folder / "case.warplens")
        path = folder / "case.warplens"
    elif path.suffix != ".warplens":
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
        unfounded = claims_without_idle_time(report, judgement)
        won = list(_won(report, judgement, case.get("must", [])))
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
    wrong += unfounded
    return Verdict(
        path.stem,
        len(serious),
        len(serious) - len(false),
        len(must),
        len(must) - len(missing),
        tuple(wrong),
        tuple(won),
    )


def _won(
    report: Report, judgement: Judgement, must: list[Mapping[str, Any]]
) -> Iterator[tuple[str, float, float]]:
    """Yield rule, expected saving and what was won, s, of findings that must be there and whose twin is known."""
    for want in must:
        if "won" not in want:
            continue
        findings = judgement.distinct
        if "within" in want:
            begin, end = (round(edge * 1e9) for edge in want["within"])
            findings = judge(report, Selection(time=(begin, end)), [want["rule"]]).distinct
        best = next((finding for finding in findings if _is(finding, want)), None)
        if best is not None and best.estimate is not None:
            yield best.rule, best.estimate / 1e9, want["won"]


def claims_without_idle_time(report: Report, judgement: Judgement) -> list[str]:
    """Return the findings that expect more than the GPUs did nothing, and the causes of which findings have more than there is."""
    begin, end = (
        (judgement.begin, judgement.end)
        if judgement.loop is None
        else (judgement.loop.begin, judgement.loop.end)
    )
    left: dict[tuple[int, int, str], int] = Counter()
    room: dict[tuple[int, int], int] = Counter()
    selection = Selection(time=(begin - report.origin, end - report.origin))
    if any(report.tables[table] for table in TABLES):
        for row in idle(report, selection).to_pylist():
            left[row["process"], row["device"], row["cause"]] += row["end"] - row["start"]
            room[row["process"], row["device"]] += row["end"] - row["start"]
    wrong = []
    for finding in judgement.findings:
        own = getattr(catalog.find("rules.checks", finding.rule).load(), "IDLE", ())
        if own and room and (finding.estimate or 0) > max(room.values()):
            wrong.append(f"more than GPUs did nothing ({room}): {finding.title}")
        if own_idle(finding) > (finding.estimate or 0):
            wrong.append(f"more idle time than it wins: {finding.title}")
        for share in finding.idle:
            left[share.process, share.device, share.cause] -= share.ns
    return wrong + [
        f"findings have {-ns} ns more than there is of {cause}" for cause, ns in left.items() if ns < 0
    ]


def _is(finding: Finding, wanted: Mapping[str, Any]) -> bool:
    return finding.rule == wanted["rule"] and wanted.get("words", "") in f"{finding.title} {finding.subject}"


def _meets(finding: Finding, place: int, wanted: Mapping[str, Any]) -> bool:
    low, high = wanted.get("saves", (0, float("inf")))
    return (
        _is(finding, wanted)
        and place <= wanted.get("place", place)
        and low <= (finding.estimate or 0) / 1e9 <= high
    )
