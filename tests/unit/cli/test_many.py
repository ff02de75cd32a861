"""Very many small things: what commands print of them is a screen or two, true, and all of it is there on request."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import CliRunner

from warplens.analysis import occupancy as occupied
from warplens.cli.group import commands
from warplens.report import Report, Selection
from warplens.rules.loading import waits
from warplens.storage.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts, write_part

PROCESSES, THREADS, NAMES = 300, 2_000, 50_000
_FLAGS = {"unfinished": False, "inherited": False, "clipped": False}


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands choose a pool for Arrow; here, others work after them."""
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "system")


def asked(*words: str | Path) -> list[str]:
    result = CliRunner().invoke(commands, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def _process(key: int, command: str, **more: Any) -> dict[str, Any]:
    about = {
        "pid": 1000 + key,
        "parent_pid": 1,
        "host": "h",
        "executable": command.split()[0],
        "command": command,
        "primary": key == 0,
    }
    ended = {"exited": True, "ended": "exit", "exit_status": 0, "recorded": True, "began": "exec"}
    return {
        "process": key,
        "name": Path(command.split()[0]).name,
        "start": 0,
        "end": 10**9,
        **about,
        **ended,
        **more,
    }


def _thread(process: int, number: int, name: str) -> dict[str, Any]:
    return {
        "thread": process * THREADS_PER_PROCESS + number,
        "process": process,
        "tid": 5000 + number,
        "name": name,
        "start": 0,
    }


def _range(process: int, thread: int, number: int, message: str, start: int, length: int) -> dict[str, Any]:
    where = {
        "id": process * RANGES_PER_PROCESS + number,
        "process": process,
        "thread": process * THREADS_PER_PROCESS + thread,
    }
    return {
        **where,
        "start": start,
        "end": start + length,
        "message": message,
        "style": "PushPop",
        "depth": 0,
        **_FLAGS,
    }


def _written(report: Path, **tables: Any) -> Path:
    write_part(report, Facts("part", "h", "boot", end=10**9), tables)
    return report


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shell that started 300 short processes, one of them longer; each has a range and says something that all say."""
    rows = [_process(0, "sh loop.sh")]
    rows += [
        _process(
            key, "/bin/true", parent=0, start=key * 10**6, end=key * 10**6 + (9 if key == 7 else 2) * 10**6
        )
        for key in range(1, PROCESSES + 1)
    ]
    told = [
        {
            "severity": "info",
            "code": "ticks",
            "source": "cpu",
            "message": f"{key} ticks were due in process {key}",
            "count": key,
            "process": key,
        }
        for key in range(1, PROCESSES + 1)
    ]
    lost = {
        "severity": "error",
        "code": "dropped-records",
        "source": "nvtx",
        "message": "5 range records were dropped",
        "count": 5,
    }
    return _written(
        tmp_path_factory.mktemp("many") / "processes.warplens",
        processes=rows,
        threads=[_thread(key, 0, "sh" if key == 0 else "true") for key in range(PROCESSES + 1)],
        nvtx_ranges=[
            _range(key, 0, 0, "loading" if key == 9 else "all", key * 10**6, 10**6)
            for key in range(PROCESSES + 1)
        ],
        diagnostics=[*told, lost],
    )


@pytest.fixture(scope="module")
def threads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program with 2,000 short threads of the same name, a few others, and states of all of them."""
    names = [*("request" for _ in range(THREADS)), "loader", "writer"]
    states = [
        {
            "id": number,
            "process": 0,
            "thread": number,
            "start": number * 1000,
            "end": number * 1000 + 500 + number,
            "state": "running",
            "exact": True,
        }
        for number in range(len(names))
    ]
    return _written(
        tmp_path_factory.mktemp("many") / "threads.warplens",
        processes=[_process(0, "./server --port 80")],
        threads=[_thread(0, number, name) for number, name in enumerate(names)],
        thread_states=states,
        nvtx_ranges=[
            _range(0, number, number, "one", number * 1000, 500 if number < THREADS else 10)
            for number in range(len(names))
        ],
    )


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program in which 50,000 ranges have a name each, and some a name that means something."""
    rows = [
        _range(0, 0, number, f"request {number}", number * 1000, 100 + number % 7) for number in range(NAMES)
    ]
    rows += [
        _range(0, 0, NAMES + number, f"train_step {number}", (NAMES + number) * 1000, 900)
        for number in range(5)
    ]
    return _written(
        tmp_path_factory.mktemp("many") / "names.warplens",
        processes=[_process(0, "./server")],
        threads=[_thread(0, 0, "main")],
        nvtx_ranges=rows,
    )


def test_info_of_many_processes(processes: Path) -> None:
    lines = asked("info", processes)
    assert len(lines) < 40
    (folded,) = [line for line in lines if "more like it" in line and "…" in line and "ticks" not in line]
    assert folded.strip() == f"… {PROCESSES - 1} more like it, 2.00 ms each (2.00 ms to 9.00 ms)"
    (ticks,) = [line for line in lines if "ticks" in line]
    assert ticks.endswith(f"1 ticks were due in process 1 … and {PROCESSES - 1} more like it")
    assert f"ticks ({sum(range(1, PROCESSES + 1)):,})" in ticks
    assert any("5 range records were dropped" in line and "more" not in line for line in lines)
    assert len(json.loads("\n".join(asked("info", "-f", "json", processes)))["diagnostics"]) == PROCESSES + 1


def test_stats_of_many_threads_and_all_rows_on_request(threads: Path) -> None:
    lines = asked("stats", threads)
    assert len(lines) < 50
    assert (
        f"… and {THREADS + 2 - 10:,} more rows; -r thread_state_sum --rows 0 shows all, -f csv writes them"
        in lines
    )
    shown = asked("stats", "-q", "-r", "thread_state_sum", "--rows", "7", threads)
    assert len(shown) == 2 + 7 + 1
    assert len(asked("stats", "-q", "-r", "thread_state_sum", "--rows", "0", threads)) == 2 + THREADS + 2
    assert len(asked("stats", "-q", "-f", "csv", "-r", "thread_state_sum", threads)) == 1 + THREADS + 2
    assert (
        len(json.loads("\n".join(asked("stats", "-q", "-f", "json", "-r", "thread_state_sum", threads))))
        == THREADS + 2
    )


def test_one_row_too_many_is_shown(threads: Path) -> None:
    assert (
        len(asked("stats", "-q", "-r", "thread_state_sum", "--rows", str(THREADS + 1), threads))
        == 2 + THREADS + 2
    )


def test_a_timeline_of_many_tracks_that_are_alike(threads: Path, processes: Path) -> None:
    lines = asked("timeline", "--ascii", threads)
    assert len(lines) < 40
    assert sum(line.strip().startswith("request") for line in lines) == 3
    assert any("loader" in line for line in lines)
    assert any("writer" in line for line in lines)
    assert any(f"({THREADS - 3:,} like request of ./server --port #)" in line for line in lines)
    assert (
        sum(
            line.strip().startswith("request")
            for line in asked("timeline", "--ascii", "--tracks", "30", threads)
        )
        == 28
    )  # and the two others
    assert any(
        f"({PROCESSES - 3} like /bin/true)" in line for line in asked("timeline", "--ascii", processes)
    )


def test_cells_are_the_same_whether_all_columns_come_at_once(
    names: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Report.open(names) as report:
        at_once = occupied.cells(report, report.span, 97, 4).to_pylist()
        monkeypatch.setattr(occupied, "_FEW_ROWS", 1 << 12)
        monkeypatch.setattr(occupied, "_MANY_ROWS", 1 << 13)
        found = occupied.cells(report, report.span, 97, 4).to_pylist()
        assert [(row["thread"], row["col"], row["number"]) for row in found] == [
            (row["thread"], row["col"], row["number"]) for row in at_once
        ]
        assert [row["busy"] for row in found] == pytest.approx([row["busy"] for row in at_once])
        assert sum(row["number"] for row in found) >= NAMES + 5


def test_stats_and_rules_of_many_names(names: Path) -> None:
    lines = asked("stats", "-q", "-r", "nvtx_sum", names)
    assert len(lines) == 2 + 40 + 1
    assert f"… and {NAMES + 5 - 40:,} more rows" in lines[-1]
    found = "\n".join(asked("analyze", names))
    assert f"{NAMES + 5:,} different names" in found


def test_waits_for_data_are_asked_for_once(processes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Report.open(processes) as report:
        questions: list[str] = []
        whole = report.sql

        def counted(text: str, *words: Any, **more: Any) -> pa.Table:
            questions.append(text)
            return whole(text, *words, **more)

        monkeypatch.setattr(report, "sql", counted)
        assert waits(report, Selection()) == []  # `loading` means that only within steps
        assert len(questions) < 20
