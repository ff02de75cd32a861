"""What becomes of a report that is to be overwritten when there is no place for the new recording."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.errors import CaptureError, ReportError
from warplens.handover.wording import COMMAND_LINE
from warplens.recording.spool.place import Place, take_place


def _take(report: Path, *, force: bool = False, spool_dir: Path | None = None) -> Place:
    return take_place(
        str(report),
        force=force,
        job=None,
        spool_dir=spool_dir,
        keep_raw=False,
        part="h-1-2",
        wording=COMMAND_LINE,
    )


def _old(report: Path) -> Path:
    (report / "manifest.d").mkdir(parents=True)
    (report / "manifest.d" / "old.json").write_text('{"format": "warplens-report"}')
    return report


def test_a_slip_in_the_spool_directory_overwrites_nothing(tmp_path: Path) -> None:
    report = _old(tmp_path / "x.warplens")
    (tmp_path / "file").touch()
    with pytest.raises(CaptureError, match="--spool-dir"):
        _take(report, force=True, spool_dir=tmp_path / "file")
    assert (report / "manifest.d" / "old.json").exists()


def test_a_report_that_is_refused_leaves_no_spool(tmp_path: Path) -> None:
    report = _old(tmp_path / "x.warplens")
    with pytest.raises(ReportError, match="exists already"):
        _take(report, spool_dir=tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["x.warplens"]


def test_a_report_is_overwritten_once_there_is_a_place(tmp_path: Path) -> None:
    report = _old(tmp_path / "x.warplens")
    place = _take(report, force=True, spool_dir=tmp_path)
    assert place.spool.path == tmp_path / "warplens-h-1-2"
    assert not (report / "manifest.d").exists()
    place.give_up()
    assert not place.spool.path.exists()


def test_an_abandoned_recording_leaves_the_report_unchanged(tmp_path: Path) -> None:
    report = _old(tmp_path / "x.warplens")
    (report / "manifest.d" / "old.json").write_text('{"format": "warplens-report", "job": "j"}')
    place = take_place(
        str(report), force=False, job="j", spool_dir=None, keep_raw=False, part="h-1-2", wording=COMMAND_LINE
    )
    place.give_up()
    assert [path.name for path in report.iterdir()] == ["manifest.d"]
