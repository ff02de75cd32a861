"""Damaged and hostile CUDA records: fewer rows, never anything else than valid tables."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from tests.unit.convert.cuda.spools import TEXTS, api, work
from warplens.convert.process_tables import ProcessTables
from warplens.errors import SpoolError
from warplens.model.cuda_tables import CUDA_TABLES
from warplens.spool.reader import Bounds, SpoolFile
from warplens.testing import spool_writer as sw
from warplens.testing.wide_records import WIDE

SPECIAL = {
    "cuda_api": [api(1 + number, 1_000 + number, 2_000, tid=10 + number % 3) for number in range(20)],
    "cuda_kernel": [work(number, 1_500 + number, 3_000, name=4) for number in range(25)],
    "cuda_memory": [
        {"operation": 1 + number % 3, "start": 1_000 + number, "address": number % 4, "bytes": 8}
        for number in range(20)
    ],
    "cuda_um": [{"kind": number, "start": 1_000, "end": 1_001} for number in range(10)],
    "cuda_notice": [{"notice": number, "value": number} for number in range(14)],
}
DEFINED = {
    100: sw.definition("cuda_stream", identifier=5, name="s"),
    101: sw.definition("cuda_context", identifier="5", name=[]),
}
CHUNKS = [
    sw.strings(TEXTS | DEFINED),
    sw.records(
        sw.NO_THREAD, [sw.meta("thread", thread=0, tid=10, start=900), sw.define(100, 1), sw.define(101, 2)]
    ),
    sw.records(0, [sw.event("range", 1_001, 1_300, 1), sw.event("range", 990, 1_500, 1)]),
    *(
        sw.wide(kind, SPECIAL.get(kind, [{name: 5 for name, _, at in about["fields"] if at >= 8}] * 3))
        for kind, about in WIDE.items()
    ),
]
VALID = sw.spool(CHUNKS)
BODIES = range(sw.first_chunk() + sum(len(chunk) for chunk in CHUNKS[:3]), len(VALID))
# Headers and records of wide chunks, and what is said about them.
SPOTS = [
    *(at for at in BODIES if at % 4096 < 1_200),
    *range(sw.PAGE + VALID[sw.PAGE :].index(b'"wide"'), sw.first_chunk()),
]
NUMBERS = [0, 1, (1 << 64) - 1, 1 << 62, 1 << 63, 1 << 40, 0xFFFFFFFF, 0x7FFFFFFF_7FFFFFFF]
WINDOWS = [None, [], [(1_000, 2_000)], [(1_005, 1_006), (1_500, (1 << 62) - 1)]]


def survives(folder: Path, data: bytes, windows: list[tuple[int, int]] | None) -> dict[str, int]:
    """Make all tables; return how many rows each has."""
    rows: dict[str, int] = {}

    def write(name: str, table: pa.Table) -> None:
        table.validate(full=True)
        assert not any(
            column.null_count
            for field, column in zip(table.schema, table.columns, strict=True)
            if not field.nullable
        ), name
        rows[name] = rows.get(name, 0) + table.num_rows

    try:
        with SpoolFile(sw.write(folder, data), bounds=Bounds(windows=windows)) as spool:
            slices = spool.events.plan(3)
            tables = ProcessTables(spool, 0, write=write, clock=lambda time: time, clocks=lambda times: times)
            for number in range(slices):
                tables.add(spool.events.slice(number))
            tables.finish()
            notes = [*tables.notes(), *spool.notes()]
            assert all(note.message.isprintable() for note in notes)
    except SpoolError:
        pass
    return rows


@pytest.mark.slow
@settings(
    deadline=4000, max_examples=examples(80), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(SPOTS), st.sampled_from(NUMBERS), st.sampled_from([1, 2, 4, 8])),
        min_size=1,
        max_size=40,
    ),
    windows=st.sampled_from(WINDOWS),
)
def test_damaged_records(
    tmp_path: Path, steps: list[tuple[int, int, int]], windows: list[tuple[int, int]] | None
) -> None:
    data = bytearray(VALID)
    for at, number, size in steps:
        data[at : at + size] = (number % (1 << 8 * size)).to_bytes(size, "little")
    survives(tmp_path, bytes(data[: len(VALID)]), windows)


@pytest.mark.parametrize("seed", range(4))
def test_random_records(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    data = bytearray(VALID)
    for page in range(BODIES.start, BODIES.stop, 4096):
        stride = data[page + 6]
        data[page + 64 : page + 4096] = chance.randbytes(4096 - 64)
        for at in range(page + 64, page + 4096 - stride, stride):
            data[at] = data[page + 5]  # of the chunk's type: all of it is looked at
    survives(tmp_path, bytes(data), chance.choice(WINDOWS))


def test_the_seed_has_something_of_everything(tmp_path: Path) -> None:
    rows = survives(tmp_path, VALID, None)
    assert {table.name for table in CUDA_TABLES if rows.get(table.name)} == {
        table.name for table in CUDA_TABLES
    } - {"gpu_metrics"}
