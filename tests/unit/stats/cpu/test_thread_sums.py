"""thread_state_sum and gil_sum against sums of the rows in plain Python."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path

import pytest

from tests.support.thorough import few
from tests.unit.stats.asking import stat
from tests.unit.stats.cpu_story import ORIGIN, Row, tell
from warplens import catalog
from warplens.analysis.cpu.gil import contention
from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection
from warplens.report import open as open_report
from warplens.stats.base import notes
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


SELECTIONS = [
    Selection(),
    Selection((5_000, 30_000)),
    Selection(nvtx=("step", None, None)),
    Selection((0, 50_000), ("step", "*", 1)),
    Selection(nvtx=("load", None, None)),
]


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    return tell(tmp_path_factory.mktemp("threads"))


def spans(report: Report, selection: Selection) -> list[tuple[int | None, int, int]]:
    begin, end = (ORIGIN + edge for edge in selection.time) if selection.time else (0, 1 << 60)
    if selection.nvtx is None:
        return [(None, begin, end)]
    name, domain, index = selection.nvtx
    ranges = [
        row
        for row in report.table("nvtx_ranges").to_pylist()
        if row["message"] == name and domain in ("*", row["domain"])
    ]
    ranges.sort(key=lambda row: (row["start"], row["id"]))
    ranges = ranges if index is None else ranges[index : index + 1]
    return [(row["thread"], max(row["start"], begin), min(row["end"], end)) for row in ranges]


def pieces(report: Report, selection: Selection, table: str) -> list[tuple[Row, int, int, int]]:
    """Each row with the part of it that lies in the selection: ns, and from when to when (ranges of one name do not overlap here)."""
    found = []
    for row in report.table(table).to_pylist():
        for thread, first, last in spans(report, selection):
            if (
                thread in (None, row["thread"])
                and row["start"] < last
                and (row["end"] > first or row["start"] >= first)
            ):
                first, last = max(row["start"], first), min(row["end"], last)
                found.append((row, last - first, first, last))
    return found


def tids(report: Report) -> dict[int, int]:
    return dict(
        zip(*(report.table("threads").column(name).to_pylist() for name in ("thread", "tid")), strict=True)
    )


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("selection", few(SELECTIONS, 2), ids=str)
def test_states(report: Report, selection: Selection, windowed: bool) -> None:
    asked = report.window(1) if windowed else report
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    reasons: dict[int, Counter[str]] = defaultdict(Counter)
    ids = tids(asked)
    for row, ns, _, _ in pieces(asked, selection, "thread_states"):
        sums[ids[row["thread"]]][row["state"]] += ns
        if row["state"] == "blocked":
            reasons[ids[row["thread"]]][row["reason"] or "[unknown]"] += ns
    found = stat(asked, "thread_state_sum", selection)
    assert sums
    assert {row["TID"] for row in found} == set(sums)
    for row in found:
        expected = sums[row["TID"]]
        assert {name: row[f"{name.capitalize()} (ns)"] for name in ("running", "runnable", "blocked")} == {
            name: expected[name] for name in ("running", "runnable", "blocked")
        }
        assert row["Running (%)"] == pytest.approx(
            100 * expected["running"] / expected.total() if expected.total() else 0
        )
        why = reasons[row["TID"]]
        if why.total():
            reason, percent = row["Blocked Most In"].rsplit(" (", 1)
            assert why[reason] == max(why.values())
            assert percent == f"{100 * why[reason] / why.total():.0f} %)"
    by_reason = {
        (row["TID"], row["Reason"]): row["Total Time (ns)"]
        for row in stat(asked, "thread_state_sum", selection, by="reason")
    }
    assert {key: value for key, value in by_reason.items() if key[1]} == {
        (tid, reason): ns for tid, counter in reasons.items() for reason, ns in counter.items()
    }


def test_states_that_were_guessed_are_said(report: Report) -> None:
    table = catalog.find("stats.tables", "thread_state_sum").load().table(report, Selection())
    assert notes(table) == [
        "States of 2 threads come from counters of the scheduler, read from time to time."
    ]


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize("selection", few(SELECTIONS, 2), ids=str)
def test_the_lock(report: Report, selection: Selection, windowed: bool) -> None:
    asked = report.window(1) if windowed else report
    ids, rows = tids(asked), pieces(asked, selection, "gil")
    sums: dict[int, Counter[str]] = defaultdict(Counter)
    waited: Counter[tuple[int, int]] = Counter()
    waits: dict[tuple[int, int], set[int]] = defaultdict(set)
    holds = [row for row in asked.table("gil").to_pylist() if row["state"] == "hold"]
    for row, ns, first, last in rows:
        mine = sums[ids[row["thread"]]]
        if row["state"] == "brief":
            part = ns / (row["end"] - row["start"]) if row["end"] > row["start"] else 1
            for name in ("held", "waited", "holds", "waits"):
                mine[name] += row[name] * part
            continue
        mine["held" if row["state"] == "hold" else "waited"] += ns
        mine[f"{row['state']}s"] += 1
        for hold in holds if row["state"] == "wait" else ():
            both = min(last, hold["end"]) - max(first, hold["start"])
            if both > 0 and hold["process"] == row["process"] and hold["thread"] != row["thread"]:
                waited[ids[row["thread"]], ids[hold["thread"]]] += both
                waits[ids[row["thread"]], ids[hold["thread"]]].add(row["id"])
    found = {row["TID"]: row for row in stat(asked, "gil_sum", selection)}
    caused: Counter[int] = Counter()
    for (_, holder), ns in waited.items():
        caused[holder] += ns
    assert set(found) == set(sums) | set(caused)
    for tid, row in found.items():
        for name, unit in (("held", " (ns)"), ("waited", " (ns)"), ("holds", ""), ("waits", "")):
            assert row[name.capitalize() + unit] == pytest.approx(
                sums[tid][name], abs=20
            )  # sums of short ones are rounded, each
        assert row["Others Waited (ns)"] == caused[tid]
        theirs = {holder: ns for (waiter, holder), ns in waited.items() if waiter == tid}
        most = row["Waited Most For"]
        assert (most is None) == (not theirs)
        if most is not None:
            assert theirs[int(most.rpartition("(")[2].rstrip(")"))] == max(theirs.values())
    assert list(found) == sorted(found, key=lambda tid: (-caused[tid], -found[tid]["Held (ns)"], tid))
    pairs = stat(asked, "gil_sum", selection, by="pair")
    assert {
        (row["TID"], int(row["Held By"].rpartition("(")[2].rstrip(")"))): row["Total Time (ns)"]
        for row in pairs
    } == waited
    if selection.nvtx is None:
        assert {row["TID"]: row["Waits"] for row in pairs} == {
            waiter: len(found) for (waiter, _), found in waits.items()
        }


def test_many_meetings_are_taken_in_pieces(report: Report, monkeypatch: pytest.MonkeyPatch) -> None:
    for selection in SELECTIONS:
        whole = contention(report, selection)
        with monkeypatch.context() as patch:
            patch.setattr("warplens.analysis.cpu.gil._AT_ONCE", 7)
            assert contention(report, selection).equals(whole)


def test_a_drawn_hog(tmp_path: Path) -> None:
    picture = """
        main:gil |(wait            )(hold)
        hog:gil  |(hold          )
        idle:gil |                        (hold )
    """
    timeline(tmp_path / "r.warplens", picture, tick_ns=1000)
    first, *rest = stat(open_report(tmp_path / "r.warplens"), "gil_sum")
    assert (first["Thread"], first["Others Waited (ns)"], first["Max Held (ns)"]) == ("hog", 16_000, 16_000)
    assert {row["Thread"]: row["Waited Most For"] for row in rest} == {"main": "hog (1001)", "idle": None}
    assert {row["Thread"]: row["Others Waited (ns)"] for row in rest} == {"main": 0, "idle": 0}


@pytest.mark.parametrize(
    ("name", "what"), [("thread_state_sum", "thread state data"), ("gil_sum", "Python GIL data")]
)
def test_without_data(report: Report, name: str, what: str, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=f"^does not contain {what} in the selected part.$"):
        stat(report, name, Selection((10**9, 2 * 10**9)))
    timeline(tmp_path / "r.warplens", "main |[a  ]")
    with pytest.raises(MissingData, match=f"^does not contain {what}.$"):
        stat(open_report(tmp_path / "r.warplens"), name)
    with pytest.raises(UsageError, match="choose from: thread, "):
        stat(report, name, by="colour")
