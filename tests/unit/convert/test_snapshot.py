"""Snapshots: parts of a recording that goes on."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.convert.recording import recording
from warplens.cli.opening import opened
from warplens.convert.finish import finish, snapshot
from warplens.errors import ReportError
from warplens.handover import pending, seals
from warplens.report import open as open_report
from warplens.report.store import open_store
from warplens.testing import spool_writer as sw


@pytest.fixture
def note(tmp_path: Path) -> pending.Pending:
    """A recording that this very process runs."""
    spool = recording(tmp_path / "spool", launch={})
    (spool / "control").write_bytes(sw.control([(400, 450, 1, 5, 0), (500, 0, 5, 0, 0)]))
    return pending.begin(tmp_path / "r.warplens", spool, name="one")


def generations(report: Path) -> list[str]:
    return sorted(path.name for path in (report / "tables" / "nvtx_ranges").iterdir())


def more(note: pending.Pending, ranges: int) -> None:
    """Let the recording go on."""
    for path in Path(note.spool).glob("*.spool"):
        path.unlink()
    recording(Path(note.spool), launch={}, ranges=ranges)


def over(note: pending.Pending) -> pending.Pending:
    note.path.write_text(
        json.dumps(seals.sealed({**json.loads(note.path.read_text()), "pid": 0, "start_ticks": 0}))
    )
    found = pending.read(note.path)
    assert found is not None
    return found


def test_a_snapshot_is_a_part_and_takes_nothing(note: pending.Pending) -> None:
    before = {path.name: path.read_bytes() for path in Path(note.spool).iterdir()}
    manifest = snapshot(note)
    assert manifest.snapshot is not None
    assert {path.name: path.read_bytes() for path in Path(note.spool).iterdir()} == before
    assert note.path.exists()
    with pytest.warns(
        UserWarning,
        match=rf"is not complete: one: process {os.getpid()} is still recording, as of \d",
    ):
        report = open_report(note.report)
    assert (report.tables["nvtx_ranges"], report.waiting) == (4, ())
    rows = report.table("capture_windows").to_pylist()
    assert [(row["number"], row["closed_by"]) for row in rows] == [(1, "command"), (2, None)]
    assert rows[1]["end"] > 10**9  # now, as this machine's clock has it


@pytest.mark.slow
def test_the_next_one_replaces_it_and_readers_keep_theirs(note: pending.Pending) -> None:
    snapshot(note)
    first = open_store(note.report)
    with opened(note.report, say=False) as reader:
        more(note, 5)
        snapshot(note)
        more(note, 6)
        snapshot(note)
        assert generations(note.report) == [f"{note.host}-0.s1.parquet", f"{note.host}-0.s3.parquet"]
        assert reader.sql("SELECT count(*) AS n FROM nvtx_ranges").to_pylist() == [{"n": 4}]
        assert reader.table("nvtx_ranges").num_rows == 4
        assert open_store(note.report).rows("nvtx_ranges") == 7
    del reader, first
    snapshot(note)
    assert generations(note.report) == [f"{note.host}-0.s4.parquet"]


@pytest.mark.slow
def test_finishing_replaces_it_for_good(note: pending.Pending) -> None:
    snapshot(note)
    more(note, 8)
    with opened(note.report, say=False) as reader:
        manifest = finish(over(note), note.report)
        assert reader.table("nvtx_ranges").num_rows == 4
    assert (manifest.snapshot, manifest.part) == (None, 0)
    del reader
    report = open_report(note.report)  # no warning
    assert (report.tables["nvtx_ranges"], report.snapshots) == (9, ())
    assert generations(note.report) == [f"{note.host}-0.parquet"]
    assert not Path(note.spool).exists()
    assert not note.path.exists()


@pytest.mark.slow
def test_after_a_crash_any_command_replaces_it(note: pending.Pending) -> None:
    snapshot(note)
    more(note, 8)
    over(note)
    with open_report(note.report) as report:
        assert report.tables["nvtx_ranges"] == 9
    assert generations(note.report) == [f"{note.host}-0.parquet"]


def test_a_snapshot_of_what_is_finished_is_that(note: pending.Pending) -> None:
    finished = finish(over(note), note.report)
    assert snapshot(note) == finished
    (note.report / "manifest.d" / "one.json").unlink()
    with pytest.raises(ReportError, match="is over"):
        snapshot(note)


@pytest.mark.slow
def test_other_parts_stay_as_they_are(note: pending.Pending, tmp_path: Path) -> None:
    first = finish(recording(tmp_path / "first", launch={}), note.report)
    second = snapshot(note)
    assert (first.part, second.part) == (0, 1)
    with opened(note.report, say=False) as report:
        assert report.tables["nvtx_ranges"] == 8
    more(note, 4)
    snapshot(note)
    finish(over(note), note.report)
    assert open_report(note.report).tables["nvtx_ranges"] == 9


@pytest.mark.slow
def test_half_a_snapshot_goes(note: pending.Pending) -> None:
    snapshot(note)
    for name in ("processes", "nvtx_ranges"):
        (note.report / "tables" / name / f"{note.host}-0.s2.parquet.tmp").write_text("killed")
    (note.report / "tables" / "nvtx_marks" / f"{note.host}-0.s2.parquet").write_text("killed")
    snapshot(note)
    assert list(note.report.rglob("*.tmp")) == []
    with opened(note.report, say=False) as report:
        assert report.table("nvtx_marks").num_rows == 1
    del report
    finish(over(note), note.report)
    assert [path.name for path in note.report.glob("tables/*/*.s*")] == []


@pytest.mark.slow
def test_several_at_once(note: pending.Pending) -> None:
    errors: list[BaseException] = []

    def take() -> None:
        try:
            snapshot(note)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert errors == []
    assert len(generations(note.report)) == 1
    with opened(note.report, say=False) as report:
        assert report.tables["nvtx_ranges"] == 4


def test_a_snapshot_that_lost_its_note_says_so(note: pending.Pending) -> None:
    snapshot(note)
    note.path.unlink()
    with pytest.warns(UserWarning, match="one: the recording was abandoned, as of"):
        assert open_report(note.report).tables["nvtx_ranges"] == 4


def test_a_manifest_that_names_other_files_holds_none(note: pending.Pending, tmp_path: Path) -> None:
    snapshot(note)
    path = note.report / "manifest.d" / "one.json"
    os.mkfifo(tmp_path / "pipe")
    data = json.loads(path.read_text())
    for file in (
        str(tmp_path / "pipe"),
        "tables/processes/../../../pipe",
        "tables/processes/none.s1.parquet",
    ):
        path.write_text(
            json.dumps({**data, "tables": {**data["tables"], "processes": {"file": file, "rows": 2}}})
        )
        with pytest.raises(ReportError):
            open_store(note.report)


def test_a_finished_report_is_not_written_as_a_snapshot_again(note: pending.Pending) -> None:
    finished = finish(over(note), note.report)
    again = pending.begin(note.report, recording(Path(note.spool), launch={}), name="one")
    assert snapshot(again) == finished


@pytest.mark.slow
@pytest.mark.require("tmpfs")
def test_a_full_disk_costs_the_snapshot_and_nothing_else(
    tmp_path: Path, tmpfs: Callable[[str], Path]
) -> None:
    disk = tmpfs("size=800k")
    spool = recording(tmp_path / "spool", launch={})
    (spool / "control").write_bytes(sw.control([(400, 0, 1, 0, 0)]))
    note = pending.begin(disk / "r.warplens", spool, name="one")
    snapshot(note)
    before = generations(note.report)
    with open(disk / "full", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    more(note, 90)
    with pytest.raises(
        ReportError, match=r"no space left while writing .*\(the recording continues, and nothing is lost\)"
    ):
        snapshot(note)
    assert generations(note.report) == before
    with opened(note.report, say=False) as report:
        assert report.table("nvtx_ranges").num_rows == 4
    with pytest.raises(ReportError, match="no space left"):
        finish(over(note), note.report)
    with opened(note.report, say=False) as report:  # tries again, and shows what there is
        assert report.table("nvtx_ranges").num_rows == 4
        assert "no space left" in report.snapshots[0]
    del report
    (disk / "full").unlink()
    assert open_report(note.report).tables["nvtx_ranges"] == 91
    assert list(note.report.rglob("*.s*.parquet*")) == []
