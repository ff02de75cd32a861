"""CUDA in the Perfetto export: rows where a user of nsys looks for them, details, and arrows from launch to kernel."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.exporters.perfetto_trace import Decoded, decode
from warplens import catalog
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
    main          |[step                                              ]
    main:api      |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )(cudaGraphLaunch#3)
    main:api      |    (cuLaunchKernel )
    gpu0.7        |       (gemm#1   )          (HtoD#2  )(memset )  (add#3 )(mul#3 ) !5
    gpu0.7        |          (gemm )
    gpu0.13       |(DtoH#9 )  (graph )
    main:overhead |(Buffer_flush )
    :sync         |                               (Stream )
    :um           |(HtoD ) (CPU_page_fault )
    gpu0:memory   |+4096   -4096
    gpu0~SM_Active|0    55.5
    p1/gpu1.3     | (x )
"""
CUDA: dict[str, Any] = {
    "gemm": {"grid_x": 8, "demangled": "void gemm<float>(int)"},
    "#2": {"bytes": 18_000},
    "gpu0": {"name": "H100"},
}


def export(tmp_path: Path, picture: str = PICTURE, **options: Any) -> tuple[Decoded, Any]:
    timeline(tmp_path / "r.warplens", picture, origin=0, cuda=CUDA, **options)
    report = open_report(tmp_path / "r.warplens")
    out = tmp_path / "r.perfetto-trace"
    catalog.find("exporters.formats", "perfetto").load().write(report, out)
    return decode(out), report


def test_rows_are_where_a_user_of_nsys_looks(tmp_path: Path) -> None:
    decoded, _ = export(tmp_path)
    shown = sorted({(decoded.path(item.track), item.name) for item in decoded.slices + decoded.instants})
    stream = "python / GPU 0: H100 / Context 1 / Stream"
    assert shown == sorted(
        [
            ("python / main", "step"),
            *(
                ("python / main / CUDA API", name)
                for name in ("cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch")
            ),
            ("python / main / CUDA overhead", "Buffer flush"),
            ("python / CUDA synchronization", "Stream synchronize"),
            ("python / Unified memory", "HtoD"),
            ("python / Unified memory", "CPU page fault"),
            *((f"{stream} 7", name) for name in ("gemm", "add", "mul", "CUDA event")),
            (f"{stream} 7 / HtoD memcpy", "Memcpy HtoD"),
            (f"{stream} 7 / Memset", "Memset"),
            (f"{stream} 13", "CUDA graph"),
            (f"{stream} 13 / DtoH memcpy", "Memcpy DtoH"),
            ("python / GPU 1 / Context 2 / Stream 3", "x"),
        ]
    )
    counters = sorted(
        decoded.path(uuid) for uuid, track in decoded.tracks.items() if track.HasField("counter")
    )
    assert counters == ["GPU 0 metrics / SM Active", "python / GPU 0 memory (Device)"]
    assert sorted(decoded.samples) == [
        ("GPU 0 memory (Device)", 0, 4096),
        ("GPU 0 memory (Device)", 8_000, 0),
        ("SM Active", 0, 0.0),
        ("SM Active", 5_000, 55.5),
    ]


def test_events_have_the_times_and_details_of_the_tables(tmp_path: Path) -> None:
    decoded, report = export(tmp_path)
    for table, category in (
        ("kernels", "cuda_kernel"),
        ("memcpys", "cuda_memcpy"),
        ("cuda_api", "cuda_api"),
        ("overhead", "cuda_overhead"),
    ):
        wanted = sorted((row["start"], row["end"]) for row in report.table(table).to_pylist())
        assert (
            sorted((item.start, item.end) for item in decoded.slices if item.categories == [category])
            == wanted
        ), table
    inner = next(item for item in decoded.slices if item.name == "cuLaunchKernel")
    assert inner.parent is not None
    assert inner.parent.name == "cudaLaunchKernel"
    kernel = next(item for item in decoded.slices if item.name == "gemm")
    assert {
        "demangled": "void gemm<float>(int)",
        "grid x": 8,
        "block x": 128,
        "registers": 32,
        "correlation": 1,
    }.items() <= kernel.notes.items()
    assert "cluster x" not in kernel.notes
    copy = next(item for item in decoded.slices if item.name == "Memcpy HtoD")
    assert (copy.notes["bytes"], copy.notes["throughput GB/s"], copy.notes["source kind"]) == (
        18_000,
        1.8,
        "Pageable",
    )
    assert copy.notes["asynchronous"] is False


def test_arrows_lead_from_calls_to_their_first_work(tmp_path: Path) -> None:
    decoded, _ = export(tmp_path)
    begins = {arrow: item.name for item in decoded.slices for arrow in item.arrows}
    ends = sorted((begins[arrow], item.name) for item in decoded.slices for arrow in item.arrows_end)
    assert ends == [
        ("cudaGraphLaunch", "add"),
        ("cudaLaunchKernel", "gemm"),
        ("cudaMemcpyAsync", "Memcpy HtoD"),
    ]
    assert len(begins) == 3, "no arrow ends nowhere"


def test_kernels_that_overlap_in_a_stream_are_shown_side_by_side(tmp_path: Path) -> None:
    decoded, _ = export(tmp_path)
    first, second = (item for item in decoded.slices if item.name == "gemm")
    assert first.track != second.track
    assert decoded.path(first.track) == decoded.path(second.track)


def test_processes_keep_their_gpus_apart(tmp_path: Path) -> None:
    lines = "a/main:api |(cudaLaunchKernel#1)\na/gpu0.7 | (k#1 )\nb/main:api |(cudaLaunchKernel#1)\nb/gpu0.7 |   (k#1 )"
    decoded, _ = export(tmp_path, lines)
    begins = {arrow: item for item in decoded.slices for arrow in item.arrows}
    kernels = [item for item in decoded.slices if item.arrows_end]
    assert len(begins) == len(kernels) == 2
    for kernel in kernels:
        pids = set()
        for uuid in (kernel.track, begins[kernel.arrows_end[0]].track):
            while decoded.tracks[uuid].parent_uuid:
                uuid = decoded.tracks[uuid].parent_uuid
            pids.add(decoded.tracks[uuid].process.pid)
        assert len(pids) == 1


def test_a_window_draws_no_arrow_from_a_call_outside(tmp_path: Path) -> None:
    picture = """
        main:api |(cudaLaunchKernel#1)  (cudaLaunchKernel#2)
        gpu0.7   |                          (k#1 )(k#2       )
        windows  |                     [w                 ]
    """
    timeline(tmp_path / "r.warplens", picture, origin=0)
    report = open_report(tmp_path / "r.warplens").window(1)
    out = tmp_path / "w.perfetto-trace"
    catalog.find("exporters.formats", "perfetto").load().write(report, out)
    decoded = decode(out)
    assert [item.name for item in decoded.slices if item.arrows] == ["cudaLaunchKernel"]
    assert sum(bool(item.arrows_end) for item in decoded.slices) == 1


def test_tracks_below_one_are_in_order(tmp_path: Path) -> None:
    decoded, _ = export(tmp_path, "gpu0.13 |(k )\ngpu0.7 |(DtoH )(HtoD )(memset )(k )")
    stream = next(uuid for uuid in decoded.tracks if decoded.path(uuid).endswith("Stream 7"))
    ranks = {
        track.name: track.sibling_order_rank
        for track in decoded.tracks.values()
        if track.parent_uuid == stream
    }
    assert sorted(ranks, key=ranks.__getitem__) == ["HtoD memcpy", "DtoH memcpy", "Memset"]
    streams = {
        track.name: track.sibling_order_rank
        for track in decoded.tracks.values()
        if track.name.startswith("Stream")
    }
    assert streams["Stream 7"] < streams["Stream 13"]
    assert decoded.tracks[stream].child_ordering == 3
