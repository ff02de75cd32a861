"""The rules that nsys has too, each on drawn timelines where it fires, where it is silent, and where it cannot judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.rules.asking import ORIGIN, US, ask, costs, drawn, looped, not_judged, one
from warplens.report import Selection

pytestmark = pytest.mark.slow


# The host waits (21 to 53) until the GPU is done (51), and only then launches what the GPU could have begun at once (76).
WAIT = """
main:api |(cudaLaunchKernel#1 )(cudaDeviceSynchronize#2       )          (cudaLaunchKernel#3)
gpu0.7   |            (gemm#1                               )                         (gemm#3 )
"""
NO_WAIT = """
main:api |(cudaLaunchKernel#1 )(cudaLaunchKernel#3)                (cudaDeviceSynchronize#2)
gpu0.7   |            (gemm#1                         )(gemm#3                    )
"""
ONLY_HOST = "main |[step ]"
CALLED = ("cuda_memcpy_async", "cuda_memcpy_sync", "cuda_memset_sync", "cuda_api_sync")


@pytest.mark.parametrize("rule", [*CALLED, "gpu_gaps", "gpu_time_util"])
def test_without_a_gpu_they_do_not_judge(tmp_path: Path, rule: str) -> None:
    assert not_judged(drawn(tmp_path, ONLY_HOST), rule) == "does not contain CUDA kernel or GPU memory data."


@pytest.mark.parametrize("rule", CALLED)
def test_without_calls_they_do_not_judge(tmp_path: Path, rule: str) -> None:
    assert not_judged(drawn(tmp_path, "gpu0.7 |(gemm ) (HtoD )"), rule) == "does not contain CUDA API data."


def test_cuda_api_sync_costs_the_idle_time_after_it(tmp_path: Path) -> None:
    finding = one(drawn(tmp_path, WAIT), "cuda_api_sync")
    assert costs(finding) == (25, 24)
    assert (finding.subject, finding.occurrences, finding.severity) == ("cudaDeviceSynchronize", 1, "high")
    (row,) = finding.evidence
    assert (row.table, row.start - ORIGIN, row.end - ORIGIN, dict(row.values)) == (
        "cuda_api",
        21 * US,
        53 * US,
        {"gpu_idle_ns": 25 * US},
    )
    assert row.text == "GPU idle for 25.0 us after cudaDeviceSynchronize"


def test_cuda_api_sync_at_the_end_is_no_mistake(tmp_path: Path) -> None:
    assert ask(drawn(tmp_path, NO_WAIT), "cuda_api_sync") == []


def test_cuda_api_sync_without_waiting_wins_nothing(tmp_path: Path) -> None:
    picture = """
    main:api |(cudaLaunchKernel#1 )             (cudaStreamSynchronize#2)          (cudaLaunchKernel#3)
    gpu0.7   |            (gemm#1             )                                                    (gemm#3 )
    """
    assert ask(drawn(tmp_path, picture), "cuda_api_sync") == []


def test_a_wait_makes_up_for_later_idle_time_once(tmp_path: Path) -> None:
    # The first call waits 25, and 4 are lost up to the next; that waits for nothing, but behind it the host is late by more.
    picture = """
    main:api |(cudaLaunchKernel#1 )(cudaStreamSynchronize#2)(cuLaunchKernel#3)(cudaStreamSynchronize#4)(cuLaunch#5)
    gpu0.7   |         (gemm#1                 )(memset )(memset )(gemm#3)                                    (gemm#5)
    """
    finding = one(drawn(tmp_path, picture), "cuda_api_sync")
    assert costs(finding) == (25, 4)


def test_calls_within_calls_count_once(tmp_path: Path) -> None:
    nested = """
    main:api |                      (cuCtxSynchronize#9           )
    """
    finding = one(drawn(tmp_path, WAIT + nested), "cuda_api_sync")
    assert (finding.subject, finding.occurrences) == ("cudaDeviceSynchronize", 1)


def test_idle_time_of_two_ranks_at_once_counts_once(tmp_path: Path) -> None:
    both = "".join(f"{rank}/{line}\n" for rank in ("a", "b") for line in WAIT.strip().splitlines())
    finding = one(drawn(tmp_path, both), "cuda_api_sync")
    assert (costs(finding), finding.occurrences) == ((25, 24), 2)


# The picture is the same whatever the names.
COPY = """
main:api |(cudaLaunchKernel#1 )({api:<18} )    (cudaLaunchKernel#3)
gpu0.7   |            (gemm#1         )({copy:<9} )                (gemm#3 )
"""
PINNED = {"source_kind": "Pinned", "destination_kind": "Pinned"}


def copied(tmp_path: Path, api: str, copy: str, **columns: Any) -> Any:
    return drawn(
        tmp_path, COPY.format(api=f"{api}#2", copy=f"{copy}#2"), cuda={copy: {"bytes": 1 << 20, **columns}}
    )


@pytest.mark.parametrize(
    ("rule", "api", "most"),
    [("cuda_memcpy_async", "cudaMemcpyAsync", 21), ("cuda_memcpy_sync", "cudaMemcpy", 16)],
)
def test_copies_that_wait(tmp_path: Path, rule: str, api: str, most: int) -> None:
    report = copied(tmp_path, api, "DtoH")
    finding = one(report, rule)
    # the host waited from 21 to 42, the GPU had nothing to do from 41 to 57; the copy of 11 us could be faster
    assert costs(finding) == (most, 16)
    assert (finding.occurrences, finding.evidence[0].values["bytes"]) == (1, 1 << 20)
    assert "1.00 MiB" in finding.cause
    assert "single value" not in finding.cause


# The host does nothing but copy: the GPU is never idle, and yet both wait.
ONLY_COPIES = """
main:api |(cudaMemcpyAsync#c__                  )
gpu0.7   |(HtoD#c__                              )"""


def test_copies_that_keep_the_gpu_busy_cost_what_faster_ones_would_save(tmp_path: Path) -> None:
    picture = looped(ONLY_COPIES, 6)
    finding = one(drawn(tmp_path, picture, cuda={"HtoD": {"bytes": 1 << 20}}), "cuda_memcpy_async")
    assert costs(finding) == (
        6 * 39,
        6 * 20,
    )  # page-locked memory is twice as fast, where nothing else is known
    assert finding.severity == "high"
    small = drawn(
        tmp_path / "b", picture, cuda={"HtoD": {"bytes": 1 << 10}}
    )  # bound by latency, whatever the memory
    assert ask(small, "cuda_memcpy_async") == []
    locked = {f"#c{number:02}": {"source_kind": "Pinned", "bytes": 16 << 20} for number in range(2)}
    known = drawn(
        tmp_path / "c", picture, cuda={"HtoD": {"bytes": 1 << 20}, **locked}
    )  # 16 times as fast in this run
    assert costs(one(known, "cuda_memcpy_async"))[1] == 4 * 40 * 15 // 16


def test_a_copy_of_one_value_is_named(tmp_path: Path) -> None:
    assert (
        "1 of them brings a single value"
        in one(copied(tmp_path, "cudaMemcpyAsync", "DtoH", bytes=8), "cuda_memcpy_async").cause
    )


@pytest.mark.parametrize(
    ("rule", "api", "copy", "columns"),
    [
        ("cuda_memcpy_async", "cudaMemcpyAsync", "DtoH", PINNED),
        ("cuda_memcpy_async", "cudaMemcpy", "DtoH", {}),
        ("cuda_memcpy_sync", "cudaMemcpyAsync", "DtoH", {}),
        ("cuda_memcpy_sync", "cudaMemcpy", "DtoD", {}),
        ("cuda_memcpy_sync", "cudaMemcpy", "HtoD", {"bytes": 65536}),
        ("cuda_memset_sync", "cudaMemset", "memset", {"memory_kind": "Device"}),
        ("cuda_memset_sync", "cudaMemsetAsync", "memset", {"memory_kind": "Managed"}),
    ],
)
def test_copies_that_do_not_wait(
    tmp_path: Path, rule: str, api: str, copy: str, columns: dict[str, Any]
) -> None:
    assert ask(copied(tmp_path, api, copy, **columns), rule) == []


def test_a_copy_above_64_kb_waits(tmp_path: Path) -> None:
    assert one(copied(tmp_path, "cudaMemcpy", "HtoD", bytes=65537), "cuda_memcpy_sync").occurrences == 1


@pytest.mark.parametrize("kind", ["Pinned", "Managed"])
def test_cuda_memset_sync(tmp_path: Path, kind: str) -> None:
    assert (
        one(copied(tmp_path, "cudaMemset", "memset", memory_kind=kind), "cuda_memset_sync").occurrences == 1
    )


def test_copies_of_unknown_memory_are_not_judged(tmp_path: Path) -> None:
    report = copied(tmp_path, "cudaMemcpyAsync", "DtoH", source_kind=None, destination_kind=None)
    assert not_judged(report, "cuda_memcpy_async") == "does not contain the kinds of memory of its copies."


# Idle from 19 to 43, of which the recording itself took all from 28; and from 50 to 52.
GAPS = """
gpu0.7        |   (gemm )                                 (gemm )  (gemm )
gpu0.8        |   (HtoD          )
main:overhead |                            (Buffer_flush )
"""


def test_gpu_gaps(tmp_path: Path) -> None:
    report = drawn(tmp_path, GAPS, tick_ns=50_000_000)
    assert ask(report, "gpu_gaps") == []
    finding = one(report, "gpu_gaps", gap=90)
    assert (finding.subject, finding.bound, finding.estimate, finding.occurrences) == (
        "GPU 0",
        11 * 50_000_000,
        None,
        2,
    )
    assert [row.end - row.start for row in finding.evidence] == [number * 50_000_000 for number in (9, 2)]


def test_gpu_gaps_of_each_process(tmp_path: Path) -> None:
    picture = """
    a/gpu0.7 |(gemm )                  (gemm )
    b/gpu0.7 |(gemm )   (gemm )   (gemm ) (gemm )
    """
    report = drawn(tmp_path, picture, tick_ns=50_000_000, ranks={"a": 3, "b": 4})
    finding = one(report, "gpu_gaps")
    assert (finding.subject, finding.bound, finding.severity) == ("GPU 0 of rank 3", 18 * 50_000_000, "high")
    assert (finding.evidence[0].table, finding.evidence[0].text) == (
        "kernels",
        "GPU 0 of rank 3 idle until the next kernel",
    )


def test_gpu_gaps_of_a_part(tmp_path: Path) -> None:
    report = drawn(tmp_path, "gpu0.7 |(gemm )                  (gemm )", tick_ns=50_000_000)
    assert ask(report, "gpu_gaps", Selection(time=(0, 20 * 50_000_000))) == []


def test_gpu_time_util(tmp_path: Path) -> None:
    # 0..30, three chunks of ten: full; two kernels at once for two, so 40 %; idle but for one
    picture = """
    gpu0.7 |(gemm    )   ()             ()
    gpu0.8 |             ()
    """
    finding = one(drawn(tmp_path, picture), "gpu_time_util", chunks=3)
    assert costs(finding) == (8 + 8, None)
    (row,) = finding.evidence
    assert (row.start - ORIGIN, row.end - ORIGIN) == (10 * US, 30 * US)
    assert row.values == {"in_use_percent": 30.0}
    assert (
        ask(drawn(tmp_path / "busy", "gpu0.7 |(gemm    )(gemm   ) (gemm )"), "gpu_time_util", chunks=3) == []
    )
