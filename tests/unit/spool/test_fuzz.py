"""Damaged and hostile spools: a SpoolError or part of the rows, in bounded time, never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples, few
from tests.unit.spool.decoding import decode, decode_all
from tests.unit.spool.test_golden import golden
from warplens.errors import SpoolError
from warplens.model.nvtx_tables import NVTX_TABLES
from warplens.testing import spool_writer as sw

NAMES = sw.strings({1: "step", 2: "load", 3: "é", 4: b"\xff"})
ABOUT = [
    sw.meta("thread", 1, thread=0, tid=9),
    sw.meta("domain", 3, domain=1),
    sw.meta("category", 2, domain=1, category=1),
    sw.meta("thread_name", 2, tid=9),
]
EVENTS = [
    sw.event("range", 10, 20, 1, domain=1, category=1, flags=9),
    sw.event("start_end", 5, 25, 2),
    sw.origin(2),
    sw.event("mark", 26, None, 3),
    sw.meta("thread_switch", thread=3),
    sw.event("range", 30, 44, 4),
]
_FIRST = sw.first_chunk() + 64
BLOBS, AT = sw.blobs(
    0,
    [
        sw.blob(b"one" * 8, 1 << 24, following=_FIRST + 48),
        sw.blob(bytes(range(16)), 17, flags=3),
        sw.blob(b'{"a": 1}', (1 << 24) + 1),
        sw.blob(bytes(16), 1 << 24, following=_FIRST),
    ],
    sw.first_chunk(),
)
_ENTRIES = [
    {"name": "a", "type": 17},
    {"name": "b", "type": 12, "flags": 0x30, "array": 0},
    {"name": "s", "type": 80},
]
DEFINED = sw.strings(
    {
        11: sw.definition("schema", name="s", type=1, entries=_ENTRIES[::2]),
        12: sw.definition("schema", name="warplens.json", type=2, entries=_ENTRIES),
        13: sw.definition(
            "counter",
            name="c",
            schema=1 << 24,
            scope=1 << 32,
            semantics=[{"id": 5, "flags": 0xFFF, "min": -1e300}],
        ),
        14: sw.definition("scope", path="here", parent=1 << 32),
        15: sw.definition("task", name="t", library="asyncio", parent=7),
        16: sw.definition("sync", name="lock", identifier=1 << 63),
        17: "{" * 50_000,
        18: sw.definition(
            "counter",
            name=["c"],
            schema="x",
            scope={},
            semantics=[[], {"id": 5, "flags": "f", "unit": 3, "max": True}],
        ),
        19: sw.definition("schema", type=1, size=1 << 70, entries=[{"type": 1 << 24}]),
    }
)
MORE = [
    *(
        sw.define(text, number, start=2)
        for text, number in ((11, 1 << 24), (12, (1 << 24) + 1), (13, 5), (14, 1 << 32), (15, 3), (16, 4))
    ),
    *(sw.define(text, number) for text, number in ((17, 9), (18, 6), (19, (1 << 24) + 2), (99, 1))),
    sw.meta("task_switch", number=3, start=3),
    sw.event("range", 60, 61, 1, flags=7, payload=AT[0]),
    sw.event("sample", 62, flags=7, payload=AT[3], category=5),
    sw.event("sample", 63, flags=2, payload=1, category=6),
    sw.event("sample", 64, category=5, color=1),
    sw.operation(3, 65, object_id=4),
    sw.operation(2, 66, object_id=4),
    sw.operation(3, 67, object_id=4),
    sw.event("start_end", 60, 70, 2, flags=7, payload=AT[2]),
    sw.origin(0, 7, parent=8, task=3),
    sw.event("start_end", 62, 69, 2, flags=7, payload=AT[2]),
    sw.origin(0, 8, parent=7, task=3),
    sw.meta("task_switch", number=(1 << 64) - 1, start=71),
    sw.event("mark", 71, None, 3, flags=7, payload=AT[1] - 8),
]
VALID = sw.spool(
    [
        BLOBS,
        NAMES,
        DEFINED,
        sw.records(sw.NO_THREAD, ABOUT),
        sw.records(0, EVENTS * 4 + MORE),
        sw.open_table(0, [sw.event("range", 50, 0, 1)]),
        sw.open_table(sw.NO_THREAD, [sw.slot(sw.event("start_end", 51, 0, 2), 0, parent=8, task=3)]),
    ]
)
SEEDS = [VALID, golden()]
# Where damage does something: headers, JSON, the beginning of each chunk.
SPOTS = [*range(224), *(page + offset for page in range(4096, len(VALID), 4096) for offset in range(400))]

mutations = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), st.sampled_from(SPOTS), st.integers(0, 255)),
        st.tuples(
            st.just("word"),
            st.sampled_from(SPOTS),
            st.sampled_from([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 4096, 64]),
        ),
        st.tuples(
            st.just("long"),
            st.sampled_from(SPOTS),
            st.sampled_from([0, (1 << 64) - 1, 1 << 62, 1 << 63, 1 << 40, 4095]),
        ),
        st.tuples(st.just("cut"), st.integers(0, len(VALID)), st.just(0)),
        st.tuples(st.just("page"), st.integers(0, len(VALID) // 4096), st.integers(0, 1 << 30)),
    ),
    min_size=1,
    max_size=6,
)


def mutate(data: bytes, steps: list[tuple[str, int, int]]) -> bytes:
    out = bytearray(data)
    for kind, at, value in steps:
        if kind == "byte" and at < len(out):
            out[at] = value
        elif kind == "word" and at + 4 <= len(out):
            out[at : at + 4] = value.to_bytes(4, "little")
        elif kind == "long" and at + 8 <= len(out):
            out[at : at + 8] = value.to_bytes(8, "little")
        elif kind == "cut":
            del out[at:]
        elif kind == "page":
            out[at * 4096 : (at + 1) * 4096] = random.Random(value).randbytes(
                len(out[at * 4096 : (at + 1) * 4096])
            )
    return bytes(out)


def survives(folder: Path, data: bytes) -> None:
    try:
        tables = decode_all(folder, data, rows_per_slice=7)
    except SpoolError:
        return
    assert len(tables.get("nvtx_ranges", [])) + len(tables.get("nvtx_marks", [])) <= len(data) // 40
    assert len(tables.get("payloads", [])) <= len(data) // 24


@pytest.mark.slow
@settings(
    deadline=4000, max_examples=examples(400), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(seed=st.sampled_from(SEEDS), steps=mutations)
def test_a_damaged_spool(tmp_path: Path, seed: bytes, steps: list[tuple[str, int, int]]) -> None:
    survives(tmp_path, mutate(seed, steps))


@pytest.mark.slow
@settings(
    deadline=4000, max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.binary(max_size=20_000))
def test_random_bytes_behind_a_good_header(tmp_path: Path, tail: bytes) -> None:
    survives(tmp_path, VALID[: 3 * 4096] + tail)
    survives(tmp_path, tail)


def test_the_seed_has_something_of_everything(tmp_path: Path) -> None:
    tables = decode_all(tmp_path, VALID)
    assert {name for name, rows in tables.items() if rows} == {table.name for table in NVTX_TABLES}
    parents = {row["id"]: row["parent"] for row in tables["nvtx_ranges"]}
    assert all(parent is None or parent < child for child, parent in parents.items())
    assert [row["data"] for row in tables["payloads"] if row["event_type"] == "range"][:3] == [
        None,
        b"one" * 8,
        bytes(range(16)),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("size", few(range(0, len(VALID), 1021), step=4))
def test_a_spool_cut_off(tmp_path: Path, size: int) -> None:
    survives(tmp_path, VALID[:size])


def test_a_deeply_nested_description(tmp_path: Path) -> None:
    text = b"[" * 100_000
    head = bytearray(sw.spool([])[:4096])
    head[20:24] = len(text).to_bytes(4, "little")
    with pytest.raises(SpoolError, match="description of the records is broken"):
        decode(tmp_path, bytes(head) + text)


def test_a_claim_to_be_huge_allocates_nothing(tmp_path: Path) -> None:
    head = bytearray(VALID)
    for at in (20, 56, 64):
        head[at : at + 4] = b"\xff\xff\xff\xff"
    survives(tmp_path, bytes(head))
    strings = sw.chunk(2, 0, sw.NO_THREAD, b"\x03\0\0\0" + b"\xf0\xff\xff\xff" + b"hi")
    rows, _ = decode(tmp_path, sw.spool([strings, sw.records(0, [sw.event("range", 1, 2, 0xFFFFFFF0)])]))
    assert rows[0]["message"] is None
