"""What Python itself did: calls, imports, collections, its lock."""

from __future__ import annotations

from pathlib import Path

from tests.unit.convert.cpu.spools import APP, LOAD, MAIN, NUMPY, VALUE_ERROR, report, span, thread
from warplens.testing import spool_writer as sw

FUNCTION, GC, IMPORT, EXCEPTION, WARNING, POOLED = range(1, 7)


def test_calls_lie_within_one_another(tmp_path: Path) -> None:
    rows = [
        span(FUNCTION, 200, 300, LOAD),
        span(EXCEPTION, 250, 250, VALUE_ERROR, file=APP, line=12),
        span(FUNCTION, 100, 900, file=APP, line=5, color=0xFF00FF00, flags=1),
        span(FUNCTION, 100, 900, LOAD, flags=2),
        span(POOLED, 150, 250, LOAD, tid=11, value=1),
        span(WARNING, 950, 950, VALUE_ERROR),
    ]
    found = report(tmp_path, {"python_span": rows})
    assert found.columns(
        "python_calls", "id", "start", "kind", "name", "depth", "parent", "failed", "clipped"
    ) == [
        (0, 100, "function", "main", 0, None, False, False),
        (1, 100, "function", "load", 1, 0, False, True),
        (2, 150, "task", "load", 0, None, True, False),
        (3, 200, "function", "load", 2, 1, False, False),
        (4, 250, "exception", "ValueError", 3, 3, None, False),
        (5, 950, "warning", "ValueError", 0, None, None, False),
    ]
    assert found.columns("python_calls", "file", "line", "color")[0] == ("/app.py", 5, 0xFF00FF00)
    assert found.columns("python_calls", "file", "line", "color")[1] == (None, None, None)


def test_the_range_around_a_call(tmp_path: Path) -> None:
    ranges = sw.records(0, [sw.event("range", 100, 200, MAIN)])
    found = report(
        tmp_path, {"python_span": [span(FUNCTION, 150, 250), span(FUNCTION, 200, 220)]}, thread(10), ranges
    )
    assert found.columns("python_calls", "range") == [(0,), (None,)]


def test_the_time_that_is_an_imports_own(tmp_path: Path) -> None:
    rows = [
        span(IMPORT, 200, 300, NUMPY),
        span(IMPORT, 220, 260, LOAD, value=1),
        span(IMPORT, 310, 340, LOAD),
        span(IMPORT, 100, 400, MAIN),
        span(IMPORT, 100, 150, NUMPY, tid=11),
    ]
    found = report(tmp_path, {"python_span": rows})
    assert found.columns("imports", "name", "self", "depth", "parent", "failed") == [
        ("main", 170, 0, None, False),
        ("numpy", 50, 0, None, False),
        ("numpy", 60, 1, 0, False),
        ("load", 40, 2, 2, True),
        ("load", 30, 1, 0, False),
    ]


def test_collections(tmp_path: Path) -> None:
    rows = [
        span(GC, 100, 200, 0, value=2, value2=55, line=3),
        span(GC, 300, 310, 0, value=-1, value2=-7),
        span(GC, 400, 410, value=1 << 62),
    ]
    found = report(tmp_path, {"python_span": rows})
    assert found.columns("gc", "start", "end", "generation", "collected", "uncollectable") == [
        (100, 200, 2, 55, 3),
        (300, 310, 0, 0, 0),
        (400, 410, 0x7FFFFFFF, 0, 0),
    ]


def test_the_lock(tmp_path: Path) -> None:
    rows = [
        {"domain": 1, "start": 100, "end": 150, "tid": 10},
        {"domain": 2, "start": 120, "end": 150, "tid": 11, "interpreter": 1},
        {
            "domain": 3,
            "start": 10,
            "end": 90,
            "tid": 10,
            "holds": 5,
            "waits": 2,
            "held_ns": 44,
            "waited_ns": 6,
        },
        {
            "domain": 3,
            "start": 20,
            "end": 90,
            "tid": 10,
            "holds": 0xFFFFFFFF,
            "held_ns": (1 << 64) - 1,
            "interpreter": 0xFFFFFFFF,
        },
        {"domain": 9, "start": 20, "end": 90, "tid": 10},
    ]
    found = report(tmp_path, {"gil": rows})
    assert found.columns("gil", "start", "state", "held", "waited", "holds", "waits", "interpreter") == [
        (10, "brief", 44, 6, 5, 2, 0),
        (20, "brief", 1 << 62, 0, 0xFFFFFFFF, 0, 0x7FFFFFFF),
        (100, "hold", 50, 0, 1, 0, 0),
        (120, "wait", 0, 30, 0, 1, 1),
    ]


def test_threads_of_cuda_and_of_the_cpu_side_are_the_same(tmp_path: Path) -> None:
    """Those that NVTX never saw get one key, whatever table names them first."""
    wide = {
        "cuda_api": [{"start": 500, "end": 600, "tid": 20, "correlation": 1}],
        "python_span": [span(FUNCTION, 100, 200, tid=20), span(IMPORT, 50, 60, tid=21)],
        "cuda_thread": [{"tid": 20, "start": 500, "name": NUMPY}],
    }
    found = report(tmp_path, wide)
    assert found.columns("threads", "tid", "name", "start") == [(20, "numpy", 100), (21, None, 50)]
    assert found["cuda_api"][0]["thread"] == found["python_calls"][0]["thread"]
