"""Damaged and hostile spools: a SpoolError or part of the rows, in bounded time, never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.unit.spool.decoding import decode
from tests.unit.spool.test_golden import golden
from warpline.errors import SpoolError
from warpline.testing import spool_writer as sw

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
VALID = sw.spool(
    [
        NAMES,
        sw.records(sw.NO_THREAD, ABOUT),
        sw.records(0, EVENTS * 4),
        sw.open_table(0, [sw.event("range", 50, 0, 1)]),
        sw.open_table(sw.NO_THREAD, [sw.slot(sw.event("start_end", 51, 0, 2), 0)]),
    ]
)
SEEDS = [VALID, golden()]
# Where damage does something: headers, JSON, the beginning of each chunk.
SPOTS = [*range(224), *(page + offset for page in range(4096, len(VALID), 4096) for offset in range(400))]

mutations = st.lists(
    st.one_of(
        st.tuples(st.just("byte"), st.sampled_from(SPOTS), st.integers(0, 255)),
        st.tuples(st.just("word"), st.sampled_from(SPOTS), st.sampled_from([0, 1, 0xFFFFFFFF, 0x7FFFFFFF, 0x80000000, 4096, 64])),
        st.tuples(st.just("long"), st.sampled_from(SPOTS), st.sampled_from([0, (1 << 64) - 1, 1 << 62, 1 << 63, 1 << 40, 4095])),
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
            out[at * 4096 : (at + 1) * 4096] = random.Random(value).randbytes(len(out[at * 4096 : (at + 1) * 4096]))
    return bytes(out)


def survives(folder: Path, data: bytes) -> None:
    try:
        ranges, marks = decode(folder, data, rows_per_slice=7)
    except SpoolError:
        return
    assert len(ranges) + len(marks) <= len(data) // 40


@settings(deadline=4000, max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.sampled_from(SEEDS), steps=mutations)
def test_a_damaged_spool(tmp_path: Path, seed: bytes, steps: list[tuple[str, int, int]]) -> None:
    survives(tmp_path, mutate(seed, steps))


@settings(deadline=4000, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=20_000))
def test_random_bytes_behind_a_good_header(tmp_path: Path, tail: bytes) -> None:
    survives(tmp_path, VALID[: 3 * 4096] + tail)
    survives(tmp_path, tail)


@pytest.mark.parametrize("size", range(0, len(VALID), 509))
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
