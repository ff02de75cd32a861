"""Depth, parent and order against the slow oracle, whatever overlaps what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples, few
from tests.unit.spool.decoding import decode
from tests.unit.spool.oracle import Range, overlap, place
from warplens import native
from warplens.testing import spool_writer as sw

pytestmark = pytest.mark.slow


some_ranges = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 30), st.integers(0, 12), st.booleans()), max_size=40
).map(lambda items: [Range(t, s, s + d, n, x) for n, (t, s, d, x) in enumerate(items)])


@settings(deadline=None, max_examples=examples(300))
@given(some_ranges)
def test_nest_agrees_with_the_oracle(ranges: list[Range]) -> None:
    expected = place([one for one in ranges if not one.start_end])
    columns = [
        np.array([getattr(one, name) for one, _, _ in expected], np.int64)
        for name in ("thread", "start", "end")
    ]
    depth, parent = native.nest(*columns)
    assert depth.tolist() == [lane for _, lane, _ in expected]
    assert parent.tolist() == [row for _, _, row in expected]


@settings(deadline=None, max_examples=examples(200))
@given(some_ranges)
def test_lanes_agree_with_the_oracle(ranges: list[Range]) -> None:
    expected = place([Range(one.thread, one.start, one.end, one.order, True) for one in ranges])
    start, end = (
        np.array([getattr(one, name) for one, _, _ in expected], np.int64) for name in ("start", "end")
    )
    assert native.lanes(start, end).tolist() == [lane for _, lane, _ in expected]


@settings(deadline=None, max_examples=examples(200))
@given(some_ranges)
def test_no_two_ranges_of_a_lane_overlap_and_parents_enclose(ranges: list[Range]) -> None:
    placed = place(ranges)
    for row, (one, lane, parent) in enumerate(placed):
        for other, other_lane, _ in placed[:row]:
            same = other.start_end == one.start_end and (one.start_end or one.thread == other.thread)
            assert not (same and lane == other_lane and overlap(one, other))
        if parent >= 0:
            outer, outer_lane, _ = placed[parent]
            assert outer.start <= one.start
            assert outer.end >= one.end
            assert outer_lane < lane


def test_many_open_ranges_are_no_quadratic_work() -> None:
    count = 200_000
    start = np.arange(count, dtype=np.int64)
    depth, parent = native.nest(np.zeros(count, np.int64), start, start + count)
    assert depth.tolist() == list(range(count))
    assert set(parent.tolist()) == {-1}
    assert native.lanes(start, start + count).max() == count - 1


def _spool(ranges: list[Range]) -> bytes:
    """The records of each thread in order of their end, as an agent writes them; every third chunk changes hands."""
    chunks = []
    for thread in sorted({one.thread for one in ranges}):
        mine = sorted((one for one in ranges if one.thread == thread), key=lambda one: (one.end, one.order))
        kinds = [
            sw.event(
                "start_end" if one.start_end else "range", one.start, one.end, payload=one.order, flags=1
            )
            for one in mine
        ]
        half = len(kinds) // 2
        chunks.append(sw.records(thread, kinds[:half]))
        chunks.append(sw.records(99, [sw.meta("thread_switch", thread=thread), *kinds[half:]]))
    return sw.spool(chunks)


def _expected(ranges: list[Range]) -> list[tuple[int, int, int, int, int, str]]:
    rank = {
        one: number
        for number, one in enumerate(sorted(ranges, key=lambda one: (one.thread, one.end, one.order)))
    }
    placed = place([Range(one.thread, one.start, one.end, rank[one], one.start_end) for one in ranges])
    return [
        (o.thread, o.start, o.end, lane, parent, "StartEnd" if o.start_end else "PushPop")
        for o, lane, parent in placed
    ]


@settings(deadline=None, max_examples=examples(100))
@given(ranges=some_ranges)
def test_a_decoded_spool_agrees_with_the_oracle(
    tmp_path_factory: pytest.TempPathFactory, ranges: list[Range]
) -> None:
    rows, marks = decode(tmp_path_factory.mktemp("spool"), _spool(ranges))
    found = [
        (
            r["thread"],
            r["start"],
            r["end"],
            r["depth"],
            -1 if r["parent"] is None else r["parent"],
            r["style"],
        )
        for r in rows
    ]
    assert found == _expected(ranges)
    assert [row["id"] for row in rows] == list(range(len(ranges)))
    assert not marks


@pytest.mark.parametrize("rows_per_slice", few([100, 1 << 20, 999], 2))
def test_slices_change_nothing(tmp_path: Path, rows_per_slice: int) -> None:
    rng = np.random.default_rng(rows_per_slice)
    count = 3_000
    start = rng.integers(0, 20_000, count)
    length = np.where(rng.random(count) < 0.02, rng.integers(0, 20_000, count), rng.integers(0, 40, count))
    thread, kind = rng.integers(0, 5, count), rng.random(count) < 0.2
    ranges = [
        Range(int(t), int(s), int(s + d), n, bool(k))
        for n, (t, s, d, k) in enumerate(zip(thread, start, length, kind, strict=True))
    ]
    rows, _ = decode(tmp_path, _spool(ranges), rows_per_slice)
    found = [
        (
            r["thread"],
            r["start"],
            r["end"],
            r["depth"],
            -1 if r["parent"] is None else r["parent"],
            r["style"],
        )
        for r in rows
    ]
    assert found == _expected(ranges)
