"""A report from somebody else that holds links to elsewhere: nothing is written, moved or removed there."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.unit.convert.recording import recording
from warplens.convert.finish import finish
from warplens.errors import ReportError
from warplens.handover import links, pending, spool_files
from warplens.report import open as open_report
from warplens.report.store import open_store
from warplens.storage import generations
from warplens.timeline.index.builder import IndexBuilder


def files(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    """A recording of mine, still a spool."""
    folder = tmp_path / "mine"
    recording(folder, launch={})
    (folder / "thesis.txt").write_text("all of it")
    (folder / "clocks.jsonl").touch()
    return folder


def note(report: Path, spool: Path, name: str = "x-1-1") -> Path:
    """Write what a stranger would: a recording that has ended."""
    path = report / "pending.d" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    words = {
        "id": name,
        "spool": str(spool),
        "host": "h",
        "boot_id": "b",
        "pid": 1,
        "start_ticks": 1,
        "ended": True,
    }
    path.write_text(json.dumps(words))
    return path


def test_a_link_in_place_of_a_spool_is_left_alone(mine: Path, tmp_path: Path) -> None:
    before = files(mine)
    report = tmp_path / "r.warplens"
    note(report, report / "spool" / "x-1-1")
    (report / "spool").mkdir()
    (report / "spool" / "x-1-1").symlink_to(mine)
    with pytest.raises(ReportError, match="only read"):
        open_report(report)
    with pytest.raises(ReportError, match="does not touch it"):
        open_store(report, trust=True)
    assert files(mine) == before


@pytest.mark.parametrize(
    "name", ["spool", "pending.d", "manifest.d", "tables", "index", "raw", "tables/processes"]
)
def test_a_link_in_place_of_a_folder_is_never_written_through(name: str, mine: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    report = tmp_path / "r.warplens"
    spool = report / "spool" / "x-1-1"
    note(report, spool)
    shutil.copytree(mine, spool)
    link = report / name
    if link.exists():
        shutil.rmtree(elsewhere)
        link.rename(elsewhere)
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(elsewhere)
    before = files(elsewhere)
    with pytest.raises(ReportError, match=r"is a link to .*elsewhere"):
        finish(pending.listed(report)[0], report)
    assert files(elsewhere) == before


def test_old_generations_are_not_swept_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "x-1.s1.parquet").write_text("not a snapshot of yours")
    (tmp_path / "r.warplens" / "tables").mkdir(parents=True)
    (tmp_path / "r.warplens" / "tables" / "processes").symlink_to(elsewhere)
    generations.sweep(tmp_path / "r.warplens", [])
    assert (elsewhere / "x-1.s1.parquet").exists()


def test_no_index_is_written_through_a_link(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    left = elsewhere / ".mine.tmp"
    left.touch()
    os.utime(left, (0, 0))
    (tmp_path / "index").symlink_to(elsewhere)
    with pytest.raises(NotADirectoryError):
        IndexBuilder(tmp_path / "index" / "x.lanes", {"one": ()})
    assert [path.name for path in elsewhere.iterdir()] == [".mine.tmp"]


@pytest.mark.parametrize("is_there", [False, True], ids=["pending", "a part of that name is there"])
def test_a_strangers_note_does_not_take_my_spool(is_there: bool, mine: Path, tmp_path: Path) -> None:
    before = files(mine)
    report = tmp_path / "r.warplens"
    if is_there:
        finish(pending.adopt(report, recording(tmp_path / "theirs", launch={}), "x-1-1"), report)
    path = note(report, mine)
    if is_there:
        assert open_report(report).tables["nvtx_ranges"] > 0
        assert open_store(report, trust=True).rows("nvtx_ranges") > 0
    else:
        with pytest.raises(ReportError, match=rf"{mine}, which is not marked as part"):
            open_store(report, trust=True)
        assert path.exists()
    assert files(mine) == before


def test_force_does_not_remove_what_a_strangers_note_names(mine: Path, tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    note(report, mine)
    assert not pending.belongs(pending.listed(report)[0])


def test_a_recording_knows_its_own_spool_elsewhere(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    begun = pending.begin(report, recording(tmp_path / "elsewhere", launch={}))
    (read,) = pending.listed(report)
    assert (read.token, pending.belongs(read)) == (begun.token, True)
    (tmp_path / "elsewhere" / "token").write_text("another")
    assert not pending.belongs(read)
    assert (
        spool_files.files(tmp_path / "elsewhere")[-1].name == "token"
    )  # whoever is interrupted while removing them can go on


def test_a_link_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    assert [links.is_folder(path) for path in (tmp_path, tmp_path / "link", tmp_path / "none", "a\0b")] == [
        True,
        False,
        False,
        False,
    ]
