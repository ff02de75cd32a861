"""The clock log: drift is found and taken out, broken lines are left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spool.decoding import decode
from warplens import native
from warplens.spool import clock as clocks
from warplens.spool.clock import ClockReading
from warplens.spool.layout import Clock
from warplens.testing import spool_writer as sw

TSC = Clock("tsc", 10, 1000, 500, 512)  # half a ns per tick


def test_conversion_is_the_agents() -> None:
    assert TSC.ns(1000) == 500
    assert TSC.ns(3001) == 500 + 1000
    assert Clock("monotonic", 0, 0, 0, 1).ns(77) == 77


def test_broken_lines_are_left_out(tmp_path: Path) -> None:
    log = tmp_path / "clocks.jsonl"
    log.write_bytes(
        b'{"counter": 20, "monotonic": 2, "realtime": 12}\n{"counter": 10, "monotonic": 1, "realtime": 11}\n\xff\n[1]\n{"counter": -1,'
        b' "monotonic": 1, "realtime": 1}\n{"counter": 1, "monotonic": 1e300, "realtime": 1}\n{"counter": 30, "mono'
    )
    samples = clocks.read_samples(log)
    assert samples == [ClockReading(10, 1, 11), ClockReading(20, 2, 12)]
    assert clocks.realtime_offset(samples) == 10
    assert clocks.read_samples(tmp_path / "none") == []
    assert clocks.realtime_offset([]) is None


def test_small_errors_are_left_alone_and_large_ones_corrected() -> None:
    fine = [ClockReading(1000 + 2 * t, 500 + t + 900, 0) for t in (0, 10_000, 20_000)]
    assert clocks.correction(TSC, fine) is None
    drift = [ClockReading(1000 + 2 * t, 500 + t + t // 5, 0) for t in (0, 10_000, 20_000)]
    knots = clocks.correction(TSC, drift)
    assert knots is not None
    assert (knots[0].tolist(), knots[1].tolist(), knots[2]) == (
        [500, 10_500, 20_500],
        [500, 12_500, 24_500],
        4000,
    )
    assert clocks.correction(Clock("monotonic", 0, 0, 0, 1), drift) is None


def test_every_time_is_corrected_and_order_is_kept(tmp_path: Path) -> None:
    records = [sw.event("range", 1_000, 3_000), sw.event("range", 500, 10_000), sw.event("mark", 2_500)]
    rows, marks = decode(
        tmp_path, sw.spool([sw.records(0, records)]), clock=([1_000, 2_000, 3_000], [1_100, 2_100, 4_100])
    )
    assert [(row["start"], row["end"], row["depth"]) for row in rows] == [(600, 11_100, 0), (1_100, 4_100, 1)]
    assert marks[0]["start"] == 3_100


@pytest.mark.slow
@given(
    st.lists(st.integers(0, 10**12), min_size=1, max_size=8, unique=True).map(sorted),
    st.data(),
    st.lists(st.integers(-(10**12), 2 * 10**12), max_size=20),
)
def test_map_times_is_linear_interpolation(source: list[int], data: st.DataObject, times: list[int]) -> None:
    target = sorted(data.draw(st.lists(st.integers(0, 10**12), min_size=len(source), max_size=len(source))))
    found = native.map_times(
        np.array(source, np.int64), np.array(target, np.int64), np.array(times, np.int64)
    ).tolist()
    for time, mapped in zip(times, found, strict=True):
        if time <= source[0]:
            expected = float(time + target[0] - source[0])
        elif time >= source[-1]:
            expected = float(time + target[-1] - source[-1])
        else:
            at = max(number for number, knot in enumerate(source) if knot <= time)
            expected = target[at] + (time - source[at]) * (target[at + 1] - target[at]) / (
                source[at + 1] - source[at]
            )
        assert abs(mapped - expected) <= 1
