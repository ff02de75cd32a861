"""Windows of time and NVTX ranges as selections."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplens.errors import MissingData, UsageError
from warplens.report import Report, Selection, selected_ranges
from warplens.report import open as open_report
from warplens.report.selection import parse_duration, parse_nvtx, parse_time
from warplens.testing.timeline import timeline


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("1s", 10**9),
        ("2s500ms", 2_500_000_000),
        ("1.5s", 1_500_000_000),
        (".5us", 500),
        ("3m", 180 * 10**9),
        ("7ns", 7),
        ("2", 2 * 10**9),
        ("0.25", 250_000_000),
        (" 1ms ", 1_000_000),
        ("1s 5ms", 1_005_000_000),
        ("12345678901234567ns", 12345678901234567),
    ],
)
def test_durations(text: str, ns: int) -> None:
    assert parse_duration(text) == ns


@pytest.mark.parametrize("text", ["", "x", "1h", "-1s", "1s2", "s", "1..5s", "1s/2s", "nan"])
def test_a_text_that_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a time"):
        parse_duration(text)


def test_more_time_than_there_is() -> None:
    with pytest.raises(UsageError, match="longer than any report"):
        parse_duration("99999999999999999999s")


@given(st.integers(0, 10**15))
def test_whole_ns_are_exact(ns: int) -> None:
    assert parse_duration(f"{ns}ns") == ns


def test_windows() -> None:
    assert parse_time("1s/2s500ms") == (10**9, 2_500_000_000)
    assert parse_time("/1s") == (0, 10**9)
    assert parse_time("1s/")[0] == 10**9
    assert parse_time("1s/")[1] > 10**18
    for text in ("1s", "2s/1s", "a/b"):
        with pytest.raises(UsageError):
            parse_time(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("step", ("step", None, None)),
        ("step/3", ("step", None, 3)),
        ("step@train", ("step", "train", None)),
        ("step@train/0", ("step", "train", 0)),
        ("a/b", ("a/b", None, None)),
        ("a/b/2", ("a/b", None, 2)),
        (r"a\@b@c", ("a@b", "c", None)),
        (r"a\/7", ("a/7", None, None)),
        ("step@*", ("step", "*", None)),
        ("with space@my domain", ("with space", "my domain", None)),
    ],
)
def test_ranges(text: str, expected: tuple[str, str | None, int | None]) -> None:
    assert parse_nvtx(text) == expected


@pytest.mark.parametrize("text", ["", "@x", "/3", "a@b@c"])
def test_a_text_that_names_no_range_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a range"):
        parse_nvtx(text)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    path = tmp_path_factory.mktemp("selection") / "r.warplens"
    timeline(path, "main |[a  ][b  ][a  ]\nmain@d |   [a ]\nw |   <z")
    return open_report(path)


def chosen(report: Report, time: str | None = None, nvtx: str | None = None) -> list[str]:
    relation = selected_ranges(report, Selection.parse(time, nvtx))
    rows = report.sql(f"SELECT message, domain FROM {relation} ORDER BY id").to_pylist()
    return [f"{row['message']}@{row['domain']}" if row["domain"] else row["message"] for row in rows]


def test_no_selection_is_everything(report: Report) -> None:
    assert chosen(report) == ["a", "z", "a@d", "b", "a"]
    assert Selection().window(report) is None


def test_a_window_takes_what_overlaps_it(report: Report) -> None:
    assert chosen(report, "0/3us") == ["a"]
    assert chosen(report, "0/3001ns") == ["a", "z", "a@d"]
    assert chosen(report, "5us/6us") == ["z", "a@d", "b"]
    assert chosen(report, "10us/20s") == ["z", "a"]


def test_a_range_selects_its_time(report: Report) -> None:
    assert Selection.parse(nvtx="a/1").window(report) == (1_000_010_000, 1_000_015_000)
    assert chosen(report, nvtx="a/1") == ["z", "a"]
    assert chosen(report, nvtx="a@d") == ["a", "z", "a@d", "b"]
    assert chosen(report, nvtx="a@*/1") == ["a", "z", "a@d", "b"]
    assert chosen(report, "0/4us", "a@d") == ["a", "z", "a@d"]


def test_a_range_that_is_not_there(report: Report) -> None:
    for text in ("nope", "b@d", "b/5"):
        with pytest.raises(MissingData, match="nvtx_sum"):
            chosen(report, nvtx=text)


def test_ranges_without_duration_belong_to_the_window_they_lie_in(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a  ]", tick_ns=0)
    report = open_report(tmp_path / "r.warplens")
    assert chosen(report, "0/1ns") == ["a"]
    assert chosen(report, "1ns/2ns") == []
