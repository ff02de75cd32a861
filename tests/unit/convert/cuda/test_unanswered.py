"""Calls that asked for GPU work that never came: told once, and only where something is really missing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.unit.convert.cuda.spools import DRIVER, Finished, api, report, work
from warplens.convert.cuda import unanswered
from warplens.testing import spool_writer as sw

LAUNCH, GRAPH, COPY, SET, BEGIN, END, HOST, DRIVER_LAUNCH = range(20, 28)
TEXTS = {
    DRIVER: "cuLaunchKernel",
    LAUNCH: "cudaLaunchKernelExC_v11060",
    GRAPH: "cudaGraphLaunch_v10000",
    COPY: "cudaMemcpyAsync_v3020",
    SET: "cudaMemsetAsync_v3020",
    BEGIN: "cudaStreamBeginCapture_v10000",
    END: "cudaStreamEndCapture_v10000",
    HOST: "cudaLaunchHostFunc_v10000",
    DRIVER_LAUNCH: "cuLaunchKernelEx",
}
SECOND = 1_000_000_000
WINDOWS = [(100, 0, 1, 0, 0)]
MISSING, LATE = "launches-without-work", "late-work-missing"
UNFLUSHED = "late-records-missing"


def calls(names: Sequence[int], first: int = 1, step: int = 1_000, **more: int) -> list[dict[str, int]]:
    """Calls with the numbers from `first`, one after the other."""
    return [
        api(first + n, 1_000 + (first + n) * step, 1_500 + (first + n) * step, name=name, **more)
        for n, name in enumerate(names)
    ]


def finished(
    tmp_path: Path,
    asked: Sequence[dict[str, int]],
    answered: Sequence[int],
    kind: str = "cuda_kernel",
    **more: Any,
) -> Finished:
    """Finish a spool with calls, of which some have work; the process ended in an orderly way."""
    done = [work(number, 5_000 * SECOND + number, 5_000 * SECOND + number) for number in answered]
    settings = {
        "control": sw.control(WINDOWS, flush_ms=200),
        "end_ns": 9_000 * SECOND,
        "process": {"pid": 10, "start_ns": 100},
        **more,
    }
    wide = {"cuda_api": asked, kind: done} if done else {"cuda_api": asked}
    return report(tmp_path, wide, texts=TEXTS, **settings)


def test_all_that_came_to_nothing_is_counted(tmp_path: Path) -> None:
    asked = calls([LAUNCH, LAUNCH, COPY, GRAPH, SET, LAUNCH, DRIVER_LAUNCH, HOST])
    (row,) = finished(tmp_path, asked, [1]).notes(MISSING)
    assert (row["severity"], row["source"], row["process"], row["count"], row["time"]) == (
        "warning",
        "cuda",
        0,
        6,
        3_000,
    )
    assert "6 calls of process 10" in row["message"]
    assert "(3 kernel launches, 1 graph launches, 1 copies, 1 memory sets)" in row["message"]
    assert "torch.profiler" in row["message"]


@pytest.mark.parametrize("kind", ["cuda_kernel", "cuda_memcpy", "cuda_memset", "cuda_graph"])
def test_any_work_is_an_answer(tmp_path: Path, kind: str) -> None:
    found = finished(tmp_path, calls([LAUNCH, GRAPH, COPY, SET]), [1, 2, 3, 4, 2], kind)
    assert not found.notes(MISSING)


def test_calls_that_failed_or_ask_for_nothing(tmp_path: Path) -> None:
    found = finished(tmp_path, [*calls([LAUNCH, COPY], result=2), *calls([HOST, 99], first=5)], [])
    assert not found.notes(MISSING)


def test_copies_of_nothing_and_empty_graphs(tmp_path: Path) -> None:
    """They have no record where all else is well: not between others, and not at the end where they are few."""
    found = finished(tmp_path, calls([LAUNCH, *[COPY, GRAPH, SET] * 5, LAUNCH, COPY, GRAPH]), [1, 17])
    assert not found.notes(MISSING)


def test_copies_alone_that_come_to_nothing_from_then_on(tmp_path: Path) -> None:
    (row,) = finished(tmp_path, calls([COPY] * 20), [1, 2, 5]).notes(MISSING)
    assert (row["count"], row["time"]) == (15, 7_000)


def test_calls_before_the_first_missing_launch_do_not_count(tmp_path: Path) -> None:
    (row,) = finished(tmp_path, calls([COPY, LAUNCH, COPY, LAUNCH]), [2]).notes(MISSING)
    assert row["count"] == 1


@pytest.mark.parametrize("tid", [10, 11])
def test_launches_into_a_graph(tmp_path: Path, tid: int) -> None:
    """Other threads launch into it, too: those of the backward pass, say."""
    asked = [
        *calls([BEGIN]),
        *calls([LAUNCH, COPY, BEGIN, LAUNCH], first=2, tid=tid),
        *calls([END, LAUNCH, END, LAUNCH, GRAPH], first=6),
    ]
    assert not finished(tmp_path, asked, [9, 10]).notes(MISSING)
    (row,) = finished(tmp_path / "lost", asked, [10]).notes(MISSING)
    assert (row["count"], row["time"]) == (1, 10_000)


def test_a_capture_that_failed_is_over(tmp_path: Path) -> None:
    asked = [
        *calls([BEGIN, LAUNCH]),
        *calls([END], first=3, result=901),
        *calls([END], first=4, result=901),
        *calls([LAUNCH], first=5),
    ]
    assert finished(tmp_path, asked, []).notes(MISSING)[0]["count"] == 1


def test_a_capture_that_a_window_cuts(tmp_path: Path) -> None:
    asked = [*calls([LAUNCH, END, LAUNCH, BEGIN, LAUNCH]), *calls([LAUNCH], first=20)]
    windows = sw.control([(1_900, 7_000, 2, 2, 0), (20_000, 30_000, 2, 2, 0)])
    (row,) = finished(tmp_path, asked, [3], control=windows).notes(MISSING)
    assert (row["count"], row["time"]) == (1, 21_000)


def test_only_what_was_called_within_a_window(tmp_path: Path) -> None:
    asked = calls([LAUNCH] * 4)
    found = finished(tmp_path, asked, [2, 3], control=sw.control([(2_100, 5_200, 2, 2, 0)]))
    assert [row["correlation"] for row in found["cuda_api"]] == [1, 2, 3, 4]
    assert not found.notes(MISSING)


def test_the_runtime_and_the_driver_are_one(tmp_path: Path) -> None:
    inner = [
        {**api(2, 3_010, 3_400, name=DRIVER_LAUNCH), "domain": 1},
        {**api(9, 2_010, 2_400, name=DRIVER_LAUNCH), "domain": 1},
    ]
    asked = [*calls([LAUNCH, LAUNCH, LAUNCH]), *inner]
    everything = sw.control(WINDOWS, cuda_flags=3)
    assert not finished(tmp_path, asked, [1, 2, 3], control=everything).notes(MISSING)
    assert finished(tmp_path / "lost", asked, [1], control=everything).notes(MISSING)[0]["count"] == 2


def test_losses_that_are_told_of_already(tmp_path: Path) -> None:
    asked = calls([LAUNCH] * 5)
    assert not finished(tmp_path, asked, [1], dropped={33: 2, 58: 2}).notes(MISSING)
    assert finished(tmp_path / "more", asked, [1], dropped={33: 2, 58: 1}).notes(MISSING)[0]["count"] == 1


def test_the_cause_where_it_is_known(tmp_path: Path) -> None:
    stolen = [{"notice": 6, "value": 8, "start": 500}]
    wide = {"cuda_api": calls([LAUNCH]), "cuda_notice": stolen}
    (row,) = report(tmp_path, wide, texts=TEXTS, end_ns=9_000, control=sw.control(WINDOWS)).notes(MISSING)
    assert row["message"].endswith("see cupti-stolen")


@pytest.mark.parametrize(("flush_ms", "missing", "late"), [(200, 4, 3), (2_000, 0, 7), (0, 0, 7)])
def test_calls_in_progress_at_a_kill_are_excused(
    tmp_path: Path, flush_ms: int, missing: int, late: int
) -> None:
    """Its last seconds are excused, and all since the last record where CUPTI was never asked for any."""
    asked = calls([LAUNCH] * 10, step=SECOND * 3 // 4)
    found = finished(tmp_path, asked, [1, 2, 3], control=sw.control(WINDOWS, flush_ms=flush_ms), end_ns=0)
    assert [row["count"] for row in found.notes(MISSING)] == ([missing] if missing else [])
    (row,) = found.notes(LATE)
    assert (row["severity"], row["count"]) == ("info", late)
    assert not found.notes(UNFLUSHED)  # it is said already


@pytest.mark.parametrize(
    ("flush_ms", "since"), [(200, "up to the last 200 ms,"), (0, "since CUPTI's buffers were last full,")]
)
def test_a_killed_program_may_lack_its_last_work(tmp_path: Path, flush_ms: int, since: str) -> None:
    """All that is known of it has work; what came after may be in no buffer that was given out."""
    killed = finished(
        tmp_path, calls([LAUNCH]), [1], control=sw.control(WINDOWS, flush_ms=flush_ms), end_ns=0
    )
    (row,) = killed.notes(UNFLUSHED)
    assert (row["severity"], row["source"], row["process"], row["count"]) == ("info", "cuda", 0, None)
    assert since in row["message"]
    assert not killed.notes(LATE)
    assert not finished(tmp_path / "orderly", calls([LAUNCH]), [1]).notes(UNFLUSHED)


@pytest.mark.parametrize("wide", [{"cuda_notice": [{"notice": 1, "start": 500}]}, {}])
def test_without_cuda_recording_no_work_is_missing(tmp_path: Path, wide: Any) -> None:
    assert not report(tmp_path, wide, texts=TEXTS, end_ns=0).notes(UNFLUSHED)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("made", "calls_end", "told", "more"),
    [
        ({"start": 5_000, "handle": 7}, 0, True, {}),
        ({"start": 5_000, "handle": 7}, 4_000, True, {}),
        ({"start": 5_000, "handle": 7}, 6_000, False, {}),  # that call made it
        ({"start": 5_000}, 0, False, {}),  # described at the end
        ({"start": 50, "handle": 7}, 0, False, {}),  # before the window
        ({"start": 5_000, "handle": 7}, 0, False, {"end_ns": 0}),
        ({"start": 5_000, "handle": 7}, 0, False, {"dropped": {32: 1}}),
        ({"start": 5_000, "handle": 7}, 0, False, {"control": sw.control(WINDOWS, cuda_flags=1 | 512)}),
    ],
)
@pytest.mark.parametrize("kind", ["cuda_context", "cuda_stream"])
def test_contexts_that_no_call_made(
    tmp_path: Path, kind: str, made: dict[str, int], calls_end: int, told: bool, more: Any
) -> None:
    """Who takes CUPTI's buffers takes the calls, too; callbacks go on telling."""
    settings = {"control": sw.control(WINDOWS, cuda_flags=1), "end_ns": 9_000, **more}
    recorded = {"cuda_api": [api(1, 3_000, calls_end, name=END)]} if calls_end else {}
    found = report(tmp_path, {kind: [made], **recorded}, texts=TEXTS, **settings).notes("cupti-silent")
    assert [(row["severity"], row["time"]) for row in found] == ([("warning", 5_000)] if told else [])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("cudaLaunchKernel_v7000", unanswered.LAUNCH),
        ("cudaLaunchCooperativeKernel_ptsz_v9000", unanswered.LAUNCH),
        ("__cudaLaunchKernel", unanswered.LAUNCH),
        ("cuLaunchKernelEx", unanswered.LAUNCH),
        ("cuLaunchHostFunc", 0),
        ("cuGraphLaunch", unanswered.GRAPH),
        ("cudaMemcpy2DAsync_v3020", unanswered.COPY),
        ("cuMemcpyHtoDAsync_v2", unanswered.COPY),
        ("cuMemsetD8Async", unanswered.SET),
        ("cuStreamBeginCapture_v2", unanswered.CAPTURE),
        ("cudaGraphAddMemcpyNode_v10000", 0),
        ("cudaMemPrefetchAsync_v8000", 0),
        (None, 0),
    ],
)
def test_each_function_requests_its_kind_of_work(name: str | None, kind: int) -> None:
    assert unanswered.kind_of(name) == kind
