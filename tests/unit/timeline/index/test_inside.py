"""Where the warps of kernels that time themselves are on the timeline."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest

from tests.unit.timeline.index.test_layers import slices
from warplens.testing.kernel_insides import DrawnLaunch, Region, Warp, launch_tables, pipeline
from warplens.testing.timeline import timeline
from warplens.timeline.index.inside import SLOTS

PICTURE = """
    main:api |(cudaLaunchKernel#1)(cudaLaunchKernel#2)
    gpu0.7   |   (gemm#1     )        (gemm#2     )
"""


def written(path: Path, launches: list[DrawnLaunch]) -> Path:
    timeline(path, PICTURE, tick_ns=1000, origin=0, tables=launch_tables(launches, origin=0))
    return path


def tracks(report: Path, layer: str) -> dict[tuple[int, ...], list[tuple[int, int, int, str]]]:
    """Lane, start, duration and name on each track: by `inside`, `sm` and `warp` as far as the layer has them."""
    found = {}
    for (one, key), rows in slices(report).items():
        if one == layer:
            keys = dict(key)
            found[tuple(int(keys[name]) for name in ("inside", "sm", "warp") if name in keys)] = rows
    return found


def test_launches_of_one_name_share_their_rows(tmp_path: Path) -> None:
    launches = [
        DrawnLaunch("gemm", begin, begin + 9_000, list(pipeline(begin, begin + 9_000)), kernel=row)
        for row, begin in ((0, 3000), (1, 26_000))
    ]
    other = DrawnLaunch("softmax", 40_000, 49_000, list(pipeline(40_000, 49_000, sms=1, blocks=1)), kernel=1)
    report = written(tmp_path / "r.warplens", [*launches, other])
    shown = tracks(report, "intrakernel_launches")
    assert {key: [name for *_, name in rows] for key, rows in shown.items()} == {
        (0,): ["gemm", "gemm"],
        (2,): ["softmax"],
    }
    assert set(tracks(report, "intrakernel_events")) == {
        *((0, sm * SLOTS, warp) for sm in range(4) for warp in (0, 1)),
        (2, 0, 0),
        (2, 0, 1),
    }


def test_regions_are_nested_in_lanes_and_marks_apart(tmp_path: Path) -> None:
    regions = [
        Region("tile", 0, 100),
        Region("load", 10, 40),
        Region("copy", 30, 120, asynchronous=True),
        Region("go", 20),
        Region("end", 90, 95),
    ]
    report = written(tmp_path / "r.warplens", [DrawnLaunch("gemm", 0, 200, [Warp(5, 1, 3, 0, 150, regions)])])
    (events,) = tracks(report, "intrakernel_events").values()
    assert sorted(events) == [
        (0, 0, 100, "tile"),
        (1, 10, 30, "load"),
        (1, 90, 5, "end"),
        (2, 30, 90, "copy"),
    ]
    assert tracks(report, "intrakernel_marks") == {(0, 3 * SLOTS, 1): [(0, 20, 0, "go")]}
    assert tracks(report, "intrakernel_units") == {(0, 3 * SLOTS): [(0, 0, 150, "block 5")]}


def test_blocks_of_one_sm_at_once_have_rows_of_their_own(tmp_path: Path) -> None:
    spans = [(0, 0, 100), (1, 0, 150), (2, 100, 200), (3, 160, 200)]  # block, begin, end
    warps = [
        Warp(cta, warp, 0, begin, end, [Region("work", begin, end)])
        for cta, begin, end in spans
        for warp in (0, 1)
    ]
    report = written(tmp_path / "r.warplens", [DrawnLaunch("gemm", 0, 200, warps)])
    held = defaultdict(list)
    for (_, sm, warp), rows in tracks(report, "intrakernel_events").items():
        assert {lane for lane, *_ in rows} == {0}
        held[sm, warp] = [start for _, start, *_ in rows]
    assert held == {(0, 0): [0, 100], (0, 1): [0, 100], (1, 0): [0, 160], (1, 1): [0, 160]}
    (blocks,) = tracks(report, "intrakernel_units").values()
    assert sorted((lane, name) for lane, _, _, name in blocks) == [
        (0, "block 0"),
        (0, "block 2"),
        (1, "block 1"),
        (1, "block 3"),
    ]


@pytest.mark.slow
def test_many_blocks_need_few_rows_and_names(tmp_path: Path) -> None:
    report = written(
        tmp_path / "r.warplens",
        [DrawnLaunch("gemm", 0, 9_000_000, list(pipeline(0, 9_000_000, blocks=5000, sms=8, tiles=1)))],
    )
    assert len(tracks(report, "intrakernel_events")) == 16
    assert {name for rows in tracks(report, "intrakernel_units").values() for *_, name in rows} == {"block"}


def test_events_without_launch_or_unit_are_shown(tmp_path: Path) -> None:
    tables = launch_tables(
        [DrawnLaunch("gemm", 0, 200, [Warp(0, 0, 0, 0, 150, [Region("work", 0, 100)])])], origin=0
    )
    tables["intrakernel_events"][0]["unit"] = 77
    timeline(tmp_path / "r.warplens", PICTURE, origin=0, tables=tables)
    assert list(tracks(tmp_path / "r.warplens", "intrakernel_events")) == [()]
