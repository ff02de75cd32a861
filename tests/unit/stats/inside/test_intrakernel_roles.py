"""intrakernel_roles, intrakernel_overlap and the rule intrakernel_starved_consumer on a pipeline drawn by hand, and by chance."""

from __future__ import annotations

from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import warplens.analysis.intrakernel.blocks as blocks
from tests.support.reports.kernel_story import Story, chance
from tests.support.thorough import few
from warplens import catalog
from warplens.analysis.intrakernel.roles import is_wait, words
from warplens.errors import MissingData
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.rules.judging import judge

Row = dict[str, Any]


def asked(path: Path, story: Story, name: str, **options: Any) -> list[Row]:
    with open_report(story.write(path / "r.warplens")) as report:
        found: list[Row] = (
            catalog.find("stats.tables", name).load().table(report, Selection(), **options).to_pylist()
        )
    return found


def pipeline(ctas: int = 3, launches: int = 1) -> Story:
    """A warp loads (0 to 60, 60 to 100), two compute what was loaded (60 to 80, 100 to 130) and wait for it until then."""
    story = Story()
    for number in range(launches):
        begin = 1000 * number
        launch = story.launch("gemm", begin, begin + 130)
        for cta in range(ctas):
            loads = launch.unit(cta, 0, cta, begin, begin + 130)
            loads.region("tile", begin, begin + 60).region("load", begin, begin + 60)
            loads.region("load", begin + 60, begin + 100).region("wait empty", begin + 100, begin + 130)
            for warp in (4, 5):
                computes = launch.unit(cta, warp, cta, begin, begin + 130)
                computes.region("wait full", begin, begin + 60).region("mma", begin + 60, begin + 80)
                computes.region("wait full", begin + 80, begin + 100).region("mma", begin + 100, begin + 130)
    return story


def test_the_critical_role_is_the_one_that_others_wait_for(tmp_path: Path) -> None:
    load, mma = asked(tmp_path, pipeline(), "intrakernel_roles")
    assert (load["Role"], mma["Role"]) == ("warp 0", "warps 4-5")
    assert (
        load["Work (ns)"],
        load["Wait (ns)"],
        load["Awaited (ns)"],
        load["Critical"],
        load["Waits For"],
    ) == (
        *(3 * 100, 3 * 30, 3 * 80),
        "yes",
        "warps 4-5",
    )
    assert (mma["Work (ns)"], mma["Wait (ns)"], mma["Awaited (ns)"], mma["Critical"], mma["Waits For"]) == (
        *(3 * 50, 3 * 80, 3 * 30),
        "",
        "warp 0",
    )
    assert (load["Work (%)"], load["Units"], mma["Units"]) == (pytest.approx(100 * 100 / 130), 3, 6)


def test_without_waits_no_role_is_critical(tmp_path: Path) -> None:
    rows = asked(tmp_path, pipeline(), "intrakernel_roles", waits="stuck")
    assert [(row["Awaited (ns)"], row["Critical"]) for row in rows] == [(None, ""), (None, "")]


@pytest.mark.slow
def test_overlap(tmp_path: Path) -> None:
    (roles,) = asked(tmp_path / "a", pipeline(), "intrakernel_overlap")
    assert (roles["First"], roles["Second"], roles["Both (ns)"]) == ("warp 0", "warps 4-5", 3 * 20)
    assert (roles["Of First (%)"], roles["Of Second (%)"]) == (20.0, 40.0)
    tags = asked(tmp_path / "b", pipeline(), "intrakernel_overlap", by="tag")
    assert {frozenset((row["First"], row["Second"])): row["Both (ns)"] for row in tags} == {
        frozenset(("wait full", "load")): 240,
        frozenset(("load", "mma")): 60,
        frozenset(("mma", "wait empty")): 90,
        frozenset(("wait full", "mma")): 0,
        frozenset(("wait full", "wait empty")): 0,
        frozenset(("load", "wait empty")): 0,
    }
    warps = asked(tmp_path / "c", pipeline(), "intrakernel_overlap", by="warp")
    assert [(row["First"], row["Second"], row["Both (ns)"]) for row in warps] == [
        ("warp 4", "warp 5", 150),
        ("warp 0", "warp 4", 60),
        ("warp 0", "warp 5", 60),
    ]


def test_one_role_has_no_pair(tmp_path: Path) -> None:
    story = Story()
    story.launch().unit(0, 0, 0, 0, 100).region("mma", 0, 50)
    with pytest.raises(MissingData, match="does not contain two roles in one kernel"):
        asked(tmp_path, story, "intrakernel_overlap")


@pytest.mark.parametrize(
    ("tag", "waits"),
    [
        *(
            ("wait", True),
            ("wait full", True),
            ("consumer/wait_full", True),
            ("mbarrierWait", True),
            ("BarSync", True),
        ),
        *(
            ("producer_acquire", True),
            ("async_load", False),
            ("wait/load", False),
            ("await", False),
            ("mma", False),
            ("tile 7", False),
        ),
    ],
)
def test_tags_of_waits_are_recognised(tag: str, waits: bool) -> None:
    assert is_wait(tag) is waits


def test_words() -> None:
    assert words("TMALoad_k2") == {"tma", "load", "k"}


@pytest.mark.slow
@pytest.mark.parametrize("at_once", [1, 7, 1 << 18])
@pytest.mark.parametrize("seed", few(range(4)))
def test_chance_against_one_nanosecond_after_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, at_once: int
) -> None:
    monkeypatch.setattr(blocks, "_AT_ONCE", at_once)
    story = chance(seed, launches=2, ctas=3)
    for launch in story.launches:
        for unit in launch.units:  # those that cross are cut otherwise than here
            unit.events[:] = [row for row in unit.events if row["kind"] == "asynchronous"][:3]
    both: dict[Any, int] = defaultdict(int)
    for launch in story.launches:
        name = launch.row["name"] or "buffer 1"
        edges = sorted(
            {row[edge] for unit in launch.units for row in unit.events for edge in ("start", "end")}
        )
        for cta in range(3):
            rows = [row for unit in launch.units if unit.row["cta"] == cta for row in unit.events]
            for begin, end in pairwise(edges):
                tags = {row["tag"] for row in rows if row["start"] <= begin < row["end"]}
                for pair in ((a, b) for a in tags for b in tags if a < b):
                    both[(name, *pair)] += end - begin
    rows = asked(tmp_path, story, "intrakernel_overlap", by="tag")
    found = {(row["Kernel"], *sorted((row["First"], row["Second"]))): row["Both (ns)"] for row in rows}
    assert {key: value for key, value in found.items() if value} == {
        key: value for key, value in both.items() if value
    }


STARVED = "intrakernel_starved_consumer"


def test_a_starved_consumer(tmp_path: Path) -> None:
    with open_report(pipeline(ctas=3, launches=2).write(tmp_path / "r.warplens")) as report:
        (finding,) = judge(report, Selection(), [STARVED]).findings
    assert (finding.subject, finding.occurrences) == ("gemm", 2)
    assert (finding.bound, finding.estimate) == (160, 160)  # each SM is held up for 80 in each launch
    assert "warps 4-5 waiting and warp 0 at work" in finding.cause


def test_two_blocks_of_an_sm_that_wait_at_once_hold_it_up_once(tmp_path: Path) -> None:
    story = pipeline(ctas=3)
    for unit in story.launches[0].units:
        unit.row["sm"] //= 2  # blocks 0 and 1 share one
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        (finding,) = judge(report, Selection(), [STARVED]).findings
    assert (finding.bound, finding.estimate) == (80, 80)


def test_a_producer_that_waits_is_no_fault(tmp_path: Path) -> None:
    story = Story()
    launch = story.launch()
    launch.unit(0, 0, 0, 0, 1000).region("load", 0, 20).region("wait empty", 20, 1000)
    launch.unit(0, 4, 0, 0, 1000).region("wait full", 0, 20).region("mma", 20, 1000)
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        judgement = judge(report, Selection(), [STARVED])
    assert judgement.silent == (STARVED,)


@pytest.mark.parametrize("tags", [("load", "mma"), ("first", "wait"), ("compute_load", "wait")])
def test_roles_without_waits_are_not_judged(tmp_path: Path, tags: tuple[str, str]) -> None:
    story = Story()
    launch = story.launch()
    launch.unit(0, 0, 0, 0, 1000).region(tags[0], 0, 900)
    launch.unit(0, 4, 0, 0, 1000).region(tags[1], 0, 900).region("mma", 900, 1000)
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        judgement = judge(report, Selection(), [STARVED])
    assert not judgement.findings
    assert "record their waits" in judgement.not_judged[STARVED]


def test_names_say_who_produces(tmp_path: Path) -> None:
    story = Story()
    launch = story.launch()
    launch.unit(0, 0, 0, 0, 1000).region("producer/step", 0, 900)
    launch.unit(0, 4, 0, 0, 1000).region("consumer/wait", 0, 900).region("consumer/step", 900, 1000)
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        (finding,) = judge(report, Selection(), [STARVED]).findings
    assert (finding.bound, finding.estimate) == (900, 900)


OVERHEAD = "intrakernel_overhead"


def test_recording_that_takes_too_long(tmp_path: Path) -> None:
    story = Story()
    unit = story.launch().unit(0, 0, 0, 0, 1000)
    for number in range(5):
        unit.region("mma", 100 * number, 100 * number + 50)
    with open_report(story.write(tmp_path / "r.warplens")) as report:
        (finding,) = judge(report, Selection(), [OVERHEAD]).findings  # 5 records of 40 ns
        assert not judge(report, Selection(), [OVERHEAD], {OVERHEAD: {"cost": 9.0}}).findings
    assert (finding.bound, finding.estimate) == (200, None)
    assert "a record every 200 ns" in finding.cause


def test_dropped_records_make_a_finding(tmp_path: Path) -> None:
    story = Story()
    story.launch(units_lost=2).unit(0, 0, 0, 0, 100_000, dropped=3).region("mma", 0, 50)
    with open_report(story.write(tmp_path / "r.warplens", end=200_000)) as report:
        (finding,) = judge(report, Selection(), [OVERHEAD]).findings
    assert (finding.severity, finding.bound) == ("info", None)
    assert "3 records (75 %) found no slot and 2 warps found no place" in finding.cause
    assert "slots=67" in finding.fix


def test_reports_without_kernels_are_not_judged(tmp_path: Path) -> None:
    names = [OVERHEAD, STARVED, "intrakernel_imbalance", "intrakernel_tail_wave"]
    with open_report(Story().write(tmp_path / "r.warplens")) as report:
        assert set(judge(report, Selection(), names).not_judged) == set(names)
