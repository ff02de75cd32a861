"""Tables that are made beside each other are those that one thread makes."""

from __future__ import annotations

import json
import random
import threading
from pathlib import Path

import pytest

from tests.support.thorough import few
from tests.unit.convert.test_following import tables
from tests.unit.convert.test_small_processes import record
from warplens.convert import build, finish, place
from warplens.convert.cpu import tables as cpu_tables
from warplens.convert.cpu.beside import Beside
from warplens.testing import spool_writer as sw

RANGES, RECORDS, FRAMES = 200, 400, 9


def recorded(folder: Path, seed: int) -> Path:
    """Write the spool of a process with ranges and several kinds of records, on several threads."""
    rng = random.Random(seed)
    spool = folder / "spool"
    spool.mkdir(parents=True)
    (spool / "launch.json").write_text(json.dumps({"pid": 10, "start_ns": 500, "host": "host"}))
    (spool / "control").write_bytes(sw.control([(400, 0, 1, 0, 0)]))
    texts = dict(enumerate(("poll", "read", "/etc/passwd", "open", "futex"), 1))
    frames = [
        {"node": node, "parent": rng.randint(0, node - 1), "domain": 2, "name": rng.randint(1, 5)}
        for node in range(1, FRAMES)
    ]
    chunks = [sw.strings(texts), sw.wide("cpu_frame", frames)]
    for number, kind in enumerate(("cpu_sample", "os_call", "cpu_state"), 1):
        rows = [
            record(rng, kind, rng.randint(1_000, 90_000), rng.randint(1, 4), FRAMES + 1)
            for _ in range(RECORDS)
        ]
        chunks.append(sw.wide(kind, rows, sequence=number))
    begins = sorted(rng.randint(1_000, 90_000) for _ in range(RANGES))
    chunks.append(sw.records(0, [sw.meta("thread", thread=0, tid=1, start=1)]))
    chunks.append(sw.records(0, [sw.event("range", at, at + 50, 1) for at in begins]))
    sw.write(spool, sw.spool(chunks, {"pid": 10, "start_ns": 600}, end_ns=99_000), pid=10)
    return spool


@pytest.mark.parametrize("seed", few(range(20)))
def test_the_tables_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setattr(cpu_tables, "_LARGE", 0)
    monkeypatch.setattr(place, "ROWS_PER_GROUP", 32)
    threads = set()
    add = cpu_tables.CpuTables._add

    def noted(self: cpu_tables.CpuTables, *arguments: object, **more: object) -> None:
        threads.add(threading.current_thread().name)
        add(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(cpu_tables.CpuTables, "_add", noted)
    written = []
    for cores in (1, 2):
        threads.clear()
        monkeypatch.setattr(build, "cores", lambda cores=cores: cores)
        spool = recorded(tmp_path / str(cores), seed)
        finish.finish(spool, tmp_path / str(cores) / "r.warplens")
        written.append(tables(tmp_path / str(cores) / "r.warplens"))
        assert (threading.current_thread().name in threads) == (cores == 1)
    assert written[0]["osrt"].num_rows == RECORDS
    assert written[0]["osrt"].column("range").null_count < RECORDS
    assert written[0] == written[1]


def test_two_run_at_once() -> None:
    both = threading.Barrier(2, timeout=60)

    def meet() -> None:
        both.wait()

    beside = Beside(2)
    beside.run([meet, meet])
    beside.close()


def test_a_failed_task_stops_the_others() -> None:
    beside = Beside(2)
    begun = threading.Event()

    def fail() -> None:
        begun.wait(60)
        raise OSError("full")

    def go_on() -> None:
        begun.set()
        while not beside.stopped:
            pass

    with pytest.raises(OSError, match="full"):
        beside.run([fail, go_on])
    beside.close()
