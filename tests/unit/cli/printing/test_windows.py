"""`--window N` in every command that asks, and the windows in the words about a report."""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from warplens.cli.group import commands
from warplens.cli.printing.summary import summary
from warplens.cli.printing.windows import lines, worth_telling
from warplens.errors import MissingData, UsageError
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

PICTURE = """
    windows |  [start    ]     [nvtx      ]
    main    |[step        ][step      ]  !save
    main    |  [load ]
    w~mem   |1   2      3   4    5
"""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("windows") / "r.warplens"
    timeline(path, PICTURE, counters={"mem": {"interpolation": "until_next"}})
    return path


def ask(*words: str) -> Result:
    result = CliRunner().invoke(commands, list(words), env={"COLUMNS": "100"})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


@pytest.mark.slow
def test_stats(path: Path) -> None:
    for window, rows in ((1, [("step", 11_000), ("load", 7_000)]), (2, [("step", 8_000)])):
        said = json.loads(
            ask("stats", str(path), "--window", str(window), "-f", "json", "-r", "nvtx_sum").stdout
        )
        assert [(row["Range"], row["Total Time (ns)"]) for row in said] == [
            (f":{name}", total) for name, total in rows
        ]


def test_traces_tell_what_lies_in_the_window(path: Path) -> None:
    (row,) = json.loads(
        ask("stats", str(path), "--window=2", "-f", "json", "-r", "nvtx_pushpop_trace").stdout
    )
    assert (row["Start (ns)"], row["End (ns)"], row["Duration (ns)"]) == (18_000, 26_000, 8_000)
    rows = json.loads(ask("stats", str(path), "--window=1", "-f", "json", "-r", "nvtx_pushpop_trace").stdout)
    assert [(row["Name"], row["DurChild (ns)"], row["DurNonChild (ns)"]) for row in rows] == [
        (":step", 7_000, 4_000),
        (":load", 0, 7_000),
    ]


def test_counters_hold_until_the_window_closes(path: Path) -> None:
    (row,) = json.loads(ask("stats", str(path), "--window=1", "-f", "json", "-r", "nvtx_counter_sum").stdout)
    # 2 from 4 to 11, then 3 until the window closes at 13
    assert (row["Samples"], row["Last"], row["TimeAvg"]) == (2, 3, pytest.approx((2 * 7 + 3 * 2) / 9))


def test_an_empty_window_skips_its_table(path: Path) -> None:
    result = ask("stats", str(path), "--window=1", "-r", "nvtx_mark_trace")
    assert (result.exit_code, result.stderr) == (
        1,
        "SKIPPED: r.warplens does not contain NVTX mark data in the selected part.\n",
    )


def test_query(path: Path) -> None:
    said = ask(
        "query", str(path), 'SELECT "end" - "start" AS t FROM nvtx_ranges', "-f", "csv", "--window", "1"
    ).stdout
    assert said.split() == ["t", "11000", "7000"]


@pytest.mark.slow
def test_timeline(path: Path) -> None:
    said = ask("timeline", str(path), "--window", "2", "--width", "60", "--ascii").stdout
    assert "load" not in said
    assert "12 us shown" in said
    with pytest.raises(UsageError, match="window 2 is at another time"):
        ask("timeline", str(path), "--window", "2", "--range", "0/1us")


def test_export(path: Path, tmp_path: Path) -> None:
    out = tmp_path / "t.json"
    ask("export", str(path), "-t", "chrome", "-o", str(out), "-q", "--window", "2")
    events = [event for event in json.loads(out.read_text())["traceEvents"] if event["ph"] in "Xi"]
    assert [(event["name"], event["ts"], event.get("dur")) for event in events] == [
        ("step", 18, 8),
        ("save", 28, None),
    ]


@pytest.mark.parametrize("command", ["stats", "query", "timeline", "export"])
def test_no_such_window(path: Path, tmp_path: Path, command: str) -> None:
    more = {"query": ["SELECT 1"], "export": ["-o", str(tmp_path / "x")]}.get(command, [])
    with pytest.raises(MissingData, match=r"no window 7 of the capture; it has 1 \(.*\), 2 \("):
        ask(command, str(path), *more, "--window", "7")
    assert not (tmp_path / "x").exists()


@pytest.mark.slow
def test_windows_in_the_words_about_a_report(path: Path) -> None:
    with open_report(path) as report:
        said = [click.unstyle(line) for line in summary(report, report.manifests[0])]
    assert "Windows   1: 11.0 us at 2.00 us (from the start, until the end of the run)" in said
    assert "          2: 12.0 us at 18.0 us (by an NVTX range, until the end of that range)" in said
    assert "          2 ranges across an edge; --window N shows one window" in said
    assert "  2: 12.0 us at 18.0 us (by an NVTX range" in ask("info", str(path)).stdout
    assert [row["number"] for row in json.loads(ask("info", str(path), "-f", "json").stdout)["windows"]] == [
        1,
        2,
    ]


@pytest.mark.slow
def test_the_one_window_of_a_plain_run_is_not_told(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", "main |[a ]")
    assert "Windows" not in ask("info", str(tmp_path / "r.warplens")).stdout
    with open_report(tmp_path / "r.warplens") as report:
        assert "Windows" not in "\n".join(summary(report, report.manifests[0]))


def test_many_windows_are_counted() -> None:
    rows = [
        {"number": n, "start": n, "end": n + 1, "opened_by": "nvtx", "closed_by": "nvtx"}
        for n in range(1, 8193)
    ]
    said = list(lines(rows, 0))
    assert (len(said), said[-1]) == (6, "… and 8,187 windows more, up to 8192")
    assert len(list(lines(rows[:6], 0))) == 6


@pytest.mark.parametrize(
    ("opened", "closed", "told"), [("start", "end", False), ("start", None, False), ("time", "end", True)]
)
def test_only_unusual_windows_are_printed(opened: str, closed: str | None, told: bool) -> None:
    assert worth_telling([{"opened_by": opened, "closed_by": closed}]) is told
    assert not worth_telling([])


def test_a_flight_recorder_goes_on_after_it_was_saved() -> None:
    opened, closed = ("start", "start", "command", "nvtx", "nvtx"), ("keep", "keep", "keep", "keep", "end")
    rows = [
        {"number": number, "start": 0, "end": 1, "opened_by": begin, "closed_by": end}
        for number, (begin, end) in enumerate(zip(opened, closed, strict=True), 1)
    ]
    kept = "until the last seconds were kept)"
    assert [line.partition("(")[2] for line in lines(rows, 0)] == [
        f"from the start, {kept}",
        f"going on, {kept}",
        f"by command, {kept}",
        f"by an NVTX range, {kept}",
        "by an NVTX range, until the end of the run)",
    ]
