"""The note of a recording: who runs it, for which job, and who may finish it."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from warplens.errors import ReportError
from warplens.handover import pending
from warplens.testing.timeline import timeline


def test_begin_and_list(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r.warplens", tmp_path / "spool", job="42", keep_raw=True)
    assert pending.listed(tmp_path / "r.warplens") == [note]
    assert note.report == tmp_path / "r.warplens"
    assert (note.pid, note.job, note.keep_raw, note.spool) == (
        os.getpid(),
        "42",
        True,
        str(tmp_path / "spool"),
    )
    assert note.id.endswith(f"-{os.getpid()}-{pending.start_ticks(os.getpid())}")
    assert Path(note.spool).is_dir()
    assert pending.runner(note) == f"process {os.getpid()}"
    assert pending.running(tmp_path / "r.warplens") == [note]


@pytest.mark.parametrize("name", ["../../elsewhere", "other", "..", ""])
def test_a_note_cannot_name_files_elsewhere(tmp_path: Path, name: str) -> None:
    note = pending.adopt(tmp_path / "r.warplens", tmp_path / "spool", "one")
    note.path.write_text(json.dumps({**json.loads(note.path.read_text()), "id": name}))
    assert pending.listed(tmp_path / "r.warplens") == []


def test_an_ended_recording_has_no_runner(tmp_path: Path) -> None:
    note = replace(pending.begin(tmp_path / "r.warplens", tmp_path / "spool"), start_ticks=1)
    assert pending.runner(note) is None
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        name = f"my-host-{child.pid}-{pending.start_ticks(child.pid)}.spool"
        (tmp_path / "spool" / name).write_bytes(b"")
        assert pending.runner(note) == f"process {child.pid}"
    finally:
        child.communicate(b"\n")
    assert pending.runner(note) is None
    assert pending.runner(replace(note, boot_id="before")) is None


def test_another_host_is_judged_by_its_clock_log(tmp_path: Path) -> None:
    note = replace(
        pending.begin(tmp_path / "r.warplens", tmp_path / "spool"), boot_id="other", host="elsewhere"
    )
    assert pending.runner(note) == "host elsewhere"
    log = tmp_path / "spool" / "clocks.jsonl"
    for age, expected in ((5, "host elsewhere"), (500, None)):
        log.write_text(
            f'{{"counter": 1, "monotonic": 1, "realtime": {time.time_ns() - age * 10**9}}}\n{{"cou'
        )
        assert pending.runner(note) == expected


def test_a_report_that_moved_takes_its_spool_along(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    first = pending.begin(
        report,
        report
        / "spool"
        / pending.part_id(socket.gethostname(), os.getpid(), pending.start_ticks(os.getpid())),
    )
    report.rename(tmp_path / "moved.warplens")
    (moved,) = pending.listed(tmp_path / "moved.warplens")
    assert moved.id == first.id
    assert moved.spool == str(tmp_path / "moved.warplens" / "spool" / first.id)


def test_a_zombie_runs_nothing() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert pending.start_ticks(child.pid) == 0
    child.wait()


def test_unreadable_notes_are_left_alone(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r", tmp_path / "spool")
    for name, text in (("a.json", ""), ("b.json", "[]"), ("c.json", '{"id": 1}')):
        (tmp_path / "r" / "pending.d" / name).write_text(text)
    assert pending.listed(tmp_path / "r") == [note]
    assert pending.listed(tmp_path / "none") == []


def test_jobs_are_those_of_parts_and_of_recordings(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    assert pending.jobs(report) == set()
    timeline(report, "main |[a]", job="slurm-1")
    pending.begin(report, tmp_path / "spool")
    assert pending.jobs(report) == {"slurm-1", None}


def test_only_one_holds_the_lock(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r", tmp_path / "spool")
    text = (
        "import sys; from pathlib import Path; from warplens.handover import pending\n"
        "note = pending.read(Path(sys.argv[1])); print('read', flush=True)\n"
        "with pending.locked(note) as mine: print('waiting is over', mine)"
    )
    environment = {"PYTHONPATH": str(Path(pending.__file__).parents[2])}
    with pending.locked(note) as mine:
        assert mine
        other = subprocess.Popen(
            [sys.executable, "-c", text, str(note.path)], stdout=subprocess.PIPE, env=environment
        )
        assert other.stdout is not None
        assert other.stdout.readline() == b"read\n"
        with pytest.raises(subprocess.TimeoutExpired):
            other.wait(0.4)
        note.path.unlink()
    assert other.communicate()[0] == b"waiting is over False\n"
    with pending.locked(note) as mine:
        assert not mine


def test_a_report_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ReportError, match="cannot write the report") as caught:
        pending.begin(tmp_path / "file" / "r.warplens", tmp_path / "spool")
    assert "-o" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "expected"), [("node-1.x", "node-1.x"), ("a/b c", "a_b_c"), ("..", "host"), ("", "host")]
)
def test_host_names_become_file_names(name: str, expected: str) -> None:
    assert pending.safe(name) == expected


def test_pending_notes_need_the_standard_library_only() -> None:
    text = "import sys, warplens.handover.pending; print([m for m in ('numpy', 'pyarrow', 'duckdb') if m in sys.modules])"
    environment = {"PYTHONPATH": str(Path(pending.__file__).parents[2])}
    found = subprocess.run(
        [sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=True
    )
    assert found.stdout == "[]\n"


def test_a_recording_that_ended_is_nobodys_though_its_process_lives(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r", tmp_path / "spool", name="second")
    (tmp_path / "spool" / f"h-{os.getpid()}-{pending.start_ticks(os.getpid())}.spool").write_bytes(b"")
    assert pending.runner(note) is not None
    lock = pending.end(note)
    assert lock is not None
    (ended,) = pending.listed(tmp_path / "r")
    assert (ended.id, ended.ended, pending.runner(ended)) == ("second", True, None)
    text = (
        "import sys; from pathlib import Path; from warplens.handover import pending\n"
        "note = pending.read(Path(sys.argv[1])); print('read', flush=True)\n"
        "with pending.locked(note) as mine: print(mine)"
    )
    environment = {"PYTHONPATH": str(Path(pending.__file__).parents[2])}
    other = subprocess.Popen(
        [sys.executable, "-c", text, str(note.path)], stdout=subprocess.PIPE, env=environment
    )
    assert other.stdout is not None
    assert other.stdout.readline() == b"read\n"
    with pytest.raises(subprocess.TimeoutExpired):
        other.wait(0.4)
    os.close(lock)
    assert other.communicate()[0] == b"True\n"


def test_a_waiter_follows_a_replaced_note(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r", tmp_path / "spool")
    got: list[bool] = []

    def wait() -> None:
        with pending.locked(note) as mine:
            got.append(mine)

    with pending.locked(note):
        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.1)
        lock = pending.end(note)
    assert lock is not None
    waiting.join(0.2)
    assert got == []
    os.close(lock)
    waiting.join()
    assert got == [True]


def test_the_end_of_a_recording_whose_report_was_deleted_is_noted_anew(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r", tmp_path / "spool")
    note.path.unlink()
    note.path.parent.rmdir()
    lock = pending.end(note)
    assert lock is not None
    os.close(lock)
    assert [found.ended for found in pending.listed(tmp_path / "r")] == [True]


@pytest.mark.parametrize(
    ("name", "writer"),
    [
        ("my-host-12-345.spool", (12, 345)),
        ("h-1-2.spool", (1, 2)),
        ("h-1.spool", None),
        (f"h-{10**12}-1.spool", None),
    ],
)
def test_the_name_of_a_spool_tells_who_writes_it(name: str, writer: tuple[int, int] | None) -> None:
    assert pending.writer_of(Path(name)) == writer


def test_the_writer_of_a_spool_is_known_by_id_and_start() -> None:
    mine = pending.start_ticks(os.getpid())
    assert pending.living_writer(Path(f"h-{os.getpid()}-{mine}.spool")) == os.getpid()
    assert pending.living_writer(Path(f"h-{os.getpid()}-{mine + 1}.spool")) is None
    assert (
        pending.living_writer(Path("h-999999999-0.spool")) is None
    )  # no process, which has no start time either


def test_a_folder_of_notes_that_goes_while_it_is_read_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = pending.begin(tmp_path / "r.warplens", tmp_path / "spool")
    scandir = os.scandir

    def gone(path: str | os.PathLike[str]) -> object:
        if Path(path).name == pending.DIRECTORY:
            note.path.unlink(missing_ok=True)
            Path(path).rmdir()
        return scandir(path)

    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", gone)
        assert pending.listed(tmp_path / "r.warplens") == []
