"""The CPU side in the terminal timeline: pictures in tests/golden/timeline, what is left out, and what columns add up to."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tests.support.reports import cpu_story
from tests.support.thorough import few
from warplens.analysis.cpu.occupancy import band_cells, cpu_threads
from warplens.cli.group import commands
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


GOLDEN = Path(__file__).parents[3] / "golden" / "timeline"
STYLES = {
    "plain": [],
    "ascii": ["--ascii"],
    "color": ["--color", "always"],
    "narrow": ["--width", "40"],
    "wide": ["--width", "140"],
    "part": ["--range", "200us/700us", "--depth", "1"],
}


def ask(path: Path, *options: str) -> Result:
    return CliRunner().invoke(commands, ["timeline", str(path), *options])


def draw(path: Path, *options: str) -> str:
    result = ask(path, *options)
    assert result.exit_code == 0, result.output or result.exception
    return result.stdout


@pytest.fixture
def story(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("COLORTERM", raising=False)
    cpu_story.write(tmp_path / "run.warplens")
    return tmp_path / "run.warplens"


@pytest.mark.parametrize("style", few(STYLES, 3))
def test_the_cpu_timeline_looks_like_its_golden_file(style: str, story: Path) -> None:
    assert draw(story, *STYLES[style]) == (GOLDEN / f"cpu-{style}.txt").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", few([40, 60, 80, 140]))
def test_no_line_is_too_long(width: int, story: Path) -> None:
    from rich.cells import cell_len

    for options in ([], ["--ascii"], ["--color", "always"]):
        text = draw(story, "--width", str(width), *options)
        assert max(cell_len(re.sub(r"\x1b\[[0-9;]*m", "", line)) for line in text.splitlines()) <= width
    assert draw(story, "--ascii").isascii()


def labels(text: str) -> list[str]:
    return [
        line[4:16].strip() for line in text.splitlines() if line.startswith("    ") and line[4:5].isalpha()
    ]


def test_rows_are_chosen_by_name(story: Path) -> None:
    everything = ["state", "samples", "Python", "imports", "GC", "GIL", "OS calls"]
    assert labels(draw(story)) == [*everything, "state", "samples", "GIL", "OS calls"]
    assert labels(draw(story, "--rows", "osrt,states")) == ["state", "OS calls", "state", "OS calls"]
    assert labels(draw(story, "--rows", "none")) == []
    assert labels(draw(story, "--rows", "gc")) == ["GC"]
    refused = ask(story, "--rows", "nope")
    assert refused.exit_code != 0
    assert "states, samples, python" in str(refused.exception)


def test_tasks_have_a_lane_each(tmp_path: Path) -> None:
    timeline(
        tmp_path / "run.warplens",
        "main:task |(A:running<*A;work       )(A<*A;get        )",
        tick_ns=1_000_000,
    )
    shown = draw(tmp_path / "run.warplens", "--rows", "tasks")
    assert labels(shown) == ["tasks"]
    assert "A: work" in shown
    assert "A: (get)" in shown


def test_other_threads_have_their_state_alone(story: Path) -> None:
    folded = draw(story, "--cpu", "1")
    assert labels(folded)[-2:] == ["OS calls", "state"]
    assert "1 thread with thread state only: --cpu N shows more" in folded
    assert labels(draw(story, "--cpu", "0")) == ["state", "state"]
    assert labels(draw(story, "--thread", "loader")) == ["state", "samples", "GIL", "OS calls"]


def test_calls_within_calls_are_left_out(story: Path) -> None:
    shown = draw(story, "--width", "140", "--range", "0/100us")
    assert "fread" in shown
    assert "├read" not in shown


def test_threads_without_ranges_are_there_and_the_busiest_first(tmp_path: Path) -> None:
    tables = cpu_story.tables()
    timeline(tmp_path / "run.warplens", "p1/main |[a]", origin=cpu_story.ORIGIN, tick_ns=100_000)
    timeline(
        tmp_path / "run.warplens",
        cpu_story.PICTURE,
        part="host-2-2",
        origin=cpu_story.ORIGIN,
        tick_ns=50_000,
        tables=moved(tables),
    )
    shown = draw(tmp_path / "run.warplens", "--tracks", "1", "--range", "0/1ms")
    assert "main 1000" in shown
    assert "2 less busy tracks not shown" in shown
    assert "forward" in shown


def moved(tables: dict[str, list[dict[str, object]]]) -> dict[str, list[dict[str, object]]]:
    """Put rows into the second part of a report."""
    for rows in tables.values():
        for row in rows:
            row["process"] = 1 << 16
            if "thread" in row:
                row["thread"] = (1 << 40) + int(str(row["thread"]))
    return tables


def test_a_report_without_any_of_it_says_so(tmp_path: Path) -> None:
    timeline(tmp_path / "run.warplens", "main |[a]         [b]")
    refused = ask(tmp_path / "run.warplens", "--range", "5us/9us")
    assert refused.exit_code != 0
    assert "nothing of CUDA or the CPU side" in str(refused.exception)


def test_shares_add_up_to_the_time_of_the_states(story: Path) -> None:
    report = open_report(story)
    window = (report.origin + 37_001, report.origin + 911_003)
    wanted = {
        (row["thread"], row["state"]): row["time"]
        for row in report.sql(
            f'SELECT thread, state, sum(least("end", {window[1]}) - greatest("start", {window[0]}))::BIGINT AS time FROM thread_states'
            f' WHERE "start" < {window[1]} AND "end" > {window[0]} GROUP BY ALL'
        ).to_pylist()
    }
    for columns in (1, 7, 64, 1000):
        cells = band_cells(report, window, columns, "states", [0, 1]).to_pylist()
        width = (window[1] - window[0]) / columns
        for (thread, state), time in wanted.items():
            share = {"running": "solid", "runnable": "shade", "blocked": "dot"}[state]
            drawn = sum(cell[share] for cell in cells if cell["thread"] == thread) * width
            assert drawn == pytest.approx(time, rel=1e-9)
        assert all(0 <= cell["col"] < columns for cell in cells)
        assert all(cell["solid"] + cell["shade"] + cell["dot"] <= 1 + 1e-9 for cell in cells)


def test_busy_is_the_time_on_a_cpu(story: Path) -> None:
    report = open_report(story)
    seen = cpu_threads(report, report.span)
    assert {key: facts.busy for key, facts in seen.items()} == {(0, 0): 780_000, (0, 1): 40_000}
    assert seen[0, 0].lanes["imports"] == 2
