"""Opening a report: parts, clocks of other hosts, versions, and what is broken."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.unit.convert.recording import recording
from warplens.errors import NewerReport, NotAReport, ReportError
from warplens.handover import pending
from warplens.report import open as open_report
from warplens.report.row_groups import stream
from warplens.storage import manifest as manifests
from warplens.testing.timeline import timeline


def edit(report: Path, **changes: Any) -> Path:
    (path,) = (report / "manifest.d").glob("*.json")
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))
    return path


@pytest.fixture
def report(tmp_path: Path) -> Path:
    timeline(tmp_path / "r.warplens", "main |[step ]")
    return tmp_path / "r.warplens"


def test_a_path_that_is_no_report_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    for name, said in (("none", "does not exist"), ("file", "is a file"), ("empty", "is not a report")):
        with pytest.raises(NotAReport, match=said) as caught:
            open_report(tmp_path / name)
        assert str(tmp_path / name) in str(caught.value)


def test_a_newer_report_is_refused_by_name(report: Path) -> None:
    path = edit(report, version=2, warplens="9.9")
    with pytest.raises(NewerReport) as caught:
        open_report(report)
    assert str(path) in str(caught.value)
    assert "9.9" in str(caught.value)


@pytest.mark.parametrize(
    "changes",
    [
        {"format": "x"},
        {"version": "1"},
        {"tables": []},
        {"tables": {"threads": 5}},
        {"origin": "x"},
        {"part": None},
        {"command": "x"},
    ],
)
def test_a_broken_manifest_is_refused_by_name(report: Path, changes: dict[str, Any]) -> None:
    path = edit(report, **changes)
    with pytest.raises(ReportError) as caught:
        open_report(report)
    assert str(path) in str(caught.value)


def test_a_cut_manifest_is_refused_by_name(report: Path) -> None:
    (path,) = (report / "manifest.d").glob("*.json")
    path.write_text(path.read_text()[:100])
    with pytest.raises(ReportError, match="is broken") as caught:
        open_report(report)
    assert str(path) in str(caught.value)


@pytest.mark.slow
def test_a_table_that_is_gone_or_cut(report: Path) -> None:
    (file,) = (report / "tables" / "nvtx_ranges").glob("*.parquet")
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 2])
    with pytest.raises(ReportError, match="cannot read") as caught:
        open_report(report).table("nvtx_ranges")
    assert str(file) in str(caught.value)
    with pytest.raises(ReportError, match="nvtx_ranges"):
        open_report(report).sql("SELECT 1 FROM nvtx_ranges")
    file.unlink()
    with pytest.raises(ReportError, match="is missing"):
        open_report(report)


@pytest.mark.parametrize(
    "file",
    ["../x.parquet", "{}/x.parquet", "a/../../x.parquet", "a/file", "folder/x.parquet", "folder", ".."],
)
def test_a_manifest_cannot_point_outside(file: str, report: Path, tmp_path: Path) -> None:
    (tmp_path / "x.parquet").write_bytes(b"")
    (report / "a").mkdir()
    (report / "a" / "file").symlink_to("../../x.parquet")
    (report / "folder").symlink_to("..")
    edit(report, tables={"threads": {"file": file.format(tmp_path), "rows": 0}})
    with pytest.raises(ReportError, match="outside"):
        open_report(report)


def test_files_and_folders_of_a_report_may_be_links_within_it(report: Path, tmp_path: Path) -> None:
    (report / "tables").rename(report / "elsewhere")
    (report / "tables").symlink_to("elsewhere")
    (tmp_path / "link.warplens").symlink_to(report)
    with open_report(tmp_path / "link.warplens") as opened:
        assert opened.table("nvtx_ranges").num_rows == 1


def test_a_part_from_before_a_table_existed(report: Path) -> None:
    (path,) = (report / "manifest.d").glob("*.json")
    tables = json.loads(path.read_text())["tables"]
    del tables["nvtx_marks"]
    edit(report, tables=tables)
    opened = open_report(report)
    assert opened.table("nvtx_marks").num_rows == 0
    assert opened.sql("SELECT count(*) AS n FROM nvtx_marks").to_pylist() == [{"n": 0}]


@pytest.mark.slow
def test_a_part_from_before_a_column_existed(report: Path) -> None:
    timeline(report, "main | !new", host="h2", boot_id="b2", part="h2-1-1")
    for table in ("nvtx_ranges", "nvtx_marks"):
        (path,) = (report / "tables" / table).glob("host-0.parquet")
        old = pq.read_table(path)
        pq.write_table(old.drop_columns(["task"] if table == "nvtx_ranges" else ["task", "id"]), path)
    opened = open_report(report)
    assert opened.table("nvtx_ranges", ["message", "task"]).to_pylist() == [{"message": "step", "task": None}]
    assert opened.table("nvtx_marks", ["id", "message"]).to_pylist() == [{"id": 1 << 48, "message": "new"}]
    assert opened.sql("SELECT message, task, depth FROM nvtx_ranges").to_pylist() == [
        {"message": "step", "task": None, "depth": 0}
    ]
    assert [rows.to_pylist() for rows in stream(opened, "nvtx_ranges", ["task", "depth"])] == [
        [{"task": None, "depth": 0}]
    ]


def test_two_parts_with_one_number(report: Path) -> None:
    (path,) = (report / "manifest.d").glob("*.json")
    path.with_name("other.json").write_text(json.dumps({**json.loads(path.read_text()), "id": "other"}))
    with pytest.raises(ReportError, match="same number 0"):
        open_report(report)


@pytest.mark.slow
def test_parts_of_other_hosts_are_put_on_the_first_ones_clock(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    timeline(
        report,
        "main |[a]",
        host="h1",
        boot_id="b1",
        part="h1-1-1",
        origin=1_000_000,
        realtime_offset=50_000_000,
    )
    timeline(
        report,
        "main |  [b]",
        host="h2",
        boot_id="b2",
        part="h2-1-1",
        origin=9_000_000,
        realtime_offset=42_001_000,
    )
    timeline(
        report,
        "main | !c",
        host="h1",
        boot_id="b1",
        part="h1-2-1",
        origin=1_000_000,
        realtime_offset=50_777_000,
    )
    opened = open_report(report)
    assert opened.origin == 1_000_000
    assert opened.end == 1_001_000 + 5_000
    by_arrow = [(row["message"], row["start"], row["end"]) for row in opened.table("nvtx_ranges").to_pylist()]
    assert by_arrow == [("a", 1_000_000, 1_003_000), ("b", 1_003_000, 1_006_000)]
    by_sql = opened.sql('SELECT message, start, "end" FROM nvtx_ranges ORDER BY id').to_pylist()
    assert [tuple(row.values()) for row in by_sql] == by_arrow
    assert opened.table("nvtx_marks", ["start"]).to_pylist() == [{"start": 1_001_000}]
    assert [row["process"] for row in opened.table("processes").to_pylist()] == [0, 65536, 131072]


def test_opening_finishes_what_nobody_runs(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    pending.adopt(report, recording(tmp_path / "spool", launch={}), "one")
    heard: list[str] = []
    opened = open_report(report, progress=lambda stage, share: heard.append(stage))
    assert opened.tables["nvtx_ranges"] == 4
    assert "events" in heard


def test_a_running_recording_is_not_finished(tmp_path: Path, report: Path) -> None:
    spool = recording(tmp_path / "spool", launch={})
    note = pending.begin(report, spool)
    with pytest.warns(UserWarning, match="is still recording"):
        opened = open_report(report)
    assert opened.tables["nvtx_ranges"] == 1
    assert note.id in opened.waiting[0]
    assert spool.exists()
    alone = tmp_path / "alone.warplens"
    pending.begin(alone, spool)
    with pytest.raises(ReportError, match="still being recorded"):
        open_report(alone)


def test_a_spool_that_vanished_is_told(tmp_path: Path) -> None:
    report = tmp_path / "r.warplens"
    pending.adopt(report, tmp_path / "gone", "one")
    with pytest.raises(ReportError, match="is missing") as caught:
        open_report(report)
    assert str(report / "pending.d" / "one.json") in str(caught.value)


def test_manifests_come_back_as_they_went(tmp_path: Path) -> None:
    (tmp_path / "manifest.d").mkdir()
    manifest = manifests.Manifest(
        3, "a-1-2", "a", "b", job="7", command=["x"], tables={"threads": {"file": "t", "rows": 5}}
    )
    manifests.write(tmp_path, manifest)
    assert manifests.read(manifests.path_of(tmp_path, "a-1-2")) == manifest
    assert manifest.rows("threads") == 5
    assert manifest.rows("other") == 0
