"""Idle time of GPUs is counted for one finding, and no finding expects more of it than there is."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.reports.judged import claims_without_idle_time
from tests.support.reports.simulated_gpu import Machine
from tests.unit.rules.asking import drawn
from warplens import catalog
from warplens.analysis.cpu.culprits import sampled
from warplens.analysis.gpu.idle import CAUSES
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.base import SEVERITIES, Finding, Severity, graded, own_idle, priced
from warplens.rules.idle_time import CUT, IdleLedger
from warplens.rules.judging import judge
from warplens.stats.tables.time_ledger import RULES

MS, US = 1_000_000, 1_000
# GPU 0 did nothing from 10 to 45 us: 10 to 34 of it before the next launch was called.
LATE = """
main:api |(cudaLaunchKernel#1)           (cudaLaunchKernel#2)
gpu0.7   |     (gemm#1    )                                (gemm#2 )
"""


def finding(estimate: int, rule: str = "gpu_waits_for_cpu") -> Finding:
    return Finding(
        rule=rule,
        subject="s",
        title="t",
        cause="c",
        fix="f",
        evidence=(),
        occurrences=1,
        bound=1 << 40,
        estimate=estimate,
        priced_by="what-if",
    )


def test_the_first_finding_has_the_time_and_the_next_the_rest(tmp_path: Path) -> None:
    ledger = IdleLedger.of(drawn(tmp_path, LATE), Selection())
    ((causes),) = ledger.whole.values()
    host, launch = causes["host-bound"], causes["launch-bound"]
    first = ledger.share(finding(host - 5 * US), ("host-bound",))
    assert [(share.cause, share.ns) for share in first.idle] == [("host-bound", host - 5 * US)]
    assert first.shared == 0
    second = ledger.share(finding(launch + 9 * US, "small_kernels"), ("launch-bound",))
    assert [(share.cause, share.ns) for share in second.idle] == [
        ("launch-bound", launch),
        ("host-bound", 5 * US),
    ]
    assert (own_idle(second), second.shared) == (launch + 5 * US, 4 * US)
    assert ledger.share(finding(0), ("host-bound",)).idle == ()


def test_an_estimate_above_the_idle_time_is_cut_and_says_so(tmp_path: Path) -> None:
    ledger = IdleLedger.of(drawn(tmp_path, LATE), Selection())
    ((causes),) = ledger.whole.values()
    most = causes["host-bound"] + causes["launch-bound"]
    cut = ledger.cut(finding(10 * most), ("host-bound",))
    assert cut.estimate == most
    assert cut.priced_by == f"what-if; {CUT}"
    assert ledger.cut(finding(most), ("host-bound",)).priced_by == "what-if"
    assert ledger.cut(finding(10 * most), ()).estimate == 10 * most  # it wins something else than idle time


def test_what_findings_claim_is_compared_with_the_report(tmp_path: Path) -> None:
    machine = Machine()
    for _ in range(12):
        machine.work(2 * MS)
        machine.launch(MS)
        machine.wait()
    with open_report(machine.write(tmp_path / "r.warplens")) as report:
        judgement = judge(report, Selection())
        assert any(finding.idle for finding in judgement.findings)
        assert claims_without_idle_time(report, judgement) == []
        twice = replace(judgement, findings=judgement.findings * 2)
        assert "ns more than there is of" in claims_without_idle_time(report, twice)[0]


def test_rules_about_idle_time_stand_in_the_ledger_of_all_time() -> None:
    for unit in catalog.units("rules.checks"):
        for cause in getattr(unit.load(), "IDLE", ()):
            assert cause in CAUSES, unit.id
        own = getattr(unit.load(), "IDLE", ())[:1]
        assert all(unit.id in RULES[cause].split(", ") for cause in own), unit.id


@given(
    st.integers(0, 1 << 40),
    st.one_of(st.none(), st.integers(0, 1 << 40)),
    st.integers(1, 1 << 40),
    st.sampled_from([unit.id for unit in catalog.units("rules.checks")]),
)
def test_the_share_alone_decides_how_severe_a_finding_is(
    bound: int, estimate: int | None, span: int, rule: str
) -> None:
    estimate = None if estimate is None else min(estimate, bound)
    one = replace(finding(0, rule), bound=bound, estimate=estimate)
    price = priced(one)
    assert price is not None
    share = price / span
    assert graded(one, span) == ("high" if share >= 0.1 else "medium" if share >= 0.02 else "low")


@pytest.mark.parametrize("severity", SEVERITIES)
def test_a_rule_cannot_say_how_severe_a_finding_with_a_price_is(severity: Severity) -> None:
    with pytest.raises(ValueError, match="the price of a finding decides"):
        replace(finding(5), severity=severity)


def test_samples_say_when_a_thread_was_in_a_function(tmp_path: Path) -> None:
    picture = "main:python |(save;write        )     (step  )     (save;write  )"
    files = {"save": {"file": "/home/me/train.py"}, "step": {"file": "/home/me/train.py"}}
    with drawn(tmp_path, picture, cpu=files) as report:
        thread = report.sql("SELECT thread FROM samples LIMIT 1").column(0)[0].as_py()
        names = report.sql("SELECT DISTINCT stack FROM samples")
        assert names.num_rows >= 2
        begin, end = report.span
        cover = sampled(report, thread, "step (train.py)", begin=begin, end=end)
        assert len(cover.start) == 1
        assert cover.total < (end - begin) // 2
        assert not sampled(report, thread, "nothing", begin=begin, end=end).total
        assert np.all(cover.start >= begin)
