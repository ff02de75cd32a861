"""Looking slices up by name, time and row, and summing them, held against a plain list."""

from __future__ import annotations

import random
from collections import defaultdict
from pathlib import Path

import pytest

from tests.unit.timeline.index.slices import One, at_random, of_track, opened, union
from warplens.errors import UsageError


@pytest.mark.parametrize("seed", range(4))
def test_the_next_and_the_last_ones_of_a_name(tmp_path: Path, seed: int) -> None:
    slices = at_random(seed, 1500, ordered=seed != 3)
    rng = random.Random(seed)
    first, last = min(one.start for one in slices), max(one.start for one in slices)
    with opened(tmp_path, slices) as index:
        for text in ("gem", "<SCRIPT>", "copy"):
            names = index.names.search(text)
            assert {index.names.text(number).lower() for number in names} == {
                name for name in ("gemm", "<script>", "copy") if text.lower() in name
            }
            mine = [one for one in slices if text.lower() in one.name.lower()]
            assert sum(index.names.count(number) for number in names) == len(mine)
            for limit in (1, 5, 10_000):
                begin, end = sorted(rng.randint(first, last) for _ in range(2))
                starts = sorted(one.start for one in mine if begin <= one.start < end)
                ahead, behind = (
                    index.find(names, begin, end, limit),
                    index.find(names, begin, end, limit, backward=True),
                )
                assert [hit.start for hit in ahead] == starts[:limit]
                assert index.count(names, begin, end, limit) == len(ahead)
                assert [hit.start for hit in behind] == starts[::-1][:limit]
                told = {(one.process, one.row): one for one in slices}
                for hit in (*ahead, *behind):
                    one = told[int(index.tracks[hit.track].key["process"]), hit.row]
                    assert (one.start, one.end - one.start, one.name) == (
                        hit.start,
                        hit.duration,
                        index.names.text(hit.name),
                    )
        some = [track.number for track in index.tracks[:2]]
        found = index.find(index.names.search("copy"), first, last + 1, 10**6, tracks=some)
        assert len(found) == sum(
            one.name == "copy" for number in some for one in of_track(index, slices, number)
        )


@pytest.mark.parametrize("ordered", [True, False])
def test_a_row_is_found_with_and_without_its_time(tmp_path: Path, ordered: bool) -> None:
    slices = at_random(2, 2500, ordered=ordered)
    with opened(tmp_path, slices) as index:
        for one in slices[::37]:
            for start in (None, one.start):
                hit = index.locate("kernels", one.process, one.row, start)
                assert hit is not None
                assert (hit.start, hit.duration, hit.row, index.names.text(hit.name)) == (
                    one.start,
                    one.end - one.start,
                    one.row,
                    one.name,
                )
                assert index.tracks[hit.track].key == {"process": one.process, "stream": one.stream}
        assert index.locate("kernels", 0, 1 << 31) is None
        assert index.locate("kernels", 7, 0) is None
        assert index.locate("nothing", 0, 0) is None
        assert index.locate("kernels", 0, slices[0].row, slices[0].start + 10**9) is None


@pytest.mark.slow
def test_at_returns_the_slice_open_at_a_time(tmp_path: Path) -> None:
    slices = at_random(4, 2000)
    rng = random.Random(0)
    with opened(tmp_path, slices) as index:
        for _ in range(300):
            time = rng.randint(slices[0].start - 5, slices[-1].end + 5)
            for track in index.tracks:
                mine = {one.row: one for one in of_track(index, slices, track.number)}
                hits = [index.at(track.number, lane, time) for lane in range(track.lanes)]
                assert all(
                    mine[hit.row].start <= time <= mine[hit.row].end for hit in hits if hit is not None
                )
                assert {hit.row for hit in hits if hit} >= {
                    one.row for one in mine.values() if one.start < time < one.end
                }
        assert index.at(0, 10**9, 0) is None
        assert index.at(-1, 0, 0) is None


@pytest.mark.parametrize("seed", range(4))
def test_how_busy_tracks_are_and_what_ran(tmp_path: Path, seed: int) -> None:
    slices = at_random(seed, 1500, length=30 + 100 * seed)
    rng = random.Random(seed)
    first, last = slices[0].start, max(one.end for one in slices)
    with opened(tmp_path, slices) as index:
        for track in index.tracks:
            assert track.busy == union(
                [(one.start, one.end) for one in of_track(index, slices, track.number)]
            )
        for _ in range(20):
            begin, end = sorted((rng.randint(first, last), rng.randint(first, last)))
            end += 1
            busy, events = index.busy(None, begin, end)
            sums = index.sums(None, begin, end)
            count: dict[str, int] = defaultdict(int)
            total: dict[str, int] = defaultdict(int)
            for track in index.tracks:
                mine = [
                    one
                    for one in of_track(index, slices, track.number)
                    if one.start < end and (one.end > begin or one.start >= begin)
                ]
                inside = [(max(one.start, begin), min(one.end, end)) for one in mine]
                assert events[track.number] == len(mine)
                assert busy[track.number] == pytest.approx(union(inside) / (end - begin))
                for one in mine:
                    count[one.name] += 1
                    total[one.name] += min(one.end, end) - max(one.start, begin)
            told = {index.names.text(number): number for number in range(len(index.names))}
            assert {name: int(sums.count[number]) for name, number in told.items()} == {
                name: count[name] for name in told
            }
            assert {name: int(sums.total[number]) for name, number in told.items()} == {
                name: total[name] for name in told
            }


def test_names_are_searched_as_text_or_as_an_expression(tmp_path: Path) -> None:
    names = ("Gemm.*", "gemm_nt", "a" * 100_000, "nul\0in", "‮rtl", "\ud800 half")
    slices = [One("kernels", 0, 0, number, number, name, number) for number, name in enumerate(names[:-1])]
    with opened(tmp_path, slices) as index:

        def found(text: str, regex: bool = False) -> list[int]:
            return sorted(int(number) for number in index.names.search(text, regex))

        assert found("gemm.*") == [0]
        assert found("gemm.*", regex=True) == [0, 1]
        assert found("^gemm_..$", regex=True) == [1]
        assert found("nul\0") == [3]
        assert found("‮") == [4]
        assert found("aaaa") == [2]
        assert found("zzz") == []
        assert len(index.names.text(2)) == 1024
        assert index.names.layer(2) == "kernels"
        assert index.names.color(2) is None
        assert index.names.text(99) == ""
        assert index.names.layer(99) == ""
        assert index.names.count(99) == 0
        with pytest.raises(UsageError, match="is not a regular expression"):
            index.names.search("(", regex=True)
