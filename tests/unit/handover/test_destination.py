"""Who may write into which report."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warplens.errors import ReportError
from warplens.handover import contents, pending
from warplens.handover.destination import destination


def _choose(output: Path, *, force: bool = False, job: str | None = None) -> Path:
    with destination(str(output), force=force, job=job) as (path, _):
        return path


def _running(report: Path, *, job: str | None = None) -> pending.Pending:
    """Note a recording by this process, which is alive."""
    return pending.begin(report, report / "spool" / "s", job=job)


def _abandoned(report: Path, *, job: str | None = None) -> Path:
    """Leave the note of a launcher that is gone, and its spool."""
    spool = report.parent / "elsewhere"
    spool.mkdir()
    pending.adopt(report, spool, "h-1-2", job=job)
    return spool


def test_a_new_report_is_created(tmp_path: Path) -> None:
    assert _choose(tmp_path / "x") == tmp_path / "x.warplens"
    assert (tmp_path / "x.warplens").is_dir()


def test_a_failure_leaves_nothing(tmp_path: Path) -> None:
    def fail() -> None:
        with destination(str(tmp_path / "x"), force=False, job=None) as (path, created):
            assert created
            (path / "pending.d").mkdir()
            raise ReportError("no place")

    with pytest.raises(ReportError, match="no place"):
        fail()
    assert not list(tmp_path.iterdir())


def test_an_existing_report_is_refused(tmp_path: Path) -> None:
    _abandoned(tmp_path / "x.warplens")
    with pytest.raises(ReportError, match=r"exists already.*\n.*-o.*-f"):
        _choose(tmp_path / "x")


def test_force_removes_it_with_its_spool(tmp_path: Path) -> None:
    spool = _abandoned(tmp_path / "x.warplens")
    assert _choose(tmp_path / "x", force=True) == tmp_path / "x.warplens"
    assert [path.name for path in tmp_path.iterdir()] == ["x.warplens"]
    assert not list((tmp_path / "x.warplens").iterdir())
    assert not spool.exists()


def test_a_recording_that_is_finished_meanwhile_holds_nothing_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _abandoned(tmp_path / "x.warplens")
    listed = os.scandir

    def scandir(folder: object) -> object:
        if (
            isinstance(folder, Path) and folder.name == pending.DIRECTORY
        ):  # another process finishes the recording now
            for note in folder.iterdir():
                note.unlink()
            folder.rmdir()
        return listed(folder)  # type: ignore[call-overload]

    monkeypatch.setattr("warplens.handover.contents.os.scandir", scandir)
    assert contents.of_others(tmp_path / "x.warplens") == []
    assert not (tmp_path / "x.warplens" / pending.DIRECTORY).exists()


def test_force_never_removes_what_somebody_writes(tmp_path: Path) -> None:
    note = _running(tmp_path / "x.warplens")
    with pytest.raises(ReportError, match=f"still being written by .*{os.getpid()}"):
        _choose(tmp_path / "x", force=True)
    assert note.path.exists()


@pytest.mark.parametrize("force", [False, True])
def test_the_ranks_of_a_job_join(tmp_path: Path, force: bool) -> None:
    note = _running(tmp_path / "x.warplens", job="slurm:1.0")
    assert _choose(tmp_path / "x", job="slurm:1.0", force=force) == tmp_path / "x.warplens"
    assert note.path.exists()


@pytest.mark.parametrize("job", [None, "slurm:1.1"])
def test_others_do_not_join(tmp_path: Path, job: str | None) -> None:
    _abandoned(tmp_path / "x.warplens", job="slurm:1.0")
    with pytest.raises(ReportError, match="exists already"):
        _choose(tmp_path / "x", job=job)


def test_a_job_does_not_join_a_report_without_one(tmp_path: Path) -> None:
    _abandoned(tmp_path / "x.warplens")
    with pytest.raises(ReportError, match="not of this job"):
        _choose(tmp_path / "x", job="slurm:1.0")


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_is_no_report_is_never_touched(tmp_path: Path, force: bool) -> None:
    (tmp_path / "x.warplens").mkdir()
    (tmp_path / "x.warplens" / "thesis.tex").write_text("years of work")
    (tmp_path / "y.warplens").write_text("a file")
    for name in ("x", "y"):
        with pytest.raises(ReportError, match="and would be overwritten"):
            _choose(tmp_path / name, force=force)
    assert (tmp_path / "x.warplens" / "thesis.tex").exists()
    assert (tmp_path / "y.warplens").exists()


def test_an_empty_directory_may_be_used(tmp_path: Path) -> None:
    (tmp_path / "x.warplens").mkdir()
    assert _choose(tmp_path / "x") == tmp_path / "x.warplens"
