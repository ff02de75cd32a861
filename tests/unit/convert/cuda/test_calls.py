"""API calls: their threads, the ranges around them, and the work that they asked for."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from tests.unit.convert.cuda.spools import DRIVER, GEMM, PLAIN, RUNTIME, STEP, api, report, work
from warplens.testing import spool_writer as sw


def test_a_call_becomes_a_row(tmp_path: Path) -> None:
    found = report(
        tmp_path, {"cuda_api": [api(7, 2_000, 2_100, result=3), api(5, 1_000, 1_500, name=DRIVER, domain=1)]}
    )
    assert found.columns(
        "cuda_api", "id", "start", "end", "api", "name", "result", "correlation", "range"
    ) == [
        (0, 1_000, 1_500, "driver", "cuLaunchKernel", 0, 5, None),
        (1, 2_000, 2_100, "runtime", "cudaLaunchKernel", 3, 7, None),
    ]


def test_only_the_version_of_the_runtime_is_cut_off(tmp_path: Path) -> None:
    texts = {1: "cudaLaunchKernel_ptsz_v7000", 2: "cuMemAlloc_v2", 3: "cuCtxSynchronize"}
    calls = [api(number, 1_000 * number, 1_000 * number + 1, name=number) for number in (1, 2, 3)]
    found = report(tmp_path, {"cuda_api": [*calls, api(4, 4_000, 4_001, name=99)]}, texts=texts)
    assert [row["name"] for row in found["cuda_api"]] == [
        "cudaLaunchKernel_ptsz",
        "cuMemAlloc_v2",
        "cuCtxSynchronize",
        "(unknown)",
    ]


def test_work_leads_to_its_call(tmp_path: Path) -> None:
    calls = [api(correlation, 1_000 + correlation, 1_100 + correlation) for correlation in (30, 10, 20)]
    found = report(
        tmp_path,
        {
            "cuda_api": calls,
            "cuda_kernel": [
                work(20, 5_000, 5_001),
                work(0, 5_002, 5_003),
                work(99, 5_004, 5_005),
                work(30, 4_000, 4_001),
            ],
        },
    )
    assert [row["correlation"] for row in found["cuda_api"]] == [10, 20, 30]
    assert found.columns("kernels", "id", "start", "api", "correlation") == [
        (0, 4_000, 2, 30),
        (1, 5_000, 1, 20),
        (2, 5_002, None, None),
        (3, 5_004, None, 99),
    ]


def test_of_calls_within_each_other_it_is_the_outer_one(tmp_path: Path) -> None:
    inner, outer = api(1, 1_000, 1_050, name=DRIVER, domain=1), api(1, 1_000, 1_100)
    control = sw.control([(100, 0, 1, 0, 0)], cuda_flags=1 | 2)
    found = report(
        tmp_path, {"cuda_api": [inner, outer], "cuda_kernel": [work(1, 2_000, 2_001)]}, control=control
    )
    assert found.columns("cuda_api", "id", "api") == [(0, "runtime"), (1, "driver")]
    assert found["kernels"][0]["api"] == 0


@pytest.mark.parametrize("spread", [1, 1 << 20])
def test_correlations_close_together_and_far_apart(tmp_path: Path, spread: int) -> None:
    chance = random.Random(spread)
    numbers = [1 + spread * number for number in range(300)]
    calls = [
        api(correlation, 1_000 + 10 * place, 1_005 + 10 * place) for place, correlation in enumerate(numbers)
    ]
    chance.shuffle(calls)
    wanted = {correlation: place for place, correlation in enumerate(numbers)}
    asked = [chance.choice([*numbers, 2 + spread * 500]) for _ in range(200)]
    found = report(
        tmp_path,
        {
            "cuda_api": calls,
            "cuda_memset": [work(number, 9_000 + place, 9_500) for place, number in enumerate(asked)],
        },
    )
    assert [row["api"] for row in found["memsets"]] == [wanted.get(number) for number in asked]


def test_threads_are_those_that_nvtx_saw_and_new_ones(tmp_path: Path) -> None:
    about = [
        sw.meta("thread", thread=0, tid=10, start=1_000),
        sw.meta("thread", thread=3, tid=12, start=900),
        sw.meta("thread_name", STEP, tid=44),
    ]
    calls = [
        api(1, 500, 510, tid=10),
        api(2, 600, 610, tid=44),
        api(3, 700, 710, tid=12),
        api(4, 800, 810, tid=44),
    ]
    found = report(tmp_path, {"cuda_api": calls}, sw.records(sw.NO_THREAD, about))
    assert [row["thread"] for row in found["cuda_api"]] == [0, 4, 3, 4]
    assert found.columns("threads", "thread", "tid", "name", "start") == [
        (0, 10, None, 500),
        (3, 12, None, 700),
        (4, 44, "step", 600),
    ]


def test_threads_without_another_name_have_that_of_the_system(tmp_path: Path) -> None:
    about = [
        sw.meta("thread", thread=0, tid=10, start=1_000),
        sw.meta("thread", DRIVER, thread=1, tid=11, start=1_000),
        sw.meta("thread", thread=2, tid=12, start=1_000),
        sw.meta("thread_name", STEP, tid=12),
        sw.meta("thread", thread=3, tid=13, start=1_000),
        sw.meta("thread", thread=4, tid=13, start=5_000),
    ]
    calls = [
        api(number, 100 * number + 5_000, 100 * number + 5_001, tid=9 + number) for number in range(1, 6)
    ]
    named = [{"name": PLAIN, "start": 100 * number + 5_000, "tid": 9 + number} for number in range(1, 8)]
    found = report(
        tmp_path,
        {"cuda_api": calls, "cuda_thread": [*named, {"name": RUNTIME, "start": 1, "tid": 14}]},
        sw.records(sw.NO_THREAD, about),
    )
    texts = ["plain_kernel", "cuLaunchKernel", "step", None, "plain_kernel", "plain_kernel"]
    assert found.columns("threads", "tid", "name") == list(zip([10, 11, 12, 13, 13, 14], texts, strict=True))
    assert not found.notes("spool-damaged")


def test_a_system_id_that_is_used_again_is_another_thread(tmp_path: Path) -> None:
    about = [
        sw.meta("thread", thread=0, tid=10, start=1_000),
        sw.meta("thread", thread=1, tid=10, start=5_000),
    ]
    calls = [api(1, 500, 510), api(2, 4_999, 5_001), api(3, 5_000, 5_010), api(4, 9_000, 9_001)]
    found = report(tmp_path, {"cuda_api": calls}, sw.records(sw.NO_THREAD, about))
    assert [row["thread"] for row in found["cuda_api"]] == [0, 0, 1, 1]


def test_the_range_around_a_call_is_the_innermost_of_its_thread(tmp_path: Path) -> None:
    ranges = [(1_000, 9_000), (2_000, 3_000), (2_200, 2_200), (2_500, 2_600), (4_000, 5_000)]
    mine = [sw.event("range", start, end, STEP) for start, end in ranges]
    other = [sw.event("range", 1_500, 8_000, STEP)]
    loose = [sw.event("start_end", 2_100, 8_500, STEP)]
    about = [sw.meta("thread", thread=0, tid=10, start=1), sw.meta("thread", thread=1, tid=11, start=1)]
    times = (999, 1_000, 2_000, 2_200, 2_550, 2_600, 3_000, 4_500, 9_000)
    calls = [api(place + 1, time, time + 1_000) for place, time in enumerate(times)]
    found = report(
        tmp_path,
        {"cuda_api": [*calls, api(90, 2_501, 2_502, tid=11)]},
        sw.records(sw.NO_THREAD, about),
        sw.records(0, mine + loose),
        sw.records(1, other),
    )
    starts = dict(found.columns("nvtx_ranges", "id", "start"))
    around = {(row["start"], row["thread"]): starts.get(row["range"]) for row in found["cuda_api"]}
    assert [around[time, 0] for time in times] == [
        None,
        1_000,
        2_000,
        2_000,
        2_500,
        2_000,
        1_000,
        4_000,
        None,
    ]
    assert around[2_501, 1] == 1_500


def test_ranges_around_calls_as_a_slow_search_finds_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("warplens.convert.following.ROWS_PER_SLICE", 64)  # many slices
    chance = np.random.default_rng(5)
    chunks = [
        sw.records(
            sw.NO_THREAD, [sw.meta("thread", thread=thread, tid=10 + thread, start=1) for thread in range(3)]
        )
    ]
    spans: dict[int, list[tuple[int, int]]] = {}
    for thread in range(3):
        begins = np.unique(chance.integers(1_000, 100_000, 200))
        spans[thread] = [(int(begin), int(begin + chance.integers(0, 5_000))) for begin in begins]
        chunks.append(
            sw.records(
                thread,
                [sw.event("range", *span, STEP) for span in sorted(spans[thread], key=lambda span: span[1])],
            )
        )
    calls = [
        api(1 + number, int(time), int(time) + 5, tid=10 + int(tid))
        for number, (time, tid) in enumerate(chance.integers([900, 0], [110_000, 4], (500, 2)))
    ]
    found = report(tmp_path, {"cuda_api": calls}, *chunks)
    starts = dict(found.columns("nvtx_ranges", "id", "start"))
    for row in found["cuda_api"]:
        around = [begin for begin, end in spans.get(row["thread"], []) if begin <= row["start"] < end]
        assert starts.get(row["range"]) == max(around, default=None), row


def test_corrected_clocks_move_everything(tmp_path: Path) -> None:
    # The counter's conversion runs 10 % slow against the log.
    log = "".join(
        f'{{"counter": {time}, "monotonic": {time + time // 10}, "realtime": {time}}}\n'
        for time in (1_000_000, 2_000_000, 3_000_000)
    )
    wide = {
        "cuda_api": [api(1, 1_500_000, 1_600_000)],
        "cuda_kernel": [work(1, 2_000_000, 3_000_000, name=GEMM)],
    }
    ranges = sw.records(0, [sw.event("range", 1_490_000, 1_700_000, STEP)])
    about = sw.records(sw.NO_THREAD, [sw.meta("thread", thread=0, tid=10, start=1_000_000)])
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "clocks.jsonl").write_text(log)
    found = report(tmp_path, wide, about, ranges, clock=(1, 0, 0, 0, 1))
    assert found.columns("cuda_api", "start", "end", "range") == [(1_650_000, 1_760_000, 0)]
    assert found.columns("kernels", "start", "end") == [(2_200_000, 3_300_000)]


def test_impossible_times_are_left_out_and_counted(tmp_path: Path) -> None:
    bad = [(0, 10), (20, 10), (1 << 63, 1 << 63), (10, 1 << 63)]
    wide = {
        "cuda_api": [*(api(1 + place, *times) for place, times in enumerate(bad)), api(9, 100, 200)],
        "cuda_kernel": [*(work(9, *times) for times in bad), work(9, 150, 300)],
    }
    found = report(tmp_path, wide)
    assert [row["start"] for row in found["cuda_api"]] == [100]
    assert [row["start"] for row in found["kernels"]] == [150]
    (note,) = found.notes("damaged-records")
    assert note["count"] == 8


def test_work_before_its_call_is_told(tmp_path: Path) -> None:
    found = report(
        tmp_path,
        {
            "cuda_api": [api(1, 5_000, 6_000, name=RUNTIME)],
            "cuda_kernel": [work(1, 2_000, 2_100), work(1, 5_000, 5_100)],
        },
    )
    (note,) = found.notes("gpu-before-launch")
    assert note["count"] == 1
    assert "3,000 ns" in note["message"]
