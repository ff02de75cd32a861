"""What is told about the recording of CUDA itself."""

from __future__ import annotations

from pathlib import Path

from tests.unit.convert.cuda.spools import LIBRARY, api, report
from warplens.convert.cuda.notices import cuda_version, cupti_version

NOTICES = [
    (1, 130001, "info", "cuda-recorded", "with CUPTI 13.0 (130001), libx.so"),
    (2, 13000, "info", "cuda-driver", "CUDA up to 13.0"),
    (3, 13000, "warning", "no-cupti", "(CUDA 13.0; searched: libx.so)"),
    (4, 39, "warning", "cupti-busy", "another tool has CUPTI (libx.so; error 39)"),
    (5, 15, "warning", "cupti-failed", "error 15 of libx.so"),
    (6, 2_500_000_000, "warning", "cupti-stolen", "none arrived for 2,500.000 ms"),
    (7, 3_500_000, "warning", "cupti-clock", "off by 3.500 ms: libx.so"),
    (8, 250, "info", "cupti-converted", "an error of 250 ns"),
    (9, 2_000, "warning", "cupti-flush", "within 2,000 ms"),
    (10, 22, "warning", "cupti-too-old", "lacks a requested feature: libx.so"),
    (11, 130000, "info", "cupti-gated", "with CUPTI 13.0 (130000)"),
    (12, 700, "warning", "cupti-finalized", "(libx.so; error 700 of CUPTI)"),
    (99, 5, "info", "cuda-notice", "notice 99, 5 libx.so"),
]


def test_each_notice_becomes_a_sentence(tmp_path: Path) -> None:
    rows = [
        {"notice": notice, "value": value, "name": LIBRARY, "start": 500 + notice}
        for notice, value, *_ in NOTICES
    ]
    found = report(tmp_path, {"cuda_notice": rows})
    for notice, _, severity, code, says in NOTICES:
        (row,) = found.notes(code)
        assert (row["severity"], row["source"], row["time"], row["process"], row["count"]) == (
            severity,
            "cuda",
            500 + notice,
            0,
            None,
        )
        assert says in row["message"]
        assert "process 10" in row["message"]


def test_the_same_notice_is_told_once(tmp_path: Path) -> None:
    rows = [{"notice": 6, "value": value, "start": 500 + value} for value in (1, 2, 3)]
    (row,) = report(tmp_path, {"cuda_notice": rows}).notes("cupti-stolen")
    assert (row["count"], row["time"]) == (3, 501)
    assert "for 3 ns" in row["message"]


def test_nameless_notices_make_sense(tmp_path: Path) -> None:
    found = report(tmp_path, {"cuda_notice": [{"notice": 4, "value": 39}, {"notice": 3}]})
    assert "torch.profiler" in found.notes("cupti-busy")[0]["message"]
    assert "the usual places" in found.notes("no-cupti")[0]["message"]


def test_losses(tmp_path: Path) -> None:
    found = report(
        tmp_path, {"cuda_api": [api(1, 10, 20)]}, dropped={33: 5, 56: 7, 57: 1, 58: 2, 59: 3, 60: 4}, error=28
    )
    (kernels,) = found.notes("dropped-records")
    assert (kernels["source"], kernels["count"]) == ("cuda", 5)
    assert (
        "5 kernels of process 10 were dropped because the spool could not grow: No space left"
        in kernels["message"]
    )
    codes = ["cupti-dropped", "cupti-invalid", "cupti-unfinished", "cupti-unknown", "cupti-repeated"]
    assert [found.notes(code)[0]["count"] for code in codes] == [7, 1, 2, 3, 4]
    assert [found.notes(code)[0]["severity"] for code in codes] == [
        "error",
        "warning",
        "warning",
        "info",
        "info",
    ]


def test_calls_that_wanted_a_backtrace_are_told(tmp_path: Path) -> None:
    found = report(tmp_path, {"cuda_backtrace": [{"start": 1, "end": 2, "correlation": 1}] * 2})
    assert found.notes("no-backtraces")[0]["count"] == 2


def test_versions() -> None:
    assert cupti_version(22) == "CUPTI 22"
    assert cupti_version(130101) == "CUPTI 13.1 (130101)"
    assert cuda_version(12040) == "12.4"
