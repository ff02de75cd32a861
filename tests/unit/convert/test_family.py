"""Rows of `processes`: spools, the register and the launcher's notes put together."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.convert.recording import recording
from warplens.convert.build import Builder
from warplens.convert.finish import finish
from warplens.convert.program_name import program_name
from warplens.report import open as open_report
from warplens.storage.writer import PartWriter
from warplens.testing import spool_writer as sw
from warplens.testing.spool_writer import process_record as record


def rows(
    tmp_path: Path, *records: bytes, launch: dict[str, Any] | None = None, children: int = 1
) -> list[dict[str, Any]]:
    """Process 10 was launched and has a spool, its fork child 11 too; the register holds `records`."""
    spool = recording(tmp_path / "spool", launch=launch or {}, children=children)
    (spool / "processes.log").write_bytes(b"".join(records))
    finish(spool, tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        found: list[dict[str, Any]] = report.table("processes").to_pylist()
        return found


def named(found: list[dict[str, Any]], *columns: str) -> list[tuple[Any, ...]]:
    return [tuple(row[column] for column in columns) for row in found]


TREE = (
    record("program", 10, 5, 90, "/usr/bin/python3", "python3", "train.py"),
    record("fork", 11, 10, 1_500),
    record("program", 12, 10, 1_600, "/bin/ls", "ls", "-l", rank=4),
    record("exit", 12, 10, 1_700, status=2),
    record("waited", 12, 10, 1_750, status=2),
    record("waited", 11, 10, 4_000, status=137),
    record("exit", 10, 5, 5_500, status=3),
)


def test_what_was_watched_until_the_agent_came_is_not_the_primary(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={}, children=0)
    facts = {"pid": 10, "ppid": 5, "start_ns": 95, "outside": True}
    data = sw.spool([sw.records(sw.NO_THREAD, [sw.meta("thread", thread=0, tid=10, start=96)])], facts)
    sw.write(spool, data, host="a", pid=10)  # the first in order
    (spool / "processes.log").write_bytes(b"".join(TREE))
    finish(spool, tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        rows = report.table("processes").to_pylist()
        ranges = {row["process"] for row in report.table("nvtx_ranges", ["process"]).to_pylist()}
    assert len([row for row in rows if row["pid"] == 10]) == 2
    assert {row["process"] for row in rows if row["primary"]} == ranges


def test_every_process_is_a_row(tmp_path: Path) -> None:
    found = rows(tmp_path, *TREE)
    assert named(
        found, "pid", "parent", "parent_pid", "began", "ended", "exit_status", "recorded", "not_recorded"
    ) == [
        (10, None, 5, "launch", "exit", 3, True, None),
        (11, 0, 10, "fork", "signal", 137, True, None),
        (12, 0, 10, "spawn", "exit", 2, False, "made no NVTX call"),
    ]
    assert named(found, "start", "end", "primary", "rank") == [
        (90, 5_500, True, None),
        (1_500, 4_000, False, 0),
        (1_600, 1_700, False, 4),
    ]
    assert found[2]["command"] == "ls -l"


def test_a_recorded_child_that_could_not_become_a_program_is_named_after_it(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        *TREE[:2],
        record("exec", 11, 10, 1_600, "/y", "y", "1"),
        record("exec", 11, 10, 1_650, status=2),
        record("exit", 11, 10, 4_000, status=127),
    )
    assert named(found, "pid", "name", "command", "recorded", "not_recorded")[1] == (
        (11, "y", "y 1", True, "could not be started: No such file or directory")
    )


def test_without_a_register_nothing_is_claimed(tmp_path: Path) -> None:
    found = rows(tmp_path)
    assert named(found, "pid", "parent", "began", "recorded", "exit_status") == [
        (10, None, "launch", True, 3),
        (11, 0, None, True, None),
    ]


def test_a_silent_primary_has_the_launchers_status(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        record("program", 9, 5, 60, "/bin/sh", "sh", "-c", "y"),
        record("fork", 10, 9, 70),
        launch={"pid": 9},
    )
    assert named(found, "pid", "name", "primary", "recorded", "exit_status", "parent") == [
        (9, "sh", True, False, 3, None),
        (10, "x", False, True, None, 0),
        (11, "x", False, True, None, 1),
    ]


def test_a_primary_that_made_way_for_another_program(tmp_path: Path) -> None:
    found = rows(
        tmp_path,
        record("program", 10, 5, 40, "/bin/sh", "sh", "-c", "exec x"),
        record("exec", 10, 5, 60, "/x", "x"),
        record("program", 10, 5, 80, "/x", "x"),
        children=0,
    )
    assert named(found, "pid", "command", "began", "ended", "primary", "parent") == [
        (10, "x 'a b'", "exec", "exit", True, 1),
        (10, "sh -c 'exec x'", "launch", "exec", False, None),
    ]


@pytest.mark.slow
def test_why_a_process_was_not_recorded(tmp_path: Path) -> None:
    foreign = record("foreign", 12, 10, 1_600, "/old", "old", status=1)
    assert rows(tmp_path / "1", *TREE[:1], foreign)[2]["not_recorded"] == "32-bit program"
    assert rows(tmp_path / "2", *TREE, launch={"sources": {}})[2]["not_recorded"] == "nothing was traced"
    both = {"sources": {"cuda": {"on": True}, "nvtx": {"on": True}}}
    assert rows(tmp_path / "3", *TREE, launch=both)[2]["not_recorded"] == "made no NVTX or CUDA call"


def test_a_damaged_spool_still_has_a_row(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={}, children=0)
    (spool / "processes.log").write_bytes(b"".join(TREE))
    (spool / "host-11-44.spool").write_bytes(b"no spool")
    finish(spool, tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        found = report.table("processes").to_pylist()
    assert named(found, "pid", "recorded", "not_recorded")[1] == (11, False, "its spool cannot be read")


def test_still_running(tmp_path: Path) -> None:
    found = rows(tmp_path, *TREE[:2], record("running", 11, 5, 6_000))
    assert (found[1]["ended"], found[1]["end"], found[1]["exit_status"]) == ("running", 6_000, None)


def test_what_goes_on_after_the_recording_does_not_lengthen_it(tmp_path: Path) -> None:
    """The spool says that its process ended at 5,000, a while after the launcher let go of it."""
    spool = recording(
        tmp_path / "spool", launch={"end_ns": 3_000, "exit_status": None, "primary_end_ns": 0}, children=0
    )
    (spool / "processes.log").write_bytes(TREE[0] + record("running", 10, 5, 3_000))
    finish(spool, tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        (row,) = report.table("processes").to_pylist()
        assert (row["ended"], row["end"], report.end) == ("running", 3_000, 3_000)


def test_while_the_recording_goes_on(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={"end_ns": 0, "exit_status": None}, children=0)
    (spool / "processes.log").write_bytes(
        b"".join(TREE[:-1]) + record("program", 13, 10, 4_500, "/bin/cat", "cat")
    )
    with PartWriter(tmp_path / "r.warplens", "host-1-2", "host") as part:
        part.commit(Builder(part, spool, as_of=9_000).build())
    with open_report(tmp_path / "r.warplens") as report:
        found = report.table("processes").to_pylist()
    assert named(found, "pid", "ended", "end") == [
        (10, "running", 9_000),
        (11, "signal", 4_000),
        (12, "exit", 1_700),
        (13, "running", 9_000),
    ]


def test_foreign_and_damage_are_told_once(tmp_path: Path) -> None:
    foreign = [record("foreign", pid, 10, 1_600 + pid, "/musl", status=2) for pid in range(20, 40)]
    rows(tmp_path, *TREE, *foreign, b"x" * 80)
    with open_report(tmp_path / "r.warplens") as report:
        told = {row["code"]: row for row in report.diagnostics.to_pylist()}
    assert (told["not-followed"]["count"], told["register-damaged"]["count"]) == (20, 1)
    assert "20 x musl" in told["not-followed"]["message"]


@pytest.mark.slow
def test_more_processes_than_a_part_has_keys(tmp_path: Path) -> None:
    many = [record("program", 100 + number % 900, 10, 2_000 + number, "/x", "x") for number in range(70_000)]
    found = rows(tmp_path, TREE[0], *many, children=0)
    assert len(found) == 70_001
    assert len({row["process"] for row in found}) == 70_001


def test_names() -> None:
    assert (
        program_name("/usr/bin/python3.11", ["python", "-u", "-X", "dev", "/a/train.py", "-c"]) == "train.py"
    )
    assert program_name("/usr/bin/python3.11", ["/opt/venv/bin/python", "-m", "http.server"]) == "http.server"
    assert program_name("/usr/bin/python3.11", ["python", "-c", "pass"]) == "python"
    assert program_name("/usr/bin/dash", ["sh", "/a/run.sh"]) == "run.sh"
    assert program_name("/usr/bin/busybox", ["ls", "x"]) == "ls"
    assert program_name("/usr/bin/gunicorn", ["gunicorn: worker [app]"]) == "gunicorn"
    assert program_name("/x/app (deleted)", []) == "app"
    assert program_name("", []) is None


def test_a_launch_record_of_a_stranger(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={})
    facts = json.loads((spool / "launch.json").read_text())
    (spool / "launch.json").write_text(json.dumps({**facts, "pid": 999_999}))
    (spool / "processes.log").write_bytes(
        record("fork", 999_999, 999_999, 500) + record("waited", 999_999, 999_999, 501)
    )
    finish(spool, tmp_path / "r.warplens")
    with open_report(tmp_path / "r.warplens") as report:
        assert set(report.table("processes").column("pid").to_pylist()) == {10, 11, 999_999}
