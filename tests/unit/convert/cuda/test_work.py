"""Columns of what GPUs did, waits, unified memory and overhead."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.convert.cuda.spools import (
    DRIVER,
    GEMM,
    H200,
    KERNEL,
    LIBRARY,
    PLAIN,
    STEP,
    TEXTS,
    api,
    report,
    work,
    write,
)
from warplens import catalog
from warplens.convert.finish import finish
from warplens.report import Selection
from warplens.report import open as open_report
from warplens.testing import spool_writer as sw

NONE = 0xFFFFFFFF


def test_a_kernel(tmp_path: Path) -> None:
    sizes = {
        "grid_x": 1,
        "grid_y": 2,
        "grid_z": 3,
        "block_x": 4,
        "block_y": 5,
        "block_z": 6,
        "registers": 40,
        "launch_type": 1,
    }
    shared = {
        "static_shared": 16,
        "dynamic_shared": 32,
        "shared_executed": 1_024,
        "local_per_thread": 8,
        "local_total": 1 << 40,
    }
    graph = {"cluster_x": 2, "cluster_y": 1, "cluster_z": 1, "graph": 5, "graph_node": 1 << 50}
    row = work(1, 1_000, 1_500, name=GEMM, device=2, **sizes, **shared, **graph)
    found = report(tmp_path, {"cuda_kernel": [row]})
    (one,) = found["kernels"]
    for name, value in {
        **sizes,
        **shared,
        **graph,
        "device": 2,
        "context": 1,
        "stream": 7,
        "start": 1_000,
        "end": 1_500,
    }.items():
        assert one[name] == ("cooperative" if name == "launch_type" else value), name
    assert (one["name"], one["demangled"], one["mangled"]) == (
        "gemm",
        "void ns::gemm<float, 4>(float*, int)",
        KERNEL,
    )


def test_a_kernel_without_most_of_it(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        {
            "cuda_kernel": [
                work(0, 1_000, 1_500),
                work(0, 2_000, 2_000, name=PLAIN),
                work(0, 3_000, 3_001, name=1_000_000),
            ]
        },
    )
    nulls = ("api", "correlation", "cluster_x", "graph", "graph_node", "mangled")
    assert [found["kernels"][0][name] for name in nulls] == [None] * len(nulls)
    assert found.columns("kernels", "name", "demangled", "mangled")[1:] == [
        ("plain_kernel", "plain_kernel", "plain_kernel"),
        ("(unknown)", "(unknown)", None),
    ]
    (note,) = found.notes("lost-names")
    assert note["count"] == 2


def test_copies(tmp_path: Path) -> None:
    here = {"source_device": NONE, "destination_device": NONE}
    rows = [
        work(
            1,
            1_000,
            1_500,
            bytes=1 << 33,
            copy_kind=1,
            source_kind=1,
            destination_kind=3,
            asynchronous=1,
            **here,
        ),
        work(
            1,
            2_000,
            2_500,
            bytes=8,
            copy_kind=10,
            source_kind=3,
            destination_kind=3,
            source_device=0,
            destination_device=1,
            copies=3,
        ),
        work(1, 3_000, 3_500, copy_kind=99, **here),
    ]
    found = report(tmp_path, {"cuda_memcpy": rows})
    names = (
        "bytes",
        "kind",
        "source_kind",
        "destination_kind",
        "source_device",
        "destination_device",
        "asynchronous",
        "copies",
    )
    assert found.columns("memcpys", *names) == [
        (1 << 33, "Host-to-Device", "Pageable", "Device", None, None, True, None),
        (8, "Peer-to-Peer", "Device", "Device", 0, 1, False, 3),
        (0, "kind 99", "Unknown", "Unknown", None, None, False, None),
    ]


def test_memsets_and_graphs(tmp_path: Path) -> None:
    memset = work(1, 1_000, 1_500, bytes=64, value=255, memory_kind=5, graph=4, graph_node=5)
    graph = work(1, 2_000, 2_500, graph=4, graph_exec=6)
    found = report(tmp_path, {"cuda_memset": [memset], "cuda_graph": [graph, work(1, 3_000, 3_001)]})
    assert found.columns("memsets", "bytes", "value", "memory_kind", "graph", "graph_node") == [
        (64, 255, "Managed", 4, 5)
    ]
    assert found.columns("graphs", "graph", "graph_exec") == [(4, 6), (None, None)]


def node(number: int, start: int = 0, original: int = 0, name: int = 0) -> dict[str, int]:
    return {"node": number, "start": start, "original": original, "tid": 10, "name": name}


def test_work_of_a_graph_knows_where_it_was_captured(tmp_path: Path) -> None:
    """Through an instantiated clone; a node of a call that was not recorded knows its ranges only."""
    calls = [api(1, 100, 200), api(1, 120, 130, domain=1), api(2, 300, 400), api(3, 900, 950)]
    nodes = [
        *(node(11, 150, name=3), node(12, 350, name=3), node(13, 500, name=3)),
        *(node(21, 600, 11), node(31, 700, 21), node(32, 700, 12), node(33, 700, 13), node(34, 700, 99)),
    ]
    kernels = [
        work(3, 1_000 + at, 1_001 + at, name=GEMM, graph=5, graph_node=at) for at in (31, 32, 33, 34, 0)
    ]
    ranges = [
        sw.event("range", begin, end, name)
        for name, begin, end in ((STEP, 50, 250), (PLAIN, 280, 450), (H200, 890, 960))
    ]
    thread = sw.records(0, [sw.meta("thread", thread=0, tid=10), *ranges])
    found = report(tmp_path, {"cuda_api": calls, "cuda_graph_node": nodes, "cuda_kernel": kernels}, thread)
    number = {row["start"]: row["id"] for row in found["cuda_api"]}
    inside = TEXTS[DRIVER]
    assert found.columns("kernels", "graph_node", "captured", "captured_in") == [
        (None, None, None),
        (31, number[100], inside),
        (32, number[300], inside),
        (33, None, inside),
        (34, None, None),
    ]
    with open_report(tmp_path / "r.warplens") as opened:
        rows = catalog.find("stats.tables", "nvtx_kern_sum").load().table(opened, Selection()).to_pylist()
    assert {(row["NVTX Range"], row["Kern Inst"]) for row in rows} == {
        (f":{TEXTS[STEP]}", 1),
        (f":{TEXTS[PLAIN]}", 1),
        (f":{TEXTS[H200]}", 3),
    }


def test_waits_and_events(tmp_path: Path) -> None:
    rows = [
        {
            "kind": 4,
            "start": 1_000,
            "end": 1_500,
            "correlation": 1,
            "context": 1,
            "stream": NONE,
            "event": NONE,
        },
        {"kind": 2, "start": 2_000, "end": 2_000, "context": 1, "stream": 7, "event": 3, "event_sync": 44},
    ]
    events = [
        {"start": 1_800, "context": 1, "stream": 7, "event": 3, "event_sync": 44, "correlation": 9},
        {"event": 5, "correlation": 1},
        {"event": 6},
    ]
    found = report(tmp_path, {"cuda_sync": rows, "cuda_api": [api(1, 990, 1_600)], "cuda_event": events})
    assert found.columns(
        "syncs", "kind", "start", "end", "context", "stream", "event", "event_sync", "api", "correlation"
    ) == [
        ("Context", 1_000, 1_500, 1, None, None, None, 0, 1),
        ("Stream wait event", 2_000, 2_000, 1, 7, 3, 44, None, None),
    ]
    assert found.columns("cuda_events", "event", "start", "event_sync", "api") == [
        (5, 990, None, 0),
        (3, 1_800, 44, None),
        (6, None, None, None),
    ]


def test_unified_memory(tmp_path: Path) -> None:
    rows = [
        {
            "kind": 1,
            "start": 1_000,
            "end": 1_100,
            "value": 4_096,
            "address": 1 << 47,
            "source": NONE,
            "destination": 1,
            "cause": 3,
        },
        {
            "kind": 2,
            "start": 2_000,
            "end": 2_100,
            "value": 4_096,
            "source": 1,
            "destination": NONE,
            "cause": 4,
        },
        {"kind": 8, "start": 3_000, "end": 3_100, "value": 4_096, "source": 0, "destination": 1, "cause": 5},
        {"kind": 3, "start": 4_000, "end": 0, "value": 1, "source": 0, "destination": 0},
        {"kind": 4, "start": 5_000, "end": 5_100, "value": 9, "source": 1, "destination": 0, "cause": 2},
        {"kind": 5, "start": 6_000, "end": 6_100, "source": 3},
        {"kind": 7, "start": 7_000, "end": 1, "source": 0, "cause": 2},
    ]
    found = report(tmp_path, {"cuda_um": rows})
    assert found.columns(
        "um_events", "kind", "end", "device", "source", "destination", "bytes", "faults", "cause"
    ) == [
        ("HtoD", 1_100, 1, None, 1, 4_096, None, "prefetch"),
        ("DtoH", 2_100, 1, 1, None, 4_096, None, "eviction"),
        ("DtoD", 3_100, 1, 0, 1, 4_096, None, "access counters"),
        ("CPU page fault", 4_000, None, None, None, None, 1, None),
        ("GPU page fault", 5_100, 1, None, None, None, 9, "write"),
        ("thrashing", 6_000, None, None, None, None, None, None),
        ("remote map", 7_000, 0, None, None, None, None, "thrashing"),
    ]
    assert found["um_events"][0]["address"] == 1 << 47


def test_overhead(tmp_path: Path) -> None:
    rows = [
        {"kind": 1 << 16, "start": 1_000, "end": 1_100, "tid": 44},
        {"kind": 5 << 16, "start": 2_000, "end": 2_100, "correlation": 4},
        {"kind": 1, "jit": 3, "start": 3_000, "end": 3_100, "name": LIBRARY},
        {"kind": 77, "start": 4_000, "end": 4_100, "tid": 55},  # a thread that does nothing else: ours, say
    ]
    found = report(tmp_path, {"cuda_api": [api(1, 500, 600, tid=44)], "cuda_overhead": rows})
    assert found.columns("overhead", "kind", "thread", "name", "correlation") == [
        ("Buffer flush", 0, None, None),
        ("Lazy function loading", None, None, 4),
        ("JIT compile", None, "libx.so", None),
        ("kind 77", None, None, None),
    ]
    assert found.columns("threads", "tid", "start") == [(44, 500)]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [1, 5])
def test_groups_of_rows_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    monkeypatch.setattr("warplens.convert.place.ROWS_PER_GROUP", rows)
    monkeypatch.setattr("warplens.spool.wide._GATHERED", 200)
    calls = [api(number, 1_000 + number, 1_001 + number) for number in range(1, 14)]
    ran = [work(number, 2_000 - number, 2_001, name=GEMM + number % 2) for number in range(1, 14)]
    found = report(tmp_path, {"cuda_api": calls, "cuda_kernel": ran})
    assert [row["id"] for row in found["cuda_api"]] == list(range(13))
    assert found.columns("kernels", "start", "api") == [
        (2_000 - number, number - 1) for number in range(13, 0, -1)
    ]
    assert [row["name"] for row in found["kernels"]] == [
        "gemm" if number % 2 == 0 else "plain_kernel" for number in range(13, 0, -1)
    ]


def test_progress_rises_to_its_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("warplens.convert.place.ROWS_PER_GROUP", 2)
    ran = [work(number, 2_000 + number, 3_000) for number in range(1, 6)]
    ranges = sw.records(0, [sw.event("range", 10, 20)] * 5)
    spool = write(
        tmp_path / "spool",
        {
            "cuda_api": [api(1, 1_000, 1_001)],
            "cuda_kernel": ran,
            "cuda_sync": [{"kind": 4, "start": 5, "end": 6}],
        },
        ranges,
    )
    told: list[float] = []
    finish(
        spool,
        tmp_path / "r.warplens",
        progress=lambda stage, done: told.append(done) if stage == "events" else None,
    )
    assert told == sorted(told)
    assert len(told) == 1 + 1 + 2 + 1
    assert told[0] == pytest.approx(5 / 12)
    assert told[-1] == pytest.approx(1)
