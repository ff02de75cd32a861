"""CUDA in the Chrome export: rows, details, and arrows from launch to kernel."""

from __future__ import annotations

from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.thorough import examples
from tests.unit.exporters.test_chrome import export
from warplens.exporters.chrome import cuda as chrome_cuda

pytestmark = pytest.mark.slow


PICTURE = """
    main          |[step                                              ]
    main:api      |  (cudaLaunchKernel#1 )(cudaMemcpyAsync#2 )(cudaGraphLaunch#3)
    main:api      |    (cuLaunchKernel )
    gpu0.7        |       (gemm#1   )          (HtoD#2  )(memset )  (add#3 )(mul#3 ) !5
    gpu0.7        |          (gemm )
    main:overhead |(Buffer_flush )
    gpu0:memory   |+4096   -4096
    gpu0~SM_Active|0    55.5
    p1/gpu1.3     | (x )
"""
CUDA: dict[str, Any] = {
    "gemm": {"grid_x": 8, "demangled": 'void "gemm"<float>(int)'},
    "#2": {"bytes": 18_000},
    "gpu0": {"name": "H100"},
}


def named(trace: dict[str, Any]) -> dict[tuple[int, int | None], str]:
    return {
        (e["pid"], e.get("tid")): e["args"]["name"]
        for e in trace["traceEvents"]
        if e["name"] in ("process_name", "thread_name")
    }


def test_streams_are_threads_of_their_gpu(tmp_path: Path) -> None:
    trace = export(tmp_path, PICTURE, cuda=CUDA)
    names = named(trace)
    shown = {
        (names[e["pid"], None], names[e["pid"], e["tid"]], e["name"])
        for e in trace["traceEvents"]
        if e["ph"] in "Xi"
    }
    assert shown == {
        ("python", "main", "step"),
        *(
            ("python", "main CUDA API", name)
            for name in ("cudaLaunchKernel", "cuLaunchKernel", "cudaMemcpyAsync", "cudaGraphLaunch")
        ),
        ("python", "main CUDA overhead", "Buffer flush"),
        *(("python GPU 0: H100", "Stream 7", name) for name in ("gemm", "add", "mul", "CUDA event")),
        ("python GPU 0: H100", "Stream 7 (overlapping)", "gemm"),
        ("python GPU 0: H100", "Stream 7 HtoD memcpy", "Memcpy HtoD"),
        ("python GPU 0: H100", "Stream 7 Memset", "Memset"),
        ("python GPU 1", "Stream 3", "x"),
    }
    kernel = next(e for e in trace["traceEvents"] if e["name"] == "gemm")
    assert {"demangled": 'void "gemm"<float>(int)', "grid x": 8, "registers": 32}.items() <= kernel[
        "args"
    ].items()
    copy = next(e for e in trace["traceEvents"] if e["name"] == "Memcpy HtoD")
    assert (copy["args"]["bytes"], copy["args"]["throughput GB/s"], copy["args"]["asynchronous"]) == (
        18_000,
        Decimal("1.8"),
        False,
    )


def test_arrows_bind_to_their_events(tmp_path: Path) -> None:
    trace = export(tmp_path, PICTURE, cuda=CUDA)
    slices = {(e["pid"], e["tid"], e["ts"]): e["name"] for e in trace["traceEvents"] if e["ph"] == "X"}
    arrows: dict[str, dict[str, str]] = {}
    for event in trace["traceEvents"]:
        if event["ph"] in "sf":
            arrows.setdefault(event["id"], {})[event["ph"]] = slices[event["pid"], event["tid"], event["ts"]]
    assert sorted((arrow["s"], arrow["f"]) for arrow in arrows.values()) == [
        ("cudaGraphLaunch", "add"),
        ("cudaLaunchKernel", "gemm"),
        ("cudaMemcpyAsync", "Memcpy HtoD"),
    ]


def test_memory_and_metrics_are_counters(tmp_path: Path) -> None:
    trace = export(tmp_path, PICTURE, cuda=CUDA)
    names = named(trace)
    found = [
        (names[e["pid"], None], e["name"], e["ts"], e["args"]["value"])
        for e in trace["traceEvents"]
        if e["ph"] == "C"
    ]
    assert found == [
        ("python", "GPU 0 memory (Device) (bytes)", 0, 4096),
        ("python", "GPU 0 memory (Device) (bytes)", 8, 0),
        ("GPU 0 metrics", "SM Active (%)", 0, 0),
        ("GPU 0 metrics", "SM Active (%)", 5, Decimal("55.5")),
    ]


@settings(max_examples=examples(8), deadline=None)
@given(
    work=st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 60), st.integers(4, 30), st.integers(1, 9)),
        max_size=25,
    ),
    most=st.integers(1, 4),
)
def test_any_pieces_make_the_same_picture(
    work: list[tuple[str, int, int, int]], most: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    calls = "main:api |(graph#1                      )(launch#2     )(copy#3)\nmain:api | (inner#4   )  (inner#5 )"
    lines = [
        f"gpu0.{stream} |{' ' * start}({'HtoD' if label % 3 == 0 else 'k'}#{label}{' ' * length})"
        for stream, start, length, label in (
            (1 if name == "a" else 2, start, length, label) for name, start, length, label in work
        )
    ]
    picture = "\n".join([calls, *lines])
    whole = export(tmp_path_factory.mktemp("whole"), picture)["traceEvents"]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chrome_cuda, "_AT_ONCE", most)
        pieces = export(tmp_path_factory.mktemp("pieces"), picture)["traceEvents"]
    key = str
    assert sorted(pieces, key=key) == sorted(whole, key=key)
    done = [event for event in whole if event["ph"] == "X" and event["cat"] in ("cuda_kernel", "cuda_memcpy")]
    assert len(done) == len(work)
    shown: dict[tuple[int, int], list[tuple[Decimal, Decimal]]] = {}
    for event in done:
        shown.setdefault((event["pid"], event["tid"]), []).append((event["ts"], event["ts"] + event["dur"]))
    for spans in shown.values():
        ordered = sorted(spans)
        assert all(first[1] <= second[0] for first, second in pairwise(ordered)), (
            "what overlaps is on rows of its own"
        )
    called = {label for *_, label in work} & {1, 2, 3, 4, 5}
    assert (
        sum(event["ph"] == "f" for event in whole)
        == sum(event["ph"] == "s" for event in whole)
        == len(called)
    )
