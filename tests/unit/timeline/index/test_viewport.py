"""What a view shows, held against a plain list of the slices."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.support.thorough import few
from tests.unit.timeline.index.slices import One, at_random, of_track, opened
from warplens.timeline.index import LaneIndex, Viewport

FAR = 1 << 61


def shown(one: One, begin: int, end: int) -> bool:
    return one.start < end and (one.end > begin or one.start >= begin)


def lanes_of(index: LaneIndex) -> dict[tuple[int, int], list[tuple[int, int, int]]]:
    """Return start, end and row of every slice of each lane."""
    found: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
    for hit in index.find(range(len(index.names)), -FAR, FAR, 1 << 30):
        found.setdefault((hit.track, hit.lane), []).append((hit.start, hit.start + hit.duration, hit.row))
    return {key: sorted(lane) for key, lane in found.items()}


def check(
    index: LaneIndex,
    slices: Sequence[One],
    view: Viewport,
    lanes: dict[tuple[int, int], list[tuple[int, int, int]]],
) -> None:
    """Every slice of the view lies in one rectangle of its lane; what that says of its slices is true."""
    by_row = {(one.process, one.row): one for one in slices}
    seen: Counter[tuple[int, int]] = Counter()
    for track, lane, first, count in view.runs.tolist():
        process = index.tracks[track].key["process"]
        expected = [
            one
            for one in lanes[track, lane]
            if one[0] < view.end and (one[1] > view.begin or one[0] >= view.begin)
        ]
        at = 0
        assert count > 0
        for number in range(first, first + count):
            inside = expected[at : at + int(view.slices[number])]
            at += len(inside)
            seen[track, lane] += len(inside)
            begin, end = inside[0][0], max(one[1] for one in inside)
            assert (view.start[number], view.duration[number]) == (begin, end - begin)
            longest = max(one[1] - one[0] for one in inside)
            busy = sum(one[1] - one[0] for one in inside)
            assert view.busy[number] == pytest.approx(busy / (end - begin) if end > begin else 1.0)
            named = by_row[int(process), int(view.row[number])]
            assert named.end - named.start == longest
            assert named.row in {one[2] for one in inside}
            assert index.names.text(int(view.name[number])) == named.name
            if len(inside) > 1:
                assert min(end, view.end) - max(begin, view.begin) <= view.grain
        assert at == len(expected)
    for key, all_of_it in lanes.items():
        visible = sum(
            one[0] < view.end and (one[1] > view.begin or one[0] >= view.begin) for one in all_of_it
        )
        assert seen[key] == visible, "a slice is in no rectangle, or in two"


@pytest.mark.parametrize("seed", range(6))
def test_every_slice_is_on_its_track_and_none_overlaps_another_of_its_lane(tmp_path: Path, seed: int) -> None:
    slices = at_random(seed, 1500, ordered=seed % 3 != 2)
    with opened(tmp_path, slices, batch=700 + seed) as index:
        lanes = lanes_of(index)
        assert sum(track.events for track in index.tracks) == len(slices)
        for track in index.tracks:
            mine = of_track(index, slices, track.number)
            there = [one for (number, _), lane in lanes.items() if number == track.number for one in lane]
            assert sorted(there) == sorted((one.start, one.end, one.row) for one in mine)
            assert track.events == len(mine)
            assert (track.begin, track.end) == (min(one.start for one in mine), max(one.end for one in mine))
            assert track.lanes == 1 + max(lane for number, lane in lanes if number == track.number)
        for lane in lanes.values():
            assert all(one[0] <= other[0] and one[1] <= other[0] for one, other in itertools.pairwise(lane))


@pytest.mark.slow
@pytest.mark.parametrize("seed", few(range(8), 2))
def test_a_view_holds_every_slice_and_says_what_is_true(tmp_path: Path, seed: int) -> None:
    slices = at_random(seed, 2000, tracks=1 + seed % 3)
    rng = random.Random(seed)
    first, last = slices[0].start, max(one.end for one in slices)
    with opened(tmp_path, slices) as index:
        lanes = lanes_of(index)
        for _ in range(25):
            length = int((last - first) * rng.choice((1.2, 0.5, 0.1, 0.01, 0.001))) + rng.randint(0, 3)
            begin = rng.randint(first - 10, last)
            view = index.viewport(begin, begin + length, rng.choice((1, 7, 300, 1600)), None, 1 << 20)
            assert view.grain <= max(length, 0)
            check(index, slices, view, lanes)


@pytest.mark.parametrize("limit", [1, 40, 300])
def test_more_rectangles_than_asked_for_are_joined(tmp_path: Path, limit: int) -> None:
    slices = at_random(3, 2500)
    with opened(tmp_path, slices) as index:
        lanes = lanes_of(index)
        view = index.viewport(slices[0].start, slices[-1].end, 1600, None, limit)
        assert len(view.start) <= max(limit, len(lanes))
        check(index, slices, view, lanes)


@pytest.mark.slow
@pytest.mark.parametrize("zoom", [1, 7, 60])
def test_a_limit_that_is_not_reached_changes_nothing_and_one_that_is_costs_little(
    tmp_path: Path, zoom: int
) -> None:
    """Dense lanes beside one with few events that are far apart."""
    length = 400_000
    dense = [
        One("kernels", 0, track, 20 * at + track, 20 * at + 17, f"k{at % 7}", at)
        for at in range(length // 20)
        for track in range(2)
    ]
    sparse = [One("kernels", 0, 2, at, at + 30, "s", at) for at in range(0, length, 9_000)]
    slices = [
        replace(one, row=row) for row, one in enumerate(sorted([*dense, *sparse], key=lambda one: one.start))
    ]
    with opened(tmp_path, slices, batch=1 << 20) as index:
        begin, end = length // 3, length // 3 + length // zoom
        whole = index.viewport(begin, end, 1600, None, 1 << 20)
        count = len(whole.start)
        for limit in (count, count + 1, 2 * count):
            view = index.viewport(begin, end, 1600, None, limit)
            assert view.grain == whole.grain
            for name in ("runs", "start", "duration", "name", "row", "slices", "busy"):
                assert np.array_equal(getattr(view, name), getattr(whole, name))
        for limit in (count // 2, count // 30):
            view = index.viewport(begin, end, 1600, None, limit)
            assert limit / 3 < len(view.start) <= limit
            assert view.slices.sum() == whole.slices.sum()


def test_only_the_tracks_that_were_asked_for_are_there(tmp_path: Path) -> None:
    slices = at_random(5, 500)
    with opened(tmp_path, slices) as index:
        view = index.viewport(-FAR, FAR, 100, [1, 4, 999], 1000)
        assert {run[0] for run in view.runs.tolist()} == {1, 4}
        assert not len(index.viewport(-FAR, FAR, 100, [], 1000).start)


def test_instants_long_ones_and_the_ends_of_time(tmp_path: Path) -> None:
    day = 86_400 * 10**9
    spans = [(0, 0), (0, 0), (0, 400 * day), (5, 5), (5, 5), (400 * day, 400 * day), (10**18, 10**18 + 1)]
    slices = [One("kernels", 0, 0, start, end, "x", row) for row, (start, end) in enumerate(spans)]
    with opened(tmp_path, slices) as index:
        lanes = lanes_of(index)
        for begin, end in (
            (0, 1),
            (0, 0),
            (5, 6),
            (-5, 0),
            (-FAR, FAR),
            (1, 5),
            (400 * day, 400 * day + 1),
            (10**18 + 1, FAR),
        ):
            check(index, slices, index.viewport(begin, end, 100, None, 100), lanes)
        assert len(index.viewport(0, 1, 100, None, 100).start) >= 2


def test_a_shifted_clock_moves_everything(tmp_path: Path) -> None:
    slices = at_random(1, 300)
    with opened(tmp_path, slices) as here, opened(tmp_path, slices, shift=10**9) as there:
        begin, end = slices[0].start, slices[-1].end
        one, other = (
            here.viewport(begin, end, 64, None, 10**6),
            there.viewport(begin + 10**9, end + 10**9, 64, None, 10**6),
        )
        assert np.array_equal(one.start + 10**9, other.start)
        assert np.array_equal(one.duration, other.duration)
        assert (one.begin + 10**9, one.grain) == (other.begin, other.grain)
        assert [track.begin + 10**9 for track in here.tracks] == [track.begin for track in there.tracks]


@pytest.mark.slow
def test_ten_thousand_tracks(tmp_path: Path) -> None:
    slices = [
        One("kernels", 0, number % 10_000, number * 3, number * 3 + 2, "x", number)
        for number in range(30_000)
    ]
    with opened(tmp_path, slices, batch=15_000) as index:
        assert len(index.tracks) == 10_000
        view = index.viewport(0, 90_000, 1600, None, 4000)
        assert len(view.start) == 10_000
        assert int(view.slices.sum()) == 30_000
        assert len(index.viewport(0, 90_000, 1600, [17], 4000).start) == 3


def test_an_empty_index(tmp_path: Path) -> None:
    with opened(tmp_path, []) as index:
        assert index.tracks == ()
        assert len(index.names) == 0
        assert not len(index.viewport(0, 10, 10, None, 10).start)
        assert index.find([0], 0, 10, 5) == []
        assert index.locate("kernels", 0, 0) is None
        assert index.at(0, 0, 5) is None


def test_a_closed_index_says_so(tmp_path: Path) -> None:
    index = opened(tmp_path, at_random(0, 10))
    index.close()
    with pytest.raises(ValueError, match="the index is closed"):
        index.viewport(0, 1, 1)
