"""`-f` removes a report and nothing else: files that a user put into one, links and folders that only look like one stay."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.unit.convert.recording import recording
from warplens.convert.finish import finish, snapshot
from warplens.errors import ReportError
from warplens.handover import contents, pending
from warplens.handover.destination import destination
from warplens.timeline.index import building


def made(folder: Path) -> Path:
    """A report with all that we ever put into one."""
    report = folder / "x.warplens"
    manifest = finish(
        pending.adopt(report, recording(folder / "first", launch={}), "x-1-1"), report, keep_raw=True
    )
    building.build(report, manifest, building.path_of(report, manifest))
    snapshot(pending.adopt(report, recording(report / "spool" / "x-2-2", launch={}), "x-2-2"))
    return report


def overwrite(report: Path) -> None:
    with destination(str(report), force=True, job=None):
        pass


def everything(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def test_all_of_a_report_goes(tmp_path: Path) -> None:
    report = made(tmp_path)
    (report / "manifest.d" / "x-1-1.json.tmp77-0").touch()  # what those left who were killed
    (report / "manifest.d" / "part-7.tmp77").touch()
    (report / "pending.d" / "x-1-1.tmp77").touch()
    (report / "index" / ".host-0.lanes.77.tmp").touch()
    (report / "tables" / "processes" / "host-0.s2.parquet.tmp").touch()
    overwrite(report)
    assert everything(tmp_path) == [report]


PLACES: dict[str, Callable[[Path], Path]] = {
    "beside the folders": lambda report: report / "thesis.txt",
    "in a folder beside": lambda report: report / "chapters" / "thesis.txt",
    "hidden": lambda report: report / ".git" / "config",
    "among manifests": lambda report: report / "manifest.d" / "thesis.txt",
    "among tables": lambda report: report / "tables" / "thesis.csv",
    "in a table": lambda report: report / "tables" / "kernels" / "thesis.csv",
    "among indexes": lambda report: report / "index" / "thesis.txt",
    "among spools": lambda report: report / "spool" / "thesis.txt",
}


@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
def test_a_file_of_the_user_keeps_all_of_it(place: Callable[[Path], Path], tmp_path: Path) -> None:
    report = made(tmp_path)
    thesis = place(report)
    thesis.parent.mkdir(exist_ok=True)
    thesis.write_text("years of work")
    before = everything(tmp_path)
    with pytest.raises(
        ReportError, match=rf"does not overwrite it: .*{thesis.name}.*\n.*Move these files away"
    ):
        overwrite(report)
    assert everything(tmp_path) == before


@pytest.mark.parametrize("name", ["thesis", "tables/thesis", "index/thesis"])
def test_a_link_in_a_report_is_the_users(name: str, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "thesis.txt").touch()
    report = made(tmp_path)
    (report / name).symlink_to(tmp_path / "elsewhere")
    assert contents.of_others(report) == [f"{name}/"]
    with pytest.raises(ReportError, match="not overwrite"):
        overwrite(report)


def test_a_folder_that_looks_like_a_report_is_none(tmp_path: Path) -> None:
    folder = tmp_path / "x.warplens"
    (folder / "manifest.d").mkdir(parents=True)
    (folder / "manifest.d" / "deployment.json").write_text('{"format": "of somebody else"}')
    with pytest.raises(ReportError, match="not a report"):
        overwrite(folder)
    assert (folder / "manifest.d" / "deployment.json").exists()


@pytest.mark.parametrize("command", ["profile", "import"])
def test_a_link_to_a_report_stays_and_is_named(command: str, tmp_path: Path) -> None:
    report = made(tmp_path)
    (tmp_path / "link.warplens").symlink_to(report)
    (tmp_path / "trace.json").write_text(
        '{"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2, "pid": 1, "tid": 1}]}'
    )
    before = everything(tmp_path)
    words = (
        ["profile", "-f", "-o", "link", "true"]
        if command == "profile"
        else ["import", "-f", "-o", "link", "trace.json"]
    )
    done = subprocess.run(
        [sys.executable, "-m", "warplens", *words], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode != 0
    assert f"link.warplens is a link to {report}, which stays" in done.stderr
    assert "None" not in done.stderr
    assert everything(tmp_path) == before
