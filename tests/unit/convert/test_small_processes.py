"""Small processes that are converted together become the rows that each would have become alone."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.thorough import few
from tests.unit.convert.test_following import tables
from warplens.convert import finish, processes
from warplens.convert.small_processes import MergedTables
from warplens.testing import spool_writer as sw

NATIVE, KERNEL = 1, 3
TEXTS = ["poll", "read", "/etc/passwd", "/usr/lib/libc.so.6", "open", "cpu-clock", "futex"]
Records = dict[str, list[dict[str, int]]]


@pytest.fixture
def together(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return how many processes were converted together each time."""
    sizes: list[int] = []

    class Seen(MergedTables):
        def __init__(self, members: Any, *arguments: Any, **more: Any) -> None:
            super().__init__(members, *arguments, **more)
            sizes.append(len(members))

    monkeypatch.setattr(processes, "MergedTables", Seen)
    return sizes


def process(rng: random.Random, start: int) -> tuple[dict[int, str], Records]:
    """Return strings and records of a process that recorded little: each kind may be missing."""
    names = rng.sample(TEXTS, rng.randint(1, len(TEXTS)))
    texts = {number: name for number, name in enumerate(names, 1) if rng.random() < 0.9}
    tids = [rng.randint(1, 5) for _ in range(rng.randint(1, 3))]
    nodes = rng.randint(0, 6)
    some: Records = {"cpu_notice": [{"notice": 10, "name": 1, "value": 250, "start": start}]}
    if nodes:
        modules = rng.randint(1, 2)
        some["cpu_module"] = [
            {"module": n + 1, "name": rng.randint(1, 3), "build_id": 0, "time": start} for n in range(modules)
        ]
        some["cpu_frame"] = [frame(rng, node, modules) for node in range(1, nodes + 1)]
    times = sorted(start + rng.randint(0, 900) for _ in range(rng.randint(0, 12)))
    for kind in rng.sample(["cpu_sample", "os_call", "cpu_state"], rng.randint(0, 3)):
        some[kind] = [
            record(rng, kind, at, rng.choice(tids), nodes)
            for at in rng.sample(times, rng.randint(0, len(times)))
        ]
    return texts, {kind: rows for kind, rows in some.items() if rows}


def frame(rng: random.Random, node: int, modules: int) -> dict[str, int]:
    one = {
        "node": node,
        "parent": rng.randint(0, node - 1),
        "domain": rng.choice([NATIVE, KERNEL]),
        "address": rng.randint(1, 99),
    }
    return one | {"module": rng.randint(0, modules), "offset": rng.randint(1, 99)}


def record(rng: random.Random, kind: str, start: int, tid: int, nodes: int) -> dict[str, int]:
    one = {"start": start, "end": start + rng.choice([0, 5, 50]), "tid": tid, "name": rng.randint(0, 9)}
    if kind == "cpu_sample":
        one |= {
            "end": start,
            "domain": 2,
            "count": 1,
            "interval": 4,
            "cpu": 1,
            "stack": rng.randint(0, nodes),
            "name": 0,
        }
    elif kind == "cpu_state":
        one |= {"domain": rng.randint(1, 3), "cpu": 0, "name": 0}
    else:
        one |= {"result": 3, "fd": rng.randint(-1, 5), "text": rng.randint(0, 8), "flags": rng.randint(0, 1)}
        one |= {"stack": rng.randint(0, nodes)}
    return one


def recorded(
    folder: Path, many: list[tuple[dict[int, str], Records]], *, annotated: int | None = None
) -> Path:
    """Write the spools of processes, one after the other; `annotated` has a range as well."""
    spool = folder / "spool"
    spool.mkdir(parents=True)
    (spool / "launch.json").write_text(
        json.dumps({"pid": 10, "start_ns": 500, "host": "host", "command": ["x"]})
    )
    (spool / "control").write_bytes(sw.control([(400, 5_500, 1, 1, 0), (5_600, 0, 1, 0, 0)]))
    readings = [{"counter": at, "monotonic": at + at // 100, "realtime": 5} for at in (1, 900_000)]
    (spool / "clocks.jsonl").write_text("".join(f"{json.dumps(reading)}\n" for reading in readings))
    for number, (texts, some) in enumerate(many):
        pid, start = 20 + number, 1_000 * (number + 1)
        chunks = [
            sw.strings(texts),
            *(sw.wide(kind, rows, sequence=at) for at, (kind, rows) in enumerate(some.items())),
        ]
        if number == annotated:
            chunks.append(sw.records(0, [sw.event("range", start + 5, start + 9, 1)]))
        facts = {"pid": pid, "ppid": 10, "start_ns": start, "command": ["true", str(number)]}
        sw.write(spool, sw.spool(chunks, facts, end_ns=start + 990), pid=pid)
    return spool


def compare(folder: Path, spool: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Convert a copy of a spool with each process alone, then the spool as it is; all tables are equal."""
    shutil.copytree(spool, folder / "alone")
    with monkeypatch.context() as patch:
        patch.setattr(processes.ProcessWriter, "_convert_together", lambda writer, members: False)
        finish.finish(folder / "alone", folder / "alone.warplens")
    finish.finish(spool, folder / "r.warplens")
    found, wanted = tables(folder / "r.warplens"), tables(folder / "alone.warplens")
    assert found.keys() == wanted.keys()
    for table, rows in wanted.items():
        both = [found[table].to_pylist(), rows.to_pylist()]
        if (
            table == "diagnostics"
        ):  # files without symbols are named in the order in which they were looked for
            both = [sorted(some, key=lambda row: (row["process"] or 0, row["message"])) for some in both]
        assert both[0] == both[1], table


@pytest.mark.parametrize("seed", few(range(40), 4))
def test_all_tables_are_equal(
    tmp_path: Path, together: list[int], monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    rng = random.Random(seed)
    many = [process(rng, 1_000 * (number + 1)) for number in range(rng.randint(8, 30))]
    annotated = rng.choice([None, 3, 5])  # one that is no small one comes between
    compare(tmp_path, recorded(tmp_path, many, annotated=annotated), monkeypatch)
    assert sum(together) >= len(many) - 5


@pytest.mark.parametrize(
    "odd",
    [
        {"os_call": [{"start": 50, "end": 20, "tid": 1}]},
        {"cpu_sample": [{"domain": 1, "start": 2_000, "end": 2_000, "tid": 1, "count": 1}]},
        {"cpu_sample": [{"domain": 2, "start": 2_000, "end": 2_000, "tid": 1, "count": 1, "stack": 7}]},
        {"cpu_frame": [{"domain": NATIVE, "node": 1, "module": 7}]},
        {"cpu_frame": [{"domain": 9, "node": 1}]},
        {"cpu_frame": [{"domain": NATIVE, "node": 2, "parent": 1}]},
        {"gil": [{"domain": 1, "start": 2_000, "end": 2_001, "tid": 1}]},
    ],
)
def test_an_odd_process_is_converted_alone(
    tmp_path: Path, together: list[int], monkeypatch: pytest.MonkeyPatch, odd: Records
) -> None:
    rng = random.Random(1)
    many = [process(rng, 1_000 * (number + 1)) for number in range(8)]
    many[3] = (many[3][0], odd)
    compare(tmp_path, recorded(tmp_path, many), monkeypatch)
    assert 8 not in together


def test_damage_is_noted_for_its_process(
    tmp_path: Path, together: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(2)
    spool = recorded(tmp_path, [process(rng, 1_000 * (number + 1)) for number in range(12)])
    hurt = sorted(spool.glob("*.spool"))[5]
    data = bytearray(hurt.read_bytes())
    at = sw.first_chunk({"pid": 25, "ppid": 10, "start_ns": 6_000, "command": ["true", "5"]})
    data[at : at + 4] = b"oops"
    hurt.write_bytes(data)
    compare(tmp_path, spool, monkeypatch)
    assert together == [5, 6]
    assert [
        row["process"]
        for row in tables(tmp_path / "r.warplens")["diagnostics"].to_pylist()
        if row["code"] == "spool-damaged"
    ] == [6]
