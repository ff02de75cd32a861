"""What GPUs did per column of a timeline: unions, not sums, and one row for each stream and kind of copy."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from warplens.analysis.gpu.occupancy import api_cells, api_threads, gpu_cells, gpu_rows, shares, utilization
from warplens.analysis.intervals import union
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
    main:api |(cudaLaunchKernel#1 )  (cudaFree)
    main:api |  (cuLaunchKernel )
    gpu0.7   |     (gemm#1  )
    gpu0.9   |       (add     )  (HtoD    )
    gpu0.9   |                      (DtoH )
    p1/gpu0.7|(x )
"""


def test_rows_and_their_columns(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE, tick_ns=10, origin=0)
    report = open_report(tmp_path / "r.warplens")
    window = (0, 400)
    rows = gpu_rows(report, window)
    assert [
        (row.process, row.device, row.context, row.stream, row.what, row.number, row.busy) for row in rows
    ] == [
        (0, 0, 1, 7, None, 1, 100),
        (0, 0, 1, 9, None, 1, 100),
        (0, 0, None, None, "Host-to-Device", 1, 100),
        (0, 0, None, None, "Device-to-Host", 1, 70),
        (1, 0, 1, 7, None, 1, 40),
    ]
    cells = [
        (row["thread"], row["col"], round(row["busy"], 3), row["top"]["message"])
        for row in gpu_cells(report, window, 4, rows).to_pylist()
    ]
    assert cells == [
        (0, 0, 0.5, "gemm"),
        (0, 1, 0.5, "gemm"),
        (1, 0, 0.3, "add"),
        (1, 1, 0.7, "add"),
        (2, 1, 0.1, "HtoD"),
        (2, 2, 0.9, "HtoD"),
        (3, 2, 0.7, "DtoH"),
        (4, 0, 0.4, "x"),
    ]


def test_overlapping_work_is_busy_once(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE, tick_ns=10, origin=0)
    report = open_report(tmp_path / "r.warplens")
    found = utilization(report, (0, 400), 4)
    assert {key: value.round(3).tolist() for key, value in found.items()} == {
        (0, 0): [0.5, 0.8, 0.9, 0],
        (1, 0): [0.4, 0, 0, 0],
    }


def test_calls_within_calls_are_left_out(tmp_path: Path) -> None:
    timeline(tmp_path / "r.warplens", PICTURE, tick_ns=10, origin=0)
    report = open_report(tmp_path / "r.warplens")
    assert list(api_threads(report, (0, 400))) == [(0, 0)]
    cells = [
        (row["col"], row["number"], row["top"]["message"])
        for row in api_cells(report, (0, 400), 4, [0]).to_pylist()
    ]
    assert cells == [
        (0, 1, "cudaLaunchKernel"),
        (1, 1, "cudaLaunchKernel"),
        (2, 2, "cudaFree"),
        (3, 1, "cudaFree"),
    ]


@given(st.lists(st.tuples(st.integers(-50, 450), st.integers(1, 120)), max_size=20), st.integers(1, 50))
def test_shares_are_those_of_counted_nanoseconds(spans: list[tuple[int, int]], columns: int) -> None:
    begin, end = 0, 50 * columns
    covered = np.zeros(700 + end, bool)
    for start, length in spans:
        covered[100 + start : 100 + start + length] = True
    wanted = covered[100 : 100 + end].reshape(columns, 50).mean(axis=1)
    first, last = union([start for start, _ in spans], [start + length for start, length in spans])
    assert shares(first, last, (begin, end), columns).tolist() == pytest.approx(wanted.tolist())
