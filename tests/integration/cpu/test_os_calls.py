"""Calls of the C library: each group is seen with what it was asked, and programs behave as they do alone."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.integration.conftest import Target
from tests.support.programs.launching import warplens
from tests.support.thorough import alike
from warplens.report import open as open_report

pytestmark = [pytest.mark.require("native", "gcc")]
STEPS = (
    "files",
    "waits",
    "sockets",
    "locks",
    "cancelled",
    "signals",
    "children",
    "closes",
    "borrowed",
    "uncontended",
)
Rows = list[dict[str, Any]]


def _record(
    folder: Path, *command: str | Path, options: tuple[str, ...] = ()
) -> tuple[subprocess.CompletedProcess[str], Path]:
    done = warplens("profile", "-q", "-t", "osrt", *options, "-o", "x", *command, cwd=folder)
    return done, folder / "x.warplens"


def _calls(report: Path, table: str = "osrt") -> Rows:
    with open_report(report) as opened:
        rows: Rows = opened.table(table).to_pylist()
        return rows


def _step(target: Target, folder: Path, step: str, *options: str) -> Rows:
    """Record one step of the program, which checks itself; its calls."""
    done, report = _record(folder, target("os_calls"), step, folder, options=options)
    assert done.returncode == 0, done.stderr
    assert f"{step} done" in done.stdout
    return _calls(report)


def _named(rows: Rows, *names: str) -> Rows:
    return [row for row in rows if row["name"] in names]


@pytest.mark.parametrize("step", alike(STEPS, "files", "locks", "signals"))
def test_a_program_behaves_as_it_does_alone(target: Target, tmp_path: Path, step: str) -> None:
    alone = subprocess.run(
        [target("os_calls"), step, tmp_path], capture_output=True, text=True, check=False, timeout=60
    )
    assert alone.returncode == 0, alone.stderr
    for left in tmp_path.iterdir():
        left.unlink()
    done, _ = _record(tmp_path, target("os_calls"), step, tmp_path, options=("--osrt-threshold", "0"))
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, f"{step} done")


def test_files_are_seen_with_path_bytes_and_errors(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "files", "--osrt-threshold", "0")
    path = str(tmp_path / "data")
    opened = next(row for row in _named(rows, "open") if row["error"] is None and row["target"] == path)
    written = next(row for row in _named(rows, "write") if row["target"] == path)
    assert (written["fd"], written["bytes"], written["group"]) == (opened["fd"], 10, "file")
    assert next(row for row in _named(rows, "writev") if row["target"] == path)["bytes"] == 5
    assert next(row for row in _named(rows, "pread") if row["target"] == path)["bytes"] == 3
    assert {row["error"] for row in _named(rows, "open")} >= {None, "ENOENT", "EFAULT"}
    assert {row["error"] for row in _named(rows, "read")} >= {None, "EBADF"}
    for name in (
        "stat",
        "rename",
        "fsync",
        "ftruncate",
        "close",
        "fopen",
        "fwrite",
        "fflush",
        "fgets",
        "fclose",
    ):
        assert any(row["target"] == path for row in _named(rows, name)), name


def test_file_access_lists_short_calls_on_files_only(target: Target, tmp_path: Path) -> None:
    done, report = _record(
        tmp_path,
        target("os_calls"),
        "files",
        tmp_path,
        options=("--osrt-file-access", "--osrt-threshold", "60000000000"),
    )
    assert done.returncode == 0
    path = str(tmp_path / "data")
    rows = [row for row in _calls(report, "file_access") if row["path"] == path]
    opened = next(row for row in rows if row["operation"] == "open" and row["error"] is None)
    assert "O_CREAT" in opened["flags"]
    assert next(row for row in rows if row["name"] == "write")["asked"] == 10
    assert not _named(_calls(report), "fcntl", "mmap", "pthread_create")


def test_waiting_is_seen_with_what_was_waited_for(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "waits")
    for name in ("poll", "epoll_wait", "select", "usleep", "nanosleep", "clock_nanosleep"):
        assert any(row["end"] - row["start"] > 1_000_000 for row in _named(rows, name)), name
    assert any(row["target"] == "pipe" for row in _named(rows, "poll", "read"))
    assert {row["target"] for row in _named(rows, "epoll_wait")} == {"epoll"}
    assert any(row["error"] == "EAGAIN" for row in _named(rows, "sigtimedwait"))


def test_sockets_are_seen_with_their_peers(target: Target, tmp_path: Path) -> None:
    done, report = _record(
        tmp_path, target("os_calls"), "sockets", tmp_path, options=("--osrt-threshold", "0")
    )
    port = done.stdout.split()[1]
    rows = _calls(report)
    assert next(iter(_named(rows, "connect")))["target"] == f"socket 127.0.0.1:{port} (TCP)"
    assert next(iter(_named(rows, "send")))["target"] == f"socket 127.0.0.1:{port} (TCP)"
    assert next(iter(_named(rows, "accept")))["target"] == f"socket 127.0.0.1:{port} (TCP)"
    late = [row for row in _named(rows, "recv") if row["error"] == "EAGAIN"]
    assert f"unix {tmp_path / 's'}" in {row["target"] for row in late}


def test_locks_are_seen_only_where_they_were_waited_for(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "locks")
    for name in ("pthread_mutex_lock", "pthread_rwlock_rdlock"):
        assert len(_named(rows, name)) >= 1, name
        assert all(row["object"] for row in _named(rows, name))
    assert "ETIMEDOUT" in {row["error"] for row in _named(rows, "sem_timedwait")}
    assert {row["error"] for row in _named(rows, "pthread_cond_timedwait")} == {"ETIMEDOUT"}
    alone = _step(target, tmp_path, "uncontended", "--force-overwrite", "true", "--osrt-threshold", "0")
    assert not _named(alone, "pthread_mutex_lock")


def test_a_thread_is_cancelled_only_where_it_may_be(target: Target, tmp_path: Path) -> None:
    """Where its wait for a mutex is the first call of all that is told of, the recording begins in it."""
    _step(target, tmp_path, "cancelled_owner", "--osrt-threshold", "20000000")


def test_calls_in_and_around_signal_handlers_are_seen(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "signals")
    interrupted = next(row for row in _named(rows, "read") if row["error"] == "EINTR")
    inside = [
        row
        for row in _named(rows, "nanosleep")
        if interrupted["start"] <= row["start"] and row["end"] <= interrupted["end"]
    ]
    assert inside
    assert any(
        row["start"] > interrupted["end"] for row in _named(rows, "nanosleep")
    )  # after a handler that jumped out of a call


def test_children_are_waited_for_and_seen_themselves(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "children")
    main = min(row["process"] for row in _named(rows, "waitpid"))
    assert any(row["process"] != main for row in _named(rows, "usleep"))
    assert {row["target"] for row in _named(rows, "system")} == {"exit 6"}
    assert {row["target"] for row in _named(rows, "popen")} == {"echo seven"}


def test_a_child_of_vfork_begins_no_recording(target: Target, tmp_path: Path) -> None:
    """It would be in its parent's memory, and in its own name."""
    done, report = _record(
        tmp_path, target("os_calls"), "borrowed", tmp_path, options=("--osrt-threshold", "10000000")
    )
    assert done.returncode == 0, done.stderr
    with open_report(report) as opened:
        rows = opened.sql(
            'SELECT o.name, p."primary" AS own FROM osrt o JOIN processes p USING (process)'
        ).to_pylist()
        recorded = opened.sql("SELECT count(*) AS n FROM processes WHERE recorded").to_pylist()
    assert {(row["name"], row["own"]) for row in rows} >= {("nanosleep", True)}
    assert all(row["own"] for row in rows)
    assert recorded[0]["n"] == 1


def test_a_program_that_closes_all_descriptors_is_seen_to_its_end(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "closes")
    assert next(iter(_named(rows, "fsync")))["target"] == str(tmp_path / "log")
    assert _named(rows, "nanosleep")


def test_the_threshold_holds(target: Target, tmp_path: Path) -> None:
    rows = _step(target, tmp_path, "waits", "--osrt-threshold", "5000000")
    assert rows
    assert all(row["end"] - row["start"] >= 4_999_000 for row in rows)
