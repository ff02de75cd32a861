"""Processes that end while the recording goes on become the rows that they become at the end."""

from __future__ import annotations

import json
import random
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from tests.unit.convert.history import SECOND, History
from tests.unit.convert.test_following import tables
from tests.unit.convert.test_small_processes import process
from warplens import native
from warplens.convert import begun, ended, finish, following
from warplens.convert.begun import Begun
from warplens.convert.following import Surprise
from warplens.convert.symbols.elf import Elf
from warplens.convert.symbols.lookup import Symbols
from warplens.handover import pending, seals
from warplens.testing import spool_writer as sw

PARENT = 10  # runs all the time


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every byte is worth a look."""
    monkeypatch.setattr(begun, "_LEAST", 0)
    monkeypatch.setattr(ended, "_LEAST", 0)
    monkeypatch.setattr(following, "ROWS_PER_SLICE", 64)


class Family:
    """A process that goes on, and many that it starts: some are killed, some annotate themselves."""

    def __init__(self, seed: int, count: int = 20) -> None:
        self._random = rng = random.Random(seed)
        self.parent = History(seed, nested=True)
        self.parent.now = SECOND // 2
        self._before = 0
        self._children: list[
            tuple[int, int, dict[str, Any]]
        ] = []  # start, end, what `sw.spool` takes at its end
        for number in range(count):
            start = (2 + number) * SECOND
            texts, some = process(rng, start)
            chunks = [
                sw.strings(texts),
                *(sw.wide(kind, rows, sequence=at) for at, (kind, rows) in enumerate(some.items())),
            ]
            if rng.random() < 0.3:
                chunks.append(
                    sw.records(
                        0,
                        [
                            sw.event("range", start + at, start + at + 9, 1)
                            for at in range(rng.randint(1, 90))
                        ],
                    )
                )
            end = start + rng.choice([SECOND // 2, SECOND // 2, SECOND // 2, 9 * SECOND])
            self._children.append((start, end, {"chunks": chunks, "killed": rng.random() < 0.1}))
        self.last = (count + 14) * SECOND

    def write(self, spool: Path, now: int) -> None:
        """Write all spools, the windows and the log of the clocks as they are at a time."""
        over = now >= self.last
        self.living = {PARENT} | {
            20 + number for number, (start, end, _) in enumerate(self._children) if start <= now < end
        }
        self.parent.now = max(self.parent.now, self._before)
        self.parent.run(40)
        self._before = now
        self.parent.write(spool, end=over)
        for number, (start, end, what) in enumerate(self._children):
            if start > now:
                continue
            facts = {"pid": 20 + number, "ppid": PARENT, "start_ns": start, "command": ["true", str(number)]}
            chunks = what["chunks"] if end <= now else what["chunks"][:1]
            last = end if end <= now and not what["killed"] else 0
            sw.write(spool, sw.spool(chunks, facts, end_ns=last), pid=20 + number)
        (spool / "launch.json").write_text(
            json.dumps({"pid": PARENT, "start_ns": 500, "host": "host", "command": ["x"]})
        )
        (spool / "control").write_bytes(sw.control([(400, now if over else 0, 1, 0, 0)]))
        readings = [
            {"counter": at, "monotonic": at + at // 10**6, "realtime": 5} for at in range(1, now, SECOND)
        ]
        (spool / "clocks.jsonl").write_text("".join(f"{json.dumps(reading)}\n" for reading in readings))


def recorded(
    folder: Path, family: Family, monkeypatch: pytest.MonkeyPatch
) -> tuple[pending.Pending, Begun | None]:
    """Look every two seconds; return the note, and what was written: None where it was given up."""
    spool = folder / "spool"
    spool.mkdir(parents=True)
    family.write(spool, 2 * SECOND)
    note = pending.begin(folder / "r.warplens", spool, name="one")

    def living_writer(path: Path) -> int | None:
        writer = pending.writer_of(path)
        return writer[0] if writer is not None and writer[0] in family.living else None

    monkeypatch.setattr(pending, "living_writer", living_writer)
    writing: Begun | None = Begun(note)
    for now in range(3 * SECOND, family.last, 2 * SECOND):
        family.write(spool, now)
        if writing is not None:
            try:
                writing.step(now)
            except Surprise:
                writing.abandon()
                writing = None
    family.write(spool, family.last)
    note.path.write_text(
        json.dumps(seals.sealed({**json.loads(note.path.read_text()), "pid": 0, "start_ticks": 0}))
    )
    return note, writing


def compare(folder: Path, note: pending.Pending, writing: Begun | None) -> None:
    """Finish the report, and one of a copy of the whole spool; all tables are equal."""
    shutil.copytree(note.spool, folder / "end")
    finish.finish(note, note.report, begun=writing)
    finish.finish(folder / "end", folder / "end.warplens")
    got, wanted = tables(note.report), tables(folder / "end.warplens")
    assert got.keys() == wanted.keys()
    for table, rows in wanted.items():
        assert got[table].equals(rows), table


@pytest.mark.parametrize("seed", few(range(30), 4))
def test_all_tables_are_equal(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    note, writing = recorded(tmp_path, Family(seed), monkeypatch)
    assert writing is None or len(writing.ended.processes.converted) > 10
    compare(tmp_path, note, writing)


def test_converted_processes_are_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note, writing = recorded(tmp_path, Family(1), monkeypatch)
    assert writing is not None
    shutil.copytree(note.spool, tmp_path / "end")
    finish.finish(tmp_path / "end", tmp_path / "end.warplens")
    sizes = {name: Path(note.spool, name).stat().st_size for name in writing.ended.processes.converted}
    for name, size in sizes.items():  # nothing of it but its head is left
        path = Path(note.spool, name)
        path.write_bytes(path.read_bytes()[: sw.first_chunk()].ljust(size, b"\0"))
    finish.finish(note, note.report, begun=writing)
    assert tables(note.report)["frames"].num_rows == tables(tmp_path / "end.warplens")["frames"].num_rows


def test_the_killed_and_the_living_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    family = Family(3)
    note, writing = recorded(tmp_path, family, monkeypatch)
    assert writing is not None
    for number, (_, _, what) in enumerate(family._children):
        if what["killed"]:
            assert f"host-{20 + number}-{sw.TICKS}.spool" not in writing.ended.processes.converted
    assert any(what["killed"] for _, _, what in family._children)
    assert f"host-{PARENT}-{sw.TICKS}.spool" not in writing.ended.processes.converted
    compare(tmp_path, note, writing)


@pytest.mark.parametrize("odd", ["earlier", "window"])
def test_processes_whose_facts_change_are_read_again(
    tmp_path: Path, odd: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that began before others was seen after them, or a window was closed early."""
    family = Family(2)
    note, writing = recorded(tmp_path, family, monkeypatch)
    assert writing is not None
    spool = Path(note.spool)
    if odd == "earlier":
        sw.write(
            spool,
            sw.spool([], {"pid": 99, "ppid": PARENT, "start_ns": 2 * SECOND + 1}, end_ns=3 * SECOND),
            pid=99,
        )
    else:
        (spool / "control").write_bytes(
            sw.control([(400, 2 * SECOND + 5, 1, 0, 0), (8 * SECOND, 0, 1, 0, 0)])
        )
    compare(tmp_path, note, writing)


def test_native_code_is_looked_up_while_a_process_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Reading the symbols of a program takes longer than all else at the end of a short run."""
    library = Path(native.__file__).parents[1] / "_lib" / "libwarplens_reader.so"
    with closing(Elf(library)) as file:
        build_id = file.build_id
        code = file.section(".text")
    assert code is not None
    texts = {1: str(library), 2: build_id or ""}
    frames = [
        {"node": node, "domain": 1, "module": 1, "offset": code.address + node * (code.size // 40)}
        for node in range(1, 40)
    ]
    spool = tmp_path / "spool"
    spool.mkdir()
    family = Family(1, count=0)
    family.write(spool, 2 * SECOND)
    (path,) = spool.glob("*.spool")
    more = [
        sw.strings(texts),
        sw.wide("cpu_module", [{"module": 1, "name": 1, "build_id": 2}]),
        sw.wide("cpu_frame", frames, sequence=1),
    ]
    path.write_bytes(sw.spool([path.read_bytes()[sw.first_chunk() :], *more]))
    note = pending.begin(tmp_path / "r.warplens", spool, name="one")
    writing = Begun(note)
    writing.step(5 * SECOND)
    shutil.copytree(spool, tmp_path / "end")
    finish.finish(tmp_path / "end", tmp_path / "end.warplens")
    monkeypatch.setattr(Symbols, "_read", None)
    finish.finish(note, note.report, begun=writing)
    rows = tables(note.report)["frames"]
    assert rows.equals(tables(tmp_path / "end.warplens")["frames"])
    assert len(set(rows.column("function").to_pylist())) > 3
