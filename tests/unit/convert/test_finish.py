"""A spool directory becomes a part of a report."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.convert.recording import recording
from warplens.convert import finish as finishing
from warplens.convert.finish import finish
from warplens.errors import ReportError
from warplens.handover import pending
from warplens.model.tables import TABLES
from warplens.report import Report
from warplens.report import open as open_report
from warplens.storage import schema
from warplens.testing import spool_writer as sw

CLOCKS = "".join(
    json.dumps({"counter": t, "monotonic": t, "realtime": 10**18 + t}) + "\n" for t in (1, 1000, 2000)
)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("finish")
    finish(recording(folder / "spool", launch={}, clocks=CLOCKS), folder / "r.warplens")
    return open_report(folder / "r.warplens")


def test_processes(report: Report) -> None:
    primary, child = report.table("processes").to_pylist()
    assert (
        primary["process"],
        primary["pid"],
        primary["primary"],
        primary["exit_status"],
        primary["exited"],
    ) == (0, 10, True, 3, True)
    assert (
        primary["parent"],
        primary["parent_pid"],
        primary["command"],
        primary["start"],
        primary["end"],
    ) == (
        None,
        1,
        "x 'a b'",
        100,
        5_000,
    )
    assert (
        child["process"],
        child["pid"],
        child["parent"],
        child["primary"],
        child["exit_status"],
        child["exited"],
    ) == (
        1,
        11,
        0,
        False,
        None,
        False,
    )
    assert (child["rank"], child["local_rank"], child["start"], child["end"]) == (0, 0, 2_000, 2_200)


def test_threads_ranges_and_marks(report: Report) -> None:
    assert [
        (t["thread"], t["process"], t["tid"], t["name"], t["start"])
        for t in report.table("threads").to_pylist()
    ] == [
        (0, 0, 10, "python", 1_000),
        (1 << 24, 1, 0, None, 2_100),
    ]
    ranges = report.table("nvtx_ranges").to_pylist()
    assert [(r["id"], r["process"], r["thread"], r["start"], r["message"]) for r in ranges] == [
        (0, 0, 0, 1_000, "step"),
        (1, 0, 0, 1_100, "step"),
        (2, 0, 0, 1_200, "step"),
        (1 << 32, 1, 1 << 24, 2_100, "load"),
    ]
    assert [(m["start"], m["message"]) for m in report.table("nvtx_marks").to_pylist()] == [(1_001, "load")]


def test_manifest_clocks_targets_and_diagnostics(report: Report) -> None:
    (manifest,) = report.manifests
    assert (manifest.part, manifest.command, manifest.exit_status, manifest.realtime_offset) == (
        0,
        ["x", "a b"],
        3,
        10**18,
    )
    assert (manifest.origin, manifest.end, manifest.sources) == (
        100,
        6_000,
        {"nvtx": {"on": True, "cost_ns": 20.5}},
    )
    assert report.table("clocks").num_rows == 3
    (target,) = report.table("targets").to_pylist()
    assert (target["host"], target["boot_id"], target["os"], target["cpus"], target["memory"]) == (
        "host",
        "boot",
        "Linux",
        2,
        1 << 34,
    )
    (told,) = report.diagnostics.to_pylist()
    assert (told["severity"], told["code"], told["source"], told["message"], told["count"]) == (
        "warning",
        "told",
        "launcher",
        "so",
        2,
    )


def test_every_table_is_typed_even_when_empty(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    manifest = finish(tmp_path / "spool", tmp_path / "r.warplens")
    for name in TABLES:
        file = tmp_path / "r.warplens" / manifest.tables[name]["file"]
        assert pq.read_schema(file).equals(schema.schema(name)), name
    codes = {row["code"] for row in open_report(tmp_path / "r.warplens").diagnostics.to_pylist()}
    assert codes == {"no-clock-log"}


def test_processes_with_few_rows_share_a_row_group(report: Report) -> None:
    file = pq.ParquetFile(report.path / report.manifests[0].tables["nvtx_ranges"]["file"])
    column = file.schema_arrow.get_field_index("process")
    bounds = [
        file.metadata.row_group(number).column(column).statistics for number in range(file.num_row_groups)
    ]
    assert [(found.min, found.max) for found in bounds] == [(0, 1)]


@pytest.mark.slow
def test_the_spool_goes_and_can_be_kept(tmp_path: Path) -> None:
    first = finish(recording(tmp_path / "a", launch={}), tmp_path / "r.warplens")
    second = finish(recording(tmp_path / "b", launch={}), tmp_path / "r.warplens", keep_raw=True)
    assert not (tmp_path / "a").exists()
    assert not (tmp_path / "b").exists()
    assert (first.part, second.part) == (0, 1)
    assert len(list((tmp_path / "r.warplens" / "raw" / second.id).glob("*.spool"))) == 2
    assert not (tmp_path / "r.warplens" / pending.DIRECTORY).exists()
    report = open_report(tmp_path / "r.warplens")
    assert [row["process"] for row in report.table("processes").to_pylist()] == [0, 1, 65536, 65537]
    assert report.sql("SELECT count(DISTINCT id), count(*) FROM nvtx_ranges").to_pylist()[0] == {
        "count(DISTINCT id)": 8,
        "count_star()": 8,
    }


def test_without_the_launchers_notes(tmp_path: Path) -> None:
    manifest = finish(recording(tmp_path / "spool"), tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    assert [row["primary"] for row in report.table("processes").to_pylist()] == [True, False]
    assert {row["code"] for row in report.diagnostics.to_pylist()} == {"no-launch-record", "no-clock-log"}
    assert (manifest.command, manifest.host, manifest.boot_id, manifest.exit_status) == (
        ["x", "a b"],
        "host",
        "boot",
        None,
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"command": 3, "pid": "x", "exit_status": [], "diagnostics": {"a": 1}, "target": 5, "sources": []}',
    ],
)
def test_with_half_written_notes(tmp_path: Path, text: str) -> None:
    spool = recording(tmp_path / "spool", clocks='{"counter": 1, "mono')
    (spool / "launch.json").write_text(text)
    finish(spool, tmp_path / "r.warplens")
    assert open_report(tmp_path / "r.warplens").tables["nvtx_ranges"] == 4


def test_a_launched_program_that_recorded_nothing_itself_has_a_row(tmp_path: Path) -> None:
    finish(
        recording(tmp_path / "spool", launch={"pid": 9, "command": ["sh", "-c", "x"]}),
        tmp_path / "r.warplens",
    )
    rows = open_report(tmp_path / "r.warplens").table("processes").to_pylist()
    assert [
        (row["process"], row["pid"], row["primary"], row["exit_status"], row["command"]) for row in rows
    ] == [
        (0, 9, True, 3, "sh -c x"),
        (1, 10, False, None, "x 'a b'"),
        (2, 11, False, None, "x 'a b'"),
    ]


def test_the_parent_is_the_last_process_of_that_id(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={}, children=0)
    for ticks, begin in ((6, 1_500), (7, 9_000)):
        sw.write(spool, sw.spool([], {"pid": 20, "ppid": 10, "start_ns": begin}), pid=20, ticks=ticks)
    sw.write(spool, sw.spool([], {"pid": 21, "ppid": 20, "start_ns": 2_000}), pid=21)
    finish(spool, tmp_path / "r.warplens")
    rows = {row["start"]: row for row in open_report(tmp_path / "r.warplens").table("processes").to_pylist()}
    assert rows[2_000]["parent"] == rows[1_500]["process"]
    assert rows[9_000]["parent"] == rows[1_500]["parent"] == rows[100]["process"]


def test_drifting_counters_are_corrected(tmp_path: Path) -> None:
    spool = tmp_path / "spool"
    sw.write(spool, sw.spool([sw.records(0, [sw.event("range", 20_000, 30_000)])], clock=(1, 0, 0, 0, 1)))
    lines = [{"counter": t, "monotonic": t + t // 2, "realtime": t} for t in (10_000, 20_000, 40_000)]
    (spool / "clocks.jsonl").write_text("\n".join(map(json.dumps, lines)))
    finish(spool, tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    assert [(row["start"], row["end"]) for row in report.table("nvtx_ranges").to_pylist()] == [
        (30_000, 45_000)
    ]
    assert "clock-corrected" in {row["code"] for row in report.diagnostics.to_pylist()}


def test_an_unreadable_spool_is_told_and_kept(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={})
    (spool / "host-99-1.spool").write_bytes(b"rubbish")
    manifest = finish(spool, tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    assert "spool-unreadable" in {row["code"] for row in report.diagnostics.to_pylist()}
    assert report.tables["processes"] == 2
    assert (report.path / "raw" / manifest.id / "host-99-1.spool").read_bytes() == b"rubbish"
    assert not spool.exists()


def test_processes_that_ended_as_they_began_to_record_are_counted(tmp_path: Path) -> None:
    """A child of fork may live for less than it takes to make a file."""
    spool = recording(tmp_path / "spool", launch={})
    (spool / "host-98-1.spool").touch()
    (spool / "host-99-1.spool").write_bytes(bytes(1 << 18))
    finish(spool, tmp_path / "r.warplens")
    report = open_report(tmp_path / "r.warplens")
    told = {row["code"]: (row["severity"], row["count"]) for row in report.diagnostics.to_pylist()}
    assert told["spool-not-begun"] == ("info", 2)
    assert "spool-unreadable" not in told
    assert report.tables["processes"] == 2
    assert not (report.path / "raw").exists()
    assert not spool.exists()


def test_progress_ends_at_one(tmp_path: Path) -> None:
    heard: list[tuple[str, float]] = []
    finish(
        recording(tmp_path / "spool"),
        tmp_path / "r.warplens",
        progress=lambda stage, share: heard.append((stage, share)),
    )
    shares = [share for _, share in heard]
    assert shares == sorted(shares)
    assert heard[-1] == ("write", 1.0)


def test_a_spool_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="the spool directory"):
        finish(tmp_path / "none", tmp_path / "r.warplens")


def test_the_environment_is_never_in_a_report(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={"environment": {"TOKEN": "s3cr3t-value"}})
    finish(spool, tmp_path / "r.warplens")
    for file in (tmp_path / "r.warplens").rglob("*"):
        assert not file.is_file() or b"s3cr3t-value" not in file.read_bytes()


def test_the_calibration_file_of_a_killed_launcher_is_removed(tmp_path: Path) -> None:
    spool = recording(tmp_path / "spool", launch={})
    shutil.copy(next(spool.glob("*.spool")), spool / "calibration-77")
    finish(spool, tmp_path / "x.warplens")
    assert not spool.exists()
    with open_report(tmp_path / "x.warplens") as opened:
        assert opened.tables["nvtx_ranges"] == 4


@pytest.mark.require("tmpfs")
def test_a_full_disk_leaves_the_spool_untouched(tmp_path: Path, tmpfs: Callable[[str], Path]) -> None:
    disk = tmpfs("size=28k")
    spool = recording(tmp_path / "spool", launch={}, ranges=90)
    note = pending.adopt(disk / "r.warplens", spool, "one")
    before = {path.name: path.read_bytes() for path in spool.iterdir()}
    with pytest.raises(ReportError) as caught:
        finish(note, disk / "r.warplens")
    assert "no space left" in str(caught.value)
    assert str(spool) in str(caught.value)
    assert {path.name: path.read_bytes() for path in spool.iterdir()} == before
    subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
    assert open_report(disk / "r.warplens").tables["nvtx_ranges"] == 91
    assert not spool.exists()


@pytest.mark.slow
@pytest.mark.require("tmpfs")
def test_a_full_disk_leaves_the_other_parts_readable(tmp_path: Path, tmpfs: Callable[[str], Path]) -> None:
    disk = tmpfs("size=800k")
    report = disk / "r.warplens"
    finish(recording(tmp_path / "first", launch={}), report)
    note = pending.adopt(report, recording(tmp_path / "second", launch={}, ranges=90), "two")
    with open(disk / "full", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(4096)):
            pass
    with pytest.warns(UserWarning, match="lacks two: no space left"):
        opened = open_report(report)
    assert opened.tables["nvtx_ranges"] == 4
    assert opened.waiting[0].startswith("two: no space left")
    assert Path(note.spool).is_dir()
    (disk / "full").unlink()
    assert open_report(report).tables["nvtx_ranges"] == 4 + 91


def test_a_half_kept_spool_is_kept_again(tmp_path: Path) -> None:
    spool, report = recording(tmp_path / "spool"), tmp_path / "r.warplens"
    note = pending.adopt(report, spool, "one")
    (report / "raw" / "one").mkdir(parents=True)
    (report / "raw" / "one" / next(spool.glob("*.spool")).name).write_text("half a copy")
    manifest = finish(note, report, keep_raw=True)
    assert [path.read_bytes()[:4] != b"half" for path in (report / "raw" / manifest.id).glob("*.spool")] == [
        True,
        True,
    ]


def test_finishing_again_is_no_new_part(tmp_path: Path) -> None:
    spool, report = recording(tmp_path / "spool"), tmp_path / "r.warplens"
    note = pending.adopt(report, spool, "one")
    copy = tmp_path / "copy"
    shutil.copytree(spool, copy)
    first = finish(note, report)
    shutil.copytree(copy, spool)
    assert finish(pending.adopt(report, spool, "one"), report) == first
    assert not spool.exists()
    assert open_report(report).tables["nvtx_ranges"] == 4


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    denied = finishing._failed(PermissionError(13, "Permission denied", "/x"), tmp_path, tmp_path / "spool")
    assert "make it writable" in str(denied)
