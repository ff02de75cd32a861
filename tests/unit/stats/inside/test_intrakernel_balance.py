"""intrakernel_imbalance and the rules intrakernel_imbalance and intrakernel_tail_wave on launches whose losses are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.kernel_story import Launch, Story, chance
from warplens import catalog
from warplens.analysis.intrakernel.launches import launches
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.base import Finding
from warplens.rules.judging import judge

WAVE, IMBALANCE = "intrakernel_tail_wave", "intrakernel_imbalance"


def waves(launch: Launch, blocks: int, sms: int, length: int = 100, at_once: int = 1) -> None:
    """Add equal blocks of two warps, wave by wave."""
    for cta in range(blocks):
        begin = cta // (sms * at_once) * length
        launch.unit(cta, 0, cta % sms, begin, begin + length - 5)
        launch.unit(cta, 1, cta % sms, begin + 5, begin + length).region("mma", begin + 10, begin + length)


def findings(path: Path, story: Story, rule: str, **options: Any) -> list[Finding]:
    with open_report(story.write(path / "r.warplens")) as report:
        judgement = judge(report, Selection(), [rule], {rule: options})
    assert not judgement.not_judged
    return list(judgement.findings)


def imbalance(path: Path, story: Story, selection: Selection | None = None) -> list[dict[str, Any]]:
    with open_report(story.write(path / "i.warplens")) as report:
        found: list[dict[str, Any]] = (
            catalog.find("stats.tables", "intrakernel_imbalance")
            .load()
            .table(report, selection or Selection())
            .to_pylist()
        )
    return found


def test_waves_are_counted(tmp_path: Path) -> None:
    story = Story()
    waves(story.launch(end=300), 9, 4)  # 4 + 4 + 1
    waves(story.launch(end=200), 10, 4, at_once=2)  # 8 + 2
    first, second = sorted(imbalance(tmp_path, story), key=lambda row: row["Launch"])
    assert {
        name: first[name] for name in ("Duration (ns)", "CTAs", "SMs", "CTAs/SM", "Waves", "Last Wave (%)")
    } == {
        "Duration (ns)": 300,
        "CTAs": 9,
        "SMs": 4,
        "CTAs/SM": 1,
        "Waves": 2.25,
        "Last Wave (%)": 25.0,
    }
    assert (first["CTA Avg (ns)"], first["CTA Max (ns)"], first["Tail (ns)"], first["Lost (ns)"]) == (
        100,
        100,
        100,
        75,
    )
    assert (first["SM Busy Avg (ns)"], first["SM Max/Avg"]) == (225, pytest.approx(300 / 225))
    assert (second["CTAs/SM"], second["Waves"], second["Last Wave (%)"], second["Lost (ns)"]) == (
        2,
        1.25,
        25.0,
        50,
    )


def test_a_part_filled_last_wave(tmp_path: Path) -> None:
    story = Story()
    waves(story.launch(end=300), 9, 4)
    (finding,) = findings(tmp_path, story, WAVE)
    assert (finding.subject, finding.bound, finding.estimate, finding.occurrences) == ("gemm", 75, 75, 1)
    assert "9 blocks ran on 4 SMs, 1 on each at a time: 2.25 waves" in finding.cause
    assert [(row.table, row.id, row.values["cost_ns"]) for row in finding.evidence] == [
        ("intrakernel_launches", 0, 75)
    ]
    assert not findings(tmp_path / "other", story, IMBALANCE)


def test_full_waves_lose_nothing(tmp_path: Path) -> None:
    story = Story()
    waves(story.launch(end=200), 8, 4)
    assert not findings(tmp_path / "a", story, WAVE)
    assert not findings(tmp_path / "b", story, IMBALANCE)


def test_a_long_block(tmp_path: Path) -> None:
    story = Story()
    launch = story.launch(end=400)
    for sm in range(4):
        launch.unit(sm, 0, sm, 0, 400 if sm == 2 else 100)
    (finding,) = findings(tmp_path, story, IMBALANCE)
    assert (finding.bound, finding.estimate) == (225, 225)  # three SMs of four wait for 300
    assert "the busiest SM worked 2.29 times" in finding.cause
    assert not findings(tmp_path / "other", story, WAVE)


def test_both_at_once_share_what_is_lost(tmp_path: Path) -> None:
    story = Story()
    launch = story.launch(end=400)
    for cta in range(5):  # the one of the second wave is long
        launch.unit(cta, 0, cta % 4, 0 if cta < 4 else 100, 100 if cta < 4 else 400)
    (wave,), (uneven,) = findings(tmp_path / "a", story, WAVE), findings(tmp_path / "b", story, IMBALANCE)
    assert wave.bound == uneven.bound == 225
    assert (wave.estimate, uneven.estimate) == (
        105,
        120,
    )  # three of four SMs wait for an average block of 140


@pytest.mark.parametrize("how", [{"sample_blocks": 4}, {"units_lost": 3}])
def test_a_launch_with_missing_blocks_is_not_judged(tmp_path: Path, how: dict[str, Any]) -> None:
    story = Story()
    waves(story.launch(end=300, **how), 9, 4)
    (row,) = imbalance(tmp_path, story)
    assert row["Waves"] is row["Lost (ns)"] is None
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        judgement = judge(report, Selection(), [WAVE, IMBALANCE])
    assert set(judgement.not_judged.values()) == {"contains only some of the blocks of its kernels."}


def test_a_launch_at_the_edge_of_the_selection_counts_with_the_share_inside(tmp_path: Path) -> None:
    story = Story()
    waves(story.launch(end=300), 9, 4)
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        (finding,) = judge(report, Selection(time=(200, 300)), [WAVE]).findings
    assert (finding.bound, finding.estimate) == (25, 25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_chance_against_one_nanosecond_after_the_other(tmp_path: Path, seed: int) -> None:
    story = chance(seed)
    rows = {row["Launch"]: row for row in imbalance(tmp_path, story)}
    for number, launch in enumerate(story.launches):
        blocks: dict[int, list[int]] = {}
        for unit in launch.units:
            own = blocks.setdefault(unit.row["cta"], [unit.row["sm"], unit.row["start"], unit.row["end"]])
            own[1:] = min(own[1], unit.row["start"]), max(own[2], unit.row["end"])
        begin, finish = min(block[1] for block in blocks.values()), max(block[2] for block in blocks.values())
        sms = {block[0] for block in blocks.values()}
        busy, last, most = dict.fromkeys(sms, 0), dict.fromkeys(sms, begin), 0
        for time in range(begin, finish):
            for sm in sms:
                there = sum(block[0] == sm and block[1] <= time < block[2] for block in blocks.values())
                most = max(most, there)
                busy[sm] += there > 0
                last[sm] = time + 1 if there else last[sm]
        idle = [finish - time for time in last.values()]
        row = rows[number]
        assert (row["CTAs"], row["SMs"], row["CTAs/SM"], row["Duration (ns)"]) == (
            len(blocks),
            len(sms),
            most,
            finish - begin,
        )
        assert row["SM Busy Avg (ns)"] == pytest.approx(sum(busy.values()) / len(sms))
        assert row["SM Max/Avg"] == pytest.approx(max(busy.values()) * len(sms) / sum(busy.values()))
        assert (row["Tail (ns)"], row["Lost (ns)"]) == (max(idle), pytest.approx(sum(idle) / len(sms)))


def test_launches_are_told_apart(tmp_path: Path) -> None:
    story = Story()
    for name, device in (("gemm", 0), ("gemm", 1), (None, None)):
        waves(story.launch(name, device=device, end=300), 9, 4)
    assert {finding.subject for finding in findings(tmp_path, story, WAVE)} == {
        "gemm on GPU 0",
        "gemm on GPU 1",
        "buffer 1",
    }
    with open_report(tmp_path / "r.warplens") as report:
        assert launches(report, Selection()).name(2) == "buffer 1"
