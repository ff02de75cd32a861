"""Every rule on reports in which nothing fits anything: it judges or says what it lacks, and what it states can be true."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.reports.gpu_schedule import chaos
from tests.support.thorough import few
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("seed", few(range(4)))
def test_chaos(tmp_path: Path, seed: int) -> None:
    with open_report(chaos(seed).write(tmp_path / "r.warplens")) as report:
        for window in [None, (0, 0), (0, 1), (100, 400), (399, 400), (10**9, 2 * 10**9)]:
            judgement = judge(report, Selection(time=window))
            for finding in judgement.findings:
                assert finding.subject
                assert finding.occurrences >= 1
                assert finding.bound is None or 0 < finding.bound <= judgement.span, finding.rule
                assert len(finding.evidence) <= 50
                assert all(row.start <= row.end for row in finding.evidence)


def test_the_same_question_has_the_same_answer(tmp_path: Path) -> None:
    with open_report(chaos(9).write(tmp_path / "r.warplens")) as report:
        first = judge(report, Selection()).as_json()
    with open_report(tmp_path / "r.warplens") as report:
        assert judge(report, Selection()).as_json() == first


@pytest.mark.parametrize("picture", ["main |!mark", "main |<open"])
def test_what_lasts_no_time_is_not_judged(tmp_path: Path, picture: str) -> None:
    timeline(tmp_path / "r.warplens", picture, tick_ns=0)
    with open_report(tmp_path / "r.warplens") as report:
        judgement = judge(report, Selection())
    assert not judgement.findings
    assert not judgement.silent
    assert set(judgement.not_judged.values()) == {"lasts no time."}
