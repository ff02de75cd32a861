"""Exports of nsys that are folders of Parquet or Arrow files say what the SQLite file of the same recording says."""

from __future__ import annotations

import os
import shutil
import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import warplens
from tests.support.reports.nsys_export import Export
from tests.support.reports.real_recordings import some
from tests.support.thorough import few
from tests.unit.importers import cpu_story, story
from tests.unit.stats import gpu_story
from warplens.errors import NotAReport, ReportError
from warplens.flows import foreign
from warplens.importers.importing import format_of, import_file
from warplens.model.tables import TABLES

pytestmark = pytest.mark.slow


FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "nsys"
REAL = sorted(FOLDER.glob("*.sqlite"))
LACKING = pytest.mark.skip(reason=f"the exports of real GPUs are not here ({FOLDER})")
STORIES: dict[str, Callable[[], Export]] = {
    "all": lambda: story.tell(Export()),
    "cpu": lambda: cpu_story.tell(Export()),
    "gpu": lambda: gpu_story.tell((3, 30)),
}
KINDS = ("parquet", "arrow file", "arrow stream")


def split(file: Path, folder: Path, kind: str, rows_together: int = 3) -> Path:
    """Write each table of a SQLite file as one of its own, as nsys does; numbers as narrow and unsigned as they fit."""
    folder.mkdir()
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            columns = [(row[1], row[2]) for row in database.execute(f'PRAGMA table_info("{name}")')]
            rows = database.execute(f'SELECT * FROM "{name}"').fetchall()
            arrays = {}
            for place, (column, declared) in enumerate(columns):
                values = [row[place] for row in rows]
                if declared == "TEXT":
                    arrays[column] = pa.array(
                        [None if value is None else str(value) for value in values], pa.large_string()
                    )
                elif declared == "REAL":
                    arrays[column] = pa.array(values, pa.float64())
                else:
                    arrays[column] = narrowed(pa.array(values, pa.int64()))
            table = pa.table(arrays)
            if kind == "parquet":
                pq.write_table(table, folder / f"{name}.parquet", row_group_size=rows_together)
                continue
            opened = pa.ipc.new_file if kind == "arrow file" else pa.ipc.new_stream
            with opened(
                str(folder / f"{name}.arrow{'s' * (kind == 'arrow stream')}"), table.schema
            ) as writer:
                writer.write_table(table, max_chunksize=rows_together)
    (folder / "notes.txt").write_text("nothing of nsys")
    return folder


def narrowed(values: pa.Array) -> pa.Array:
    known = values.drop_null().to_numpy()
    if len(known) and known.min() >= 0:
        return values.cast(pa.uint16() if known.max() < 1 << 16 else pa.uint64())
    return values


def same(one: Path, other: Path) -> None:
    with warplens.open(one) as first, warplens.open(other) as second:
        for table in TABLES:
            a, b = first.table(table), second.table(table)
            if table == "targets":  # says which file it comes from
                a, b = a.drop_columns(["boot_id"]), b.drop_columns(["boot_id"])
            assert a.equals(b), table
        assert first.origin == second.origin


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", few(STORIES))
def test_the_same_report_as_of_the_sqlite_file(kind: str, name: str, tmp_path: Path) -> None:
    file = STORIES[name]().write(tmp_path / "run.sqlite")
    folder = split(file, tmp_path / f"run_{'pqt' if kind == 'parquet' else 'arw'}dir", kind)
    import_file(file, tmp_path / "a.warplens")
    assert format_of(folder).id == "nsys_tables"
    import_file(folder, tmp_path / "b.warplens")
    same(tmp_path / "a.warplens", tmp_path / "b.warplens")


@pytest.mark.parametrize("name", some(path.name for path in REAL) or [pytest.param("none", marks=LACKING)])
def test_real_ones(name: str, tmp_path: Path) -> None:
    file = FOLDER / name
    folder = split(file, tmp_path / "run_pqtdir", "parquet", 5000)
    import_file(file, tmp_path / "a.warplens")
    import_file(folder, tmp_path / "b.warplens")
    same(tmp_path / "a.warplens", tmp_path / "b.warplens")


def test_a_folder_opens_like_a_file_and_is_imported_again_when_a_file_of_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = story.tell(Export()).write(tmp_path / "run.sqlite")
    folder = split(file, tmp_path / "my.run_pqtdir", "parquet")
    with foreign.open(folder) as report:
        assert report.tables["kernels"] == 3
    table = pq.read_table(folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    pq.write_table(table.slice(0, 1), folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    with foreign.open(folder) as report:
        assert report.tables["kernels"] == 1
    import_file(folder, tmp_path / "my.run_pqtdir.warplens")
    shutil.rmtree(tmp_path / "cache")
    with foreign.open(folder) as report:
        assert report.path.name == "my.run_pqtdir.warplens"
    assert not (tmp_path / "cache").exists()


def test_folders_that_are_not_nsys(tmp_path: Path) -> None:
    (tmp_path / "some").mkdir()
    pq.write_table(pa.table({"x": np.arange(3)}), tmp_path / "some" / "x.parquet")
    with pytest.raises(NotAReport, match="some is a folder, neither a report"):
        import_file(tmp_path / "some", tmp_path / "r.warplens")
    with pytest.raises(NotAReport, match="some is not a report"):
        foreign.open(tmp_path / "some")


@pytest.mark.parametrize("content", [b"", b"PAR1 and then nothing", b"\0" * 5000])
def test_a_broken_file_is_named(content: bytes, tmp_path: Path) -> None:
    file = story.tell(Export()).write(tmp_path / "run.sqlite")
    for kind, suffix in (("parquet", "parquet"), ("arrow stream", "arrows")):
        folder = split(file, tmp_path / kind, kind)
        (folder / f"NVTX_EVENTS.{suffix}").write_bytes(content)
        with pytest.raises(ReportError, match=rf"NVTX_EVENTS\.{suffix}"):
            import_file(folder, tmp_path / "r.warplens")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrow stream", "parquet", "run.sqlite"]


def test_columns_of_another_type(tmp_path: Path) -> None:
    folder = split(story.tell(Export()).write(tmp_path / "run.sqlite"), tmp_path / "x_pqtdir", "parquet")
    table = pq.read_table(folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    words = table.set_column(
        table.schema.get_field_index("gridX"), "gridX", pa.array(["wide"] * table.num_rows)
    )
    pq.write_table(words, folder / "CUPTI_ACTIVITY_KIND_KERNEL.parquet")
    with pytest.raises(ReportError, match="CUPTI_ACTIVITY_KIND_KERNEL"):
        import_file(folder, tmp_path / "r.warplens")


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A recording, and a PATH with nothing on it but what the shell needs."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    file = tmp_path / "my run.nsys-rep"
    file.write_bytes(b"\x01\x02 only nsys knows")
    return file


def fake_nsys(recording: Path, lines: str) -> None:
    program = recording.parent / "bin" / "nsys"
    program.write_text(f"#!/bin/sh\n{lines}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)


def test_a_recording_without_nsys(recording: Path) -> None:
    with pytest.raises(
        NotAReport, match=r"no nsys on the PATH.*my run\.sqlite: `nsys export -t sqlite .*my run\.nsys-rep`"
    ):
        foreign.open(recording)


def test_a_recording_is_exported_by_nsys_and_imported_once(recording: Path) -> None:
    made = story.tell(Export()).write(recording.parent / "made by nsys.db")
    copy = shutil.which("cp", path=os.defpath)
    fake_nsys(
        recording,
        f"""for word; do
  case "$word" in --output=*) out="${{word#--output=}}";; --type=*) type="${{word#--type=}}";; esac
  last="$word"
done
[ "$1" = export ] && [ "$type" = sqlite ] && [ "$last" = "{recording}" ] || exit 9
echo run >> "{recording.parent}/runs"
{copy} "{made}" "$out\"""",
    )
    assert format_of(recording).id == "nsys_rep"
    for _ in range(2):
        with foreign.open(recording) as report:
            assert report.tables["kernels"] == 3
    assert (recording.parent / "runs").read_text() == "run\n"
    left = [
        path.name
        for path in (recording.parent / "cache").rglob("*")
        if path.suffix == ".sqlite" or ".nsys-" in path.name
    ]
    assert left == []


def test_the_error_of_nsys_is_passed_on(recording: Path) -> None:
    fake_nsys(recording, 'echo "Importing ..."; echo "Wrong event order has been detected" >&2; exit 1')
    with pytest.raises(
        ReportError, match=r"nsys could not export .*my run\.nsys-rep: Wrong event order has been detected"
    ):
        foreign.open(recording)
    fake_nsys(recording, "exit 0")
    with pytest.raises(ReportError, match="it ended with 0"):
        foreign.open(recording)


def test_a_wrong_suffix_is_seen_through(recording: Path) -> None:
    written = story.tell(Export()).write(recording.parent / "x.sqlite")
    written.replace(recording)
    with foreign.open(recording) as report:
        assert report.tables["kernels"] == 3
    recording.write_text("hello")
    with pytest.raises(
        NotAReport, match=r"my run\.nsys-rep is no recording of Nsight Systems: it is text\.$"
    ):
        foreign.open(recording)


def test_a_folder_of_sqlite_files_is_a_set_of_ranks(tmp_path: Path) -> None:
    """Each file is a part, with the rank of its name; what cannot be read is left out and named."""
    folder = tmp_path / "runs"
    folder.mkdir()
    for rank in (10, 2):
        gpu_story.tell((3, 30)).write(folder / f"run.rank{rank}.sqlite")
    (folder / "run.rank3.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    (folder / "run.rank4.sqlite").write_bytes(b"no database")
    (folder / "run.rank5.nsys-rep").write_bytes(b"\1\2\3")
    (folder / "run.rank2.nsys-rep").write_bytes(b"\1\2\3")  # was exported
    parts = import_file(folder, tmp_path / "out.warplens")
    assert len(parts) == 2
    with warplens.open(tmp_path / "out.warplens") as report:
        rows = "SELECT DISTINCT rank FROM processes JOIN kernels USING (process) WHERE rank IS NOT NULL"
        assert {row["rank"] for row in report.sql(rows).to_pylist()} == {2, 10}
        left_out = [
            row["message"] for row in report.diagnostics.to_pylist() if row["code"] == "file-unreadable"
        ]
    named = [
        name
        for name in ("rank3.sqlite", "rank4.sqlite", "rank5.nsys-rep")
        if any(name in text for text in left_out)
    ]
    assert (named, len(left_out)) == (["rank3.sqlite", "rank4.sqlite", "rank5.nsys-rep"], 3)
    assert any("nsys export -t sqlite" in text for text in left_out)
