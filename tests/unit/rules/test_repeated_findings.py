"""Findings about the same time are one for the reader; those about different time stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from tests.support.reports.simulated_gpu import Machine
from tests.unit.rules.asking import drawn, looped, one
from warplens.analysis import intervals
from warplens.analysis.intervals import Cover
from warplens.arrays import Int64Array
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules import judging
from warplens.rules.base import Finding
from warplens.rules.judging import judge, marked_repeats

MS, US = 1_000_000, 1_000


def finding(rule: str, claim: Cover | None, estimate: int | None) -> Finding:
    bound = claim.total if claim is not None else 100
    return Finding(
        rule=rule,
        subject=rule,
        title="t",
        cause="c",
        fix="f",
        evidence=(),
        occurrences=1,
        bound=bound,
        estimate=estimate,
        claim=claim,
    )


def same(*findings: Finding) -> dict[str, str | None]:
    return {found.rule: found.same_as for found in marked_repeats(findings)}


def test_the_finding_with_the_greatest_saving_has_the_time() -> None:
    whole, most, other = Cover([0], [100]), Cover([5], [95]), Cover([200], [300])
    known = same(
        finding("a", most, 50), finding("b", whole, 80), finding("c", other, 10), finding("d", whole, None)
    )
    assert known == {"a": "b", "b": None, "c": None, "d": "b"}


def test_a_part_in_common_is_not_the_same() -> None:
    first, second = Cover([0], [100]), Cover([50], [150])
    assert same(finding("a", first, 100), finding("b", second, 90)) == {"a": None, "b": None}


def test_several_findings_may_have_the_time_together() -> None:
    parts = [finding("a", Cover([0], [50]), 50), finding("b", Cover([50], [100]), 50)]
    assert same(*parts, finding("all", Cover([0], [100]), None))["all"] in ("a", "b")


def test_a_finding_without_a_claim_stays_as_it_is() -> None:
    assert same(finding("a", None, 5), finding("b", None, 5)) == {"a": None, "b": None}


def test_the_union_of_claims_is_not_built_anew_for_each_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    count, each, united = 128, 50, 0
    start = np.arange(count * each, dtype=np.int64) * 10
    claims = [
        Cover(start[n * each : (n + 1) * each], start[n * each : (n + 1) * each] + 5) for n in range(count)
    ]
    plain = intervals.union

    def counting(first: npt.ArrayLike, last: npt.ArrayLike) -> tuple[Int64Array, Int64Array]:
        nonlocal united
        united += len(np.asarray(first))
        return plain(first, last)

    monkeypatch.setattr(intervals, "union", counting)
    known = same(*(finding(f"r{n}", claim, n) for n, claim in enumerate(claims)))
    assert set(known.values()) == {None}
    assert united < count * each * 12  # anew for each: 64 times


def test_rules_about_the_whole_run_do_not_need_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine()
    machine.launch(2 * MS)
    asked: list[object] = []
    monkeypatch.setattr(judging, "judged_loop", lambda *both: asked.append(both))
    with open_report(machine.write(tmp_path / "r.warplens")) as report:
        judge(report, Selection(), ["startup"])
        assert asked == []
        judge(report, Selection(), ["startup", "small_kernels"])
    assert len(asked) == 1


def test_a_wait_and_what_the_host_does_besides_are_two_findings(tmp_path: Path) -> None:
    """Each step computes for 7 ms on the host and stands still for 4 ms in a copy: either can be won, and `gpu_time_util` says no more."""
    from tests.support.reports.simulated_gpu import PAGEABLE

    machine = Machine()
    for _ in range(40):
        machine.copy(4 * MS, 16 << 20, PAGEABLE, waits=True)
        machine.launch(20 * US)
        machine.work(7 * MS)
    machine.write(tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        judgement = judge(report, Selection())
    distinct = {found.rule: found for found in judgement.distinct}
    assert 0.9 * 280 * MS < (distinct["gpu_waits_for_cpu"].estimate or 0) < 280 * MS
    assert 0.9 * 160 * MS < (distinct["cuda_memcpy_async"].estimate or 0) < 165 * MS
    others = {found.rule: found.same_as for found in judgement.findings if found.same_as}
    assert others["gpu_time_util"] == "gpu_waits_for_cpu"
    assert others["transfers_not_overlapped"] == "cuda_memcpy_async"


def test_the_same_on_several_ranks_is_one_finding(tmp_path: Path) -> None:
    """Ranks lose the same time at once, so the finding costs what the worst of them loses."""
    cuda: dict[str, Any] = {
        "gpu0": {"multiprocessors": 100},
        "gemm": {"grid_x": 400},
        "serial": {"grid_x": 1},
    }
    picture = "\n".join(
        f"{rank}/gpu0.7 |(gemm  ){'(serial '.ljust(length)})(gemm  )"
        for rank, length in (("a", 59), ("b", 79), ("c", 69))
    )
    found = one(drawn(tmp_path, picture, cuda=cuda, ranks={"a": 0, "b": 1, "c": 2}), "tiny_grids")
    assert found.title.startswith("serial ran for 80.0 us")
    assert found.title.endswith("; the same in 2 other processes")
    assert "The same: rank 2, rank 0." in found.cause
    assert (found.occurrences, found.bound, found.estimate) == (3, 80 * US, 79_200)
    assert len({row.process for row in found.evidence}) == 3


def test_the_same_wait_of_several_processes_names_them(tmp_path: Path) -> None:
    step = "main |[step   ][wait_for_data              ]"
    picture = "\n".join(f"{rank}/{looped(step, 4)}" for rank in "ab")
    found = one(drawn(tmp_path, picture, ranks={"a": 0, "b": 1}), "data_loader")
    assert found.title.endswith("; the same in 1 other process")
    assert found.occurrences == 8
    assert "rank" in found.cause.rpartition("The same: ")[2]
    assert len({row.thread for row in found.evidence}) == 2
