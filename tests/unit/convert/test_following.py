"""What is written while a process goes on is what its whole spool says at the end."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.thorough import few
from tests.unit.convert.history import History
from warplens.convert import begun, finish, following
from warplens.convert.begun import Begun
from warplens.convert.following import Surprise
from warplens.handover import pending, seals
from warplens.spool import packed
from warplens.spool.packed import Span
from warplens.testing import spool_writer as sw
from warplens.timeline.index import building


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte is worth a slice, and slices are small."""
    monkeypatch.setattr(begun, "_LEAST", 0)
    monkeypatch.setattr(following, "ROWS_PER_SLICE", 64)


def tables(report: Path) -> dict[str, pa.Table]:
    found = {}
    for folder in (report / "tables").iterdir():
        (file,) = folder.iterdir()
        rows = pq.read_table(file)
        found[folder.name] = rows.cast(
            pa.schema(
                [
                    (name, _plain(kind))
                    for name, kind in zip(rows.column_names, rows.schema.types, strict=True)
                ]
            )
        )
    return found


def _plain(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def describe(spool: Path) -> None:
    """Write what the launcher knows."""
    (spool / "launch.json").write_text(
        json.dumps({"pid": 10, "start_ns": 500, "host": "host", "command": ["x"]})
    )
    (spool / "control").write_bytes(sw.control([(400, 0, 1, 0, 0)]))
    (spool / "clocks.jsonl").write_text('{"counter": 1, "monotonic": 1, "realtime": 5}\n')


def recorded(
    folder: Path, history: History, looks: int, name: str = "one"
) -> tuple[pending.Pending, Begun | None]:
    """Follow a process to its end; return the note of the recording, and what was written, None where that was given up."""
    spool = folder / "spool"
    spool.mkdir(parents=True)
    describe(spool)
    note = pending.begin(folder / "r.warplens", spool, name=name)
    writing: Begun | None = Begun(note)
    for _ in range(looks):
        history.run(history.steps // looks)
        history.pause()
        history.write(spool)
        if writing is not None:
            try:
                writing.step(history.now)
            except Surprise:
                writing.abandon()
                writing = None
    history.run(20)
    history.write(spool, end=True)
    note.path.write_text(
        json.dumps(seals.sealed({**json.loads(note.path.read_text()), "pid": 0, "start_ticks": 0}))
    )
    return note, writing


@pytest.mark.parametrize("seed", few(range(40), 4))
@pytest.mark.parametrize("nested", [True, False])
def test_all_tables_are_equal(tmp_path: Path, seed: int, nested: bool) -> None:
    note, writing = recorded(tmp_path / "during", History(seed, nested=nested), 5)
    shutil.copytree(note.spool, tmp_path / "end")
    finish.finish(note, note.report, begun=writing)
    finish.finish(tmp_path / "end", tmp_path / "end.warplens")
    found, wanted = tables(note.report), tables(tmp_path / "end.warplens")
    for table, rows in wanted.items():
        assert found[table].equals(rows), table
    assert wanted["nvtx_ranges"].num_rows > 100


class Holes(History):
    """What was taken out of its spool is not there the next time, as with a file that only grows."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed, nested=True, steps=40_000, per_chunk=9000)
        self.taken: list[Span] = []

    def take_out(self, path: Path, spans: list[Span], stride: int) -> int:
        assert not set(self.taken) & set(spans)
        self.taken += spans
        return sum(end - begin for begin, end in spans)

    def write(self, spool: Path, *, end: bool = False) -> None:
        super().write(spool, end=end)
        (path,) = spool.glob("*.spool")
        data = bytearray(path.read_bytes())
        for first, last in self.taken:
            data[first:last] = bytes(last - first)
        path.write_bytes(data)


@pytest.mark.slow
@pytest.mark.parametrize("seed", few([1, 3, 4, 5], 1))
def test_pages_taken_out_of_the_spool_are_not_read_again(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "ROWS_PER_SLICE", 3000)
    history = Holes(seed)
    monkeypatch.setattr(packed, "take_out", history.take_out)
    note, writing = recorded(tmp_path / "during", history, 8)
    assert writing is not None
    assert (
        sum(end - begin for begin, end in history.taken)
        > Path(note.spool, f"host-10-{sw.TICKS}.spool").stat().st_size / 6
    )
    finish.finish(note, note.report, begun=writing)
    history.taken = []
    spool = tmp_path / "end"
    spool.mkdir()
    describe(spool)
    history.write(spool, end=True)
    finish.finish(spool, tmp_path / "end.warplens")
    found, wanted = tables(note.report), tables(tmp_path / "end.warplens")
    for table, rows in wanted.items():
        assert found[table].equals(rows), table


class EndsARangeLast(History):
    """The last record of a thread is a start/end range that began and ended on it."""

    def write(self, spool: Path, *, end: bool = False) -> None:
        if end:
            self.end_one_here(0)
        super().write(spool, end=end)


def test_a_start_end_range_that_a_thread_ends_last_is_there(tmp_path: Path) -> None:
    """Steps leave it where it is, since the record of where it began may still come. The last reading takes it."""
    note, writing = recorded(tmp_path / "during", EndsARangeLast(0, nested=True), 5)
    assert writing is not None
    shutil.copytree(note.spool, tmp_path / "end")
    finish.finish(note, note.report, begun=writing)
    finish.finish(tmp_path / "end", tmp_path / "end.warplens")
    assert tables(note.report)["nvtx_ranges"].equals(tables(tmp_path / "end.warplens")["nvtx_ranges"])


def test_the_index_of_a_dense_recording_is_left_to_the_first_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only where the user waits for the end of a run; a conversion that takes its time makes it."""
    monkeypatch.setattr("warplens.storage.manifest.INDEXED", 1)
    monkeypatch.setattr(building, "_NS_PER_ROW", 1_000_000_000)
    note, writing = recorded(tmp_path / "during", History(0, nested=True), 5)
    shutil.copytree(note.spool, tmp_path / "end")
    finish.finish(note, note.report, begun=writing)
    finish.finish(tmp_path / "end", tmp_path / "end.warplens")
    assert not list((note.report / "index").glob("*"))
    assert list((tmp_path / "end.warplens" / "index").glob("*"))


def test_a_followed_process_is_not_written_again_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note, writing = recorded(tmp_path, History(0, nested=True), 5)
    assert writing is not None
    follower = next(iter(writing.followers.values()))
    assert follower.slices > 3
    assert follower.wrote
    monkeypatch.setattr(finish, "PartWriter", None)
    finish.finish(note, note.report, begun=writing)
    starts = tables(note.report)["nvtx_ranges"].column("start").to_pylist()
    assert starts == sorted(starts)
    assert sorted(path.name for path in note.report.rglob("*.during")) == []
