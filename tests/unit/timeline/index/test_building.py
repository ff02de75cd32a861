"""Where an index lies, when it is made, and whose it is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.unit.convert.recording import recording
from warplens.convert.finish import finish, snapshot
from warplens.errors import ReportError
from warplens.handover import pending
from warplens.importers.importing import import_file
from warplens.report.store import Stored, open_store
from warplens.testing.timeline import timeline
from warplens.timeline.index import LaneIndex, building

FAR = 1 << 61


@pytest.fixture
def report(tmp_path: Path) -> Path:
    timeline(tmp_path / "r.warplens", "main   |[step ][step ]\ngpu0.7 | (gemm )")
    return tmp_path / "r.warplens"


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make an index of however small a part when it is finished."""
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 1)


def opened(report: Path, cache: Path | None = None, part: int = 0) -> LaneIndex:
    store = open_store(report)
    return LaneIndex.open(store, store.parts[part], cache)


def names(index: LaneIndex) -> list[tuple[str, str, int]]:
    return sorted(
        (index.names.layer(number), index.names.text(number), index.names.count(number))
        for number in range(len(index.names))
    )


def indexes(report: Path) -> list[str]:
    folder = report / "index"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_an_index_is_built_once_inside_the_report(report: Path) -> None:
    told: list[tuple[str, float]] = []
    store = open_store(report)
    with LaneIndex.open(store, store.parts[0], None, lambda stage, done: told.append((stage, done))) as index:
        assert names(index) == [("kernels", "gemm", 1), ("nvtx_ranges", "step", 2)]
    assert told[-1] == ("index", 1.0)
    (name,) = indexes(report)
    before = (report / "index" / name).stat()
    with opened(report) as index:
        assert names(index) == [("kernels", "gemm", 1), ("nvtx_ranges", "step", 2)]
    assert (report / "index" / name).stat().st_ino == before.st_ino


def test_a_moved_report_keeps_its_index(report: Path) -> None:
    opened(report).close()
    shutil.copytree(report, report.with_name("moved.warplens"))  # with other times of its files
    (name,) = indexes(report)
    before = (report.with_name("moved.warplens") / "index" / name).stat().st_ino
    opened(report.with_name("moved.warplens")).close()
    assert (report.with_name("moved.warplens") / "index" / name).stat().st_ino == before


def test_an_index_of_other_files_is_made_again(report: Path) -> None:
    opened(report).close()
    (table,) = (report / "tables" / "nvtx_ranges").iterdir()
    rows = pq.read_table(table)
    pq.write_table(
        rows.set_column(4, rows.schema.field(4), [[time.as_py() + 1 for time in rows.column("start")]]), table
    )
    store = open_store(report)
    starts = sorted(time.as_py() for time in pq.read_table(table).column("start"))
    with opened(report) as index:
        assert sorted(hit.start for hit in index.find(index.names.search("step"), -FAR, FAR, 9)) == starts
    assert len(indexes(report)) == 1
    assert store.parts


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="no permissions as on Unix")
def test_an_index_of_a_read_only_report_goes_to_the_cache(report: Path, tmp_path: Path) -> None:
    (report / "index").write_text("in the way: nobody can make a folder here, root neither")
    with opened(report, tmp_path / "cache") as index:
        assert index.path.parent == tmp_path / "cache"
    made = index.path.stat().st_ino
    with opened(report, tmp_path / "cache") as index:
        assert (names(index)[0], index.path.stat().st_ino) == (("kernels", "gemm", 1), made)
    for cache in (None, report / "index"):
        with pytest.raises(ReportError, match="cannot write the index"):
            opened(report, cache)


FULL = """
import resource, sys
from pathlib import Path
from warplens.errors import ReportError
from warplens.timeline.index import LaneIndex
from warplens.report.store import open_store
store = open_store(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))  # as on a full disk, writing more fails
try:
    LaneIndex.open(store, store.parts[0], Path(sys.argv[2]))
except ReportError as error:
    print(error)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of files")
@pytest.mark.parametrize("room", [0, 256, 1000])
def test_a_disk_that_gets_full_is_told_and_nothing_is_left(report: Path, tmp_path: Path, room: int) -> None:
    words = [sys.executable, "-c", FULL, str(report), str(tmp_path / "cache"), str(room)]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "cannot write the index" in said
    assert "it cannot be written to" in said
    assert [path for folder in (report / "index", tmp_path / "cache") for path in folder.glob("*")] == []
    with opened(report) as index:
        assert len(index.names)


def test_finishing_makes_it(tmp_path: Path, always: None) -> None:
    manifest = finish(recording(tmp_path / "spool", launch={}), tmp_path / "r.warplens")
    assert indexes(tmp_path / "r.warplens") == [f"{Path(manifest.tables['processes']['file']).stem}.lanes"]
    with opened(tmp_path / "r.warplens") as index:
        assert {(layer, text) for layer, text, _ in names(index)} == {
            ("nvtx_ranges", "step"),
            ("nvtx_ranges", "load"),
            ("nvtx_marks", "load"),
        }


def test_small_parts_wait_until_somebody_looks(tmp_path: Path) -> None:
    finish(recording(tmp_path / "spool", launch={}), tmp_path / "r.warplens")
    assert indexes(tmp_path / "r.warplens") == []


def test_without_room_for_it_the_report_is_finished_all_the_same(
    tmp_path: Path, always: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("warplens.timeline.index.builder.IndexBuilder._drain", full)
    manifest = finish(recording(tmp_path / "spool", launch={}), tmp_path / "r.warplens")
    assert manifest.rows("nvtx_ranges") == 4
    assert indexes(tmp_path / "r.warplens") == []


def test_importing_leaves_it_to_the_first_look(tmp_path: Path, always: None) -> None:
    event = {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 5}
    (tmp_path / "trace.json").write_text(json.dumps({"traceEvents": [event, {**event, "ts": 9}]}))
    import_file(tmp_path / "trace.json", tmp_path / "r.warplens")
    assert indexes(tmp_path / "r.warplens") == []  # most imports are asked, not looked at
    with opened(tmp_path / "r.warplens") as index:
        assert ("nvtx_ranges", "aten::mm", 2) in names(index)
    assert len(indexes(tmp_path / "r.warplens")) == 1


def test_each_snapshot_has_its_own_and_takes_it_along(tmp_path: Path) -> None:
    note = pending.begin(tmp_path / "r.warplens", recording(tmp_path / "spool", launch={}), name="one")
    snapshot(note)
    with opened(tmp_path / "r.warplens") as index:
        assert index.path.name.endswith(".s1.lanes")
    snapshot(note)
    assert indexes(tmp_path / "r.warplens") == []
    opened(tmp_path / "r.warplens").close()
    assert [name.endswith(".s2.lanes") for name in indexes(tmp_path / "r.warplens")] == [True]


def test_parts_of_several_hosts_are_on_one_clock(tmp_path: Path) -> None:
    path = tmp_path / "r.warplens"
    timeline(path, "main |[step ]", part="a-1-1", boot_id="a")
    timeline(path, "main |[step ]", part="b-1-1", boot_id="b", realtime_offset=7_000)
    store: Stored = open_store(path)
    assert [part.shift for part in store.parts] == [0, 7_000]
    first, second = (LaneIndex.open(store, part, None) for part in store.parts)
    assert second.tracks[0].begin == first.tracks[0].begin + 7_000
    assert second.viewport(-FAR, FAR, 1 << 60).start[0] == first.viewport(-FAR, FAR, 1 << 60).start[0] + 7_000
    (hit,) = second.find([0], second.tracks[0].begin, second.tracks[0].begin + 1, 5)
    assert (hit.start, second.tracks[0].key["process"]) == (second.tracks[0].begin, 1 << 16)
    assert (
        second.locate("nvtx_ranges", 1 << 16, 0, hit.start) == second.locate("nvtx_ranges", 1 << 16, 0) == hit
    )
    assert second.at(0, 0, hit.start) == hit


def test_files_of_a_killed_builder_are_removed_by_the_next(report: Path) -> None:
    folder = report / "index"
    folder.mkdir()
    left, young = folder / ".a.lanes.1.tmp", folder / ".b.lanes.2.tmp"
    for path in (left, young):
        path.write_bytes(b"half")
    os.utime(left, (1, 1))
    opened(report).close()
    assert not left.exists()
    assert young.exists()


@pytest.mark.parametrize(("what", "bytes_"), [("_BYTES_PER_ROW", 50 << 20), ("_BYTES_PER_NAME", 200 << 20)])
def test_a_large_index_is_left_to_the_first_view(
    report: Path, monkeypatch: pytest.MonkeyPatch, what: str, bytes_: int
) -> None:
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 1)
    (manifest,) = (part.manifest for part in open_store(report).parts)
    with monkeypatch.context() as short:
        short.setattr(building, what, bytes_)
        assert not building.prepare(report, manifest)
    assert indexes(report) == []
    assert building.prepare(report, manifest)
    assert len(indexes(report)) == 1


def test_an_index_that_would_take_too_long_is_left_to_the_first_look(
    report: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 1)
    (manifest,) = (part.manifest for part in open_store(report).parts)
    needed = building.events(manifest) * 100  # ns
    assert not building.prepare(report, manifest, limit_ns=needed - 1)
    assert indexes(report) == []
    assert building.prepare(report, manifest, limit_ns=needed)
    assert len(indexes(report)) == 1
