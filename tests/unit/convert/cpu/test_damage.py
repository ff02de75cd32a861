"""Damaged and hostile CPU records: fewer rows, never anything else than valid tables."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from tests.unit.convert.cpu.spools import FRAMES, MODULES, TEXTS, call, sample, span
from tests.unit.convert.cuda.test_damage import NUMBERS, WINDOWS, survives
from warplens.model.cpu_tables import CPU_TABLES
from warplens.testing import spool_writer as sw

RECORDS = {
    "cpu_frame": FRAMES * 3,
    "cpu_module": MODULES,
    "cpu_sample": [
        sample(1_000 + number, 1_010 + number, 10 + number % 3, domain=1 + number % 3) for number in range(20)
    ],
    "cpu_state": [
        {"domain": 1 + number % 3, "start": 1_000 + 9 * number, "end": 1_009 + 9 * number, "tid": 10}
        for number in range(20)
    ],
    "os_call": [
        call(1_000 + 7 * number, 1_100 + 7 * number, 4 + number % 2, flags=number % 2, stack=2)
        for number in range(20)
    ],
    "gil": [
        {"domain": 1 + number % 3, "start": 1_000 + 9 * number, "end": 1_009 + 9 * number, "tid": 10}
        for number in range(20)
    ],
    "python_span": [span(1 + number % 6, 1_000 + 7 * number, 1_100 + 9 * number) for number in range(24)],
    "cpu_notice": [{"notice": number, "value": number} for number in range(20)],
}
CHUNKS = [
    sw.strings(TEXTS),
    sw.records(sw.NO_THREAD, [sw.meta("thread", thread=0, tid=10, start=900)]),
    sw.records(0, [sw.event("range", 1_001, 1_300, 1), sw.event("range", 990, 1_500, 1)]),
    *(sw.wide(kind, rows) for kind, rows in RECORDS.items()),
]
VALID = sw.spool(CHUNKS)
BODIES = range(sw.first_chunk() + sum(len(chunk) for chunk in CHUNKS[:3]), len(VALID))
SPOTS = [
    *(at for at in BODIES if at % 4096 < 1_200),
    *range(sw.PAGE + VALID[sw.PAGE :].index(b'"cpu_frame"'), sw.first_chunk()),
]


@pytest.mark.slow
@settings(deadline=None, max_examples=examples(60), suppress_health_check=list(HealthCheck))
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
    assert {table.name for table in CPU_TABLES if rows.get(table.name)} == {
        table.name for table in CPU_TABLES
    }
