"""What kernels recorded inside, in the Perfetto and Chrome exports: below their stream, crossing regions apart, with their details."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.unit.exporters.perfetto_trace import Decoded, decode
from warplens import catalog
from warplens.exporters import inside_kernels
from warplens.report import open as open_report
from warplens.testing.kernel_insides import DrawnLaunch, Region, Warp, launch_tables, pipeline
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow

PICTURE = """
    main:api |(cudaLaunchKernel#1)
    gpu0.7   |   (gemm#1              )
"""
REGIONS = [
    Region("tile", 4000, 9000, 7),
    Region("load", 4100, 6000),
    Region("copy", 5000, 9500, asynchronous=True),
    Region("go", 5500, None, 3),
    Region("store", 8000, 9000),
]
LAUNCH = DrawnLaunch("gemm", 3000, 20_000, [Warp(5, 1, 3, 3500, 10_000, REGIONS)])
STREAM = "python / GPU 0 / Context 1 / Stream 7"


def export(folder: Path, kind: str, *launches: DrawnLaunch, picture: str = PICTURE) -> Path:
    timeline(folder / "r.warplens", picture, origin=0, tables=launch_tables(launches, origin=0))
    out = folder / f"out.{kind}"
    catalog.find("exporters.formats", kind).load().write(open_report(folder / "r.warplens"), out)
    return out


def perfetto(folder: Path, *launches: DrawnLaunch, **options: Any) -> Decoded:
    return decode(export(folder, "perfetto", *launches, **options))


def test_perfetto_nests_them_below_their_stream(tmp_path: Path) -> None:
    decoded = perfetto(tmp_path, LAUNCH)
    inside = f"{STREAM} / Inside gemm #1"
    shown = sorted(
        (decoded.path(item.track), item.name)
        for item in decoded.slices + decoded.instants
        if "Inside" in decoded.path(item.track)
    )
    warp = f"{inside} / SM 3 / Warp 1"
    assert shown == sorted([(inside, "gemm"), *((warp, region.tag) for region in REGIONS)])
    tracks = {item.name: item.track for item in decoded.slices}
    assert tracks["tile"] == tracks["load"] == tracks["store"] != tracks["copy"]
    times = {item.name: (item.start, item.end) for item in decoded.slices}
    assert (times["tile"], times["copy"]) == ((4000, 9000), (5000, 9500))


def test_perfetto_keeps_payload_and_block(tmp_path: Path) -> None:
    decoded = perfetto(tmp_path, LAUNCH)
    notes = {item.name: item.notes for item in decoded.slices + decoded.instants}
    assert (notes["tile"]["payload"], notes["tile"]["block"], notes["go"]["payload"]) == (7, 5, 3)
    assert "payload" not in notes["load"]


def test_regions_that_all_cross_have_lanes_of_their_own(tmp_path: Path) -> None:
    crossing = [
        Region(f"copy {number}", 4000 + 100 * number, 5000 + 100 * number, asynchronous=True)
        for number in range(4)
    ]
    decoded = perfetto(tmp_path, DrawnLaunch("gemm", 3000, 20_000, [Warp(5, 1, 3, 3500, 10_000, crossing)]))
    shown = {item.name: item for item in decoded.slices}
    assert len({shown[region.tag].track for region in crossing}) == 4
    assert [(shown[region.tag].start, shown[region.tag].end) for region in crossing] == [
        (r.start, r.end) for r in crossing
    ]


def test_perfetto_has_the_clock_of_the_gpu(tmp_path: Path) -> None:
    """And says how exact it is: `offset` put to a time of the GPU gives that of the trace."""
    offsets = (-1_000_000, -1_000_500, -990_000)
    launches = [
        DrawnLaunch(
            "gemm",
            3_000 + 5_000 * number,
            7_000 + 5_000 * number,
            [],
            offset=offset,
            uncertainty=700 + number,
        )
        for number, offset in enumerate(offsets)
    ]
    decoded = perfetto(tmp_path, *launches)
    (clock,) = {key for pair in decoded.clocks for key in pair} - {1, 3}
    assert clock >= 128
    # The last one would let the GPU's clock go back.
    assert [(pair[3], pair[clock]) for pair in decoded.clocks if clock in pair] == [
        (3_000, 1_003_000),
        (8_000, 1_008_500),
    ]
    notes = [item.notes for item in decoded.slices if item.name == "gemm" and "offset" in item.notes]
    assert [(note["offset"], note["uncertainty"]) for note in notes] == [
        (offset, 700 + number) for number, offset in enumerate(offsets)
    ]


def test_blocks_at_once_and_without_a_kernel(tmp_path: Path) -> None:
    warps = [Warp(cta, 0, 0, 0, 1000, [Region("work", cta, 900 + cta)]) for cta in (0, 1)]
    decoded = perfetto(tmp_path, DrawnLaunch("free", 0, 1000, warps, kernel=None, device=None))
    paths = sorted(decoded.path(item.track) for item in decoded.slices if item.name == "work")
    assert paths == [f"python / Inside free #1 / SM 0 / Warp 0{more}" for more in ("", " (block 2 at once)")]


def test_many_launches_share_rows_and_many_warps_are_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    launches = [
        DrawnLaunch(
            "gemm", n * 100, n * 100 + 90, list(pipeline(n * 100, n * 100 + 80, blocks=2, sms=2, tiles=1))
        )
        for n in range(40)
    ]
    monkeypatch.setattr(inside_kernels, "MOST_ROWS", 3)
    decoded = perfetto(tmp_path, *launches)
    inside = f"{STREAM} / Inside gemm"
    paths = {decoded.path(item.track) for item in decoded.slices if "Inside" in decoded.path(item.track)}
    assert paths == {
        inside,
        f"{inside} / SM 0 / Warp 0",
        f"{inside} / SM 0 / Warp 1",
        f"{inside} / SM 1 / Warp 0",
    }
    assert sum(item.name == "gemm" and decoded.path(item.track) == inside for item in decoded.slices) == 40


def test_chrome_puts_them_on_threads_of_the_gpu(tmp_path: Path) -> None:
    trace = json.loads(export(tmp_path, "chrome", LAUNCH).read_text())
    names = {
        (e["pid"], e.get("tid")): e["args"]["name"]
        for e in trace["traceEvents"]
        if e["name"] in ("process_name", "thread_name")
    }
    own = {e["name"]: e for e in trace["traceEvents"] if e.get("cat") == "intrakernel"}
    where = {name: (names[e["pid"], None], names[e["pid"], e["tid"]]) for name, e in own.items()}
    warp = "Inside gemm #1 SM 3 Warp 1"
    assert where["tile"] == where["load"] == where["go"] == ("python GPU 0", warp)
    assert where["copy"] == ("python GPU 0", f"{warp} (overlapping)")
    assert (own["tile"]["ts"], own["tile"]["dur"], own["tile"]["args"]) == (
        4.0,
        5.0,
        {"payload": 7, "block": 5},
    )
    assert (own["go"]["ph"], own["go"]["args"]["payload"]) == ("i", 3)
