"""What occupied the columns of a picture, held against a plain list."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from tests.unit.timeline.index.slices import One, at_random, of_track, opened
from warplens.timeline.index import LaneIndex
from warplens.timeline.index.layout import NONE

Column = dict[str, list[tuple[float, bool, One]]]  # of each name: its share, whether it begins there


def by_hand(slices: list[One], begin: int, end: int, columns: int) -> dict[int, Column]:
    found: dict[int, Column] = defaultdict(lambda: defaultdict(list))
    length = end - begin
    for one in slices:
        if one.start < end and (one.end > begin or one.start >= begin):
            first, last = max(one.start, begin), max(min(one.end, end), one.start, begin)
            places = [(time - begin) * columns // length for time in (first, max(last - 1, first))]
            for column in range(places[0], places[1] + 1):
                edges = (column * length / columns, (column + 1) * length / columns)
                share = (
                    min(last - begin, edges[1]) - max(first - begin, edges[0])
                    if places[0] < places[1]
                    else last - first
                )
                found[column][one.name].append((share, column == places[0], one))
    return found


def text_groups(index: LaneIndex) -> list[str]:
    return [index.names.text(number) for number in range(len(index.names))]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("columns", [1, 7, 80])
def test_each_column_has_what_took_most_of_it(tmp_path: Path, seed: int, columns: int) -> None:
    slices = at_random(seed, 1500, ordered=seed != 3)
    rng = random.Random(seed)
    low, high = min(one.start for one in slices), max(one.end for one in slices)
    with opened(tmp_path, slices) as index:
        texts = text_groups(index)
        for track in index.tracks:
            own = of_track(index, slices, track.number)
            lanes = [(track.number, lane) for lane in range(track.lanes)]
            for begin, end in ((low - 5, high + 5), tuple(sorted(rng.sample(range(low, high), 2)))):
                cells = index.cells(lanes, begin, end, columns, index.names.texts)
                expected = by_hand(own, begin, end, columns)
                assert cells.column.tolist() == sorted(expected)
                for place, column in enumerate(cells.column.tolist()):
                    names = expected[column]
                    times = {name: sum(share for share, _, _ in each) for name, each in names.items()}
                    name = texts[cells.name[place]]
                    assert times[name] == pytest.approx(max(times.values()))
                    assert cells.busy[place] == pytest.approx(
                        min(sum(times.values()) / ((end - begin) / columns), 1)
                    )
                    assert cells.number[place] == sum(map(len, names.values()))
                    assert cells.begun[place] == sum(begun for _, begun, _ in names[name])
                    longest = max(share for share, _, _ in names[name])
                    at_start = [
                        share
                        for share, _, one in names[name]
                        if one.row == cells.row[place] and one.start == cells.start[place]
                    ]
                    assert max(at_start) == pytest.approx(longest)


def test_names_count_together_or_not_at_all(tmp_path: Path) -> None:
    slices = [
        One("kernels", 0, 0, 0, 6, "copy", 0),
        One("kernels", 0, 0, 6, 10, "Gemm", 1),
        One("kernels", 0, 0, 20, 30, "é", 2),
    ]
    with opened(tmp_path, slices) as index:
        texts = text_groups(index)
        groups = np.array([{"copy": 0, "Gemm": 0}.get(text, NONE) for text in texts], np.uint32)
        cells = index.cells([(0, 0)], 0, 40, 2, groups)
        assert (cells.column.tolist(), cells.number.tolist(), cells.busy.tolist()) == ([0], [2], [0.5])
        assert texts[cells.name[0]] == "copy"
        assert cells.group.tolist() == [0]
        assert (
            index.cells([(0, 7), (9, 0)], 0, 40, 2, groups).column.tolist() == []
        )  # lanes that are not there
        assert index.cells([(0, 0)], 0, 40, 2, groups[:0]).column.tolist() == []


def test_overlapping_slices_cover_a_column_once(tmp_path: Path) -> None:
    slices = [
        One("kernels", 0, 0, 0, 8, "copy", 0),
        One("kernels", 0, 0, 4, 12, "Gemm", 1),
        One("kernels", 0, 1, 10, 30, "é", 2),
    ]
    with opened(tmp_path, slices) as index:
        lanes = [(track.number, lane) for track in index.tracks for lane in range(track.lanes)]
        cells = index.cells(lanes, 0, 40, 2, index.names.texts)
        assert cells.column.tolist() == [0, 1]
        assert cells.busy.tolist() == [1.0, 0.5]  # 26 of 20 ns
        assert cells.covered.tolist() == [1.0, 0.5]
        cells = index.cells(lanes[:2], 0, 40, 2, index.names.texts)
        assert (cells.busy.tolist(), cells.covered.tolist()) == ([0.8], [0.6])
