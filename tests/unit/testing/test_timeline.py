"""A drawn timeline is the report it looks like."""

from __future__ import annotations

from pathlib import Path

import pytest

from warplens.report import open as open_report
from warplens.testing.timeline import draw, timeline


def test_a_picture_becomes_a_report(tmp_path: Path) -> None:
    picture = """
        main     |[step        ]  !save
        main     |  [load ]
        main@io  |     [read         ]
        p1/w     |   {async   }
        p1/w     |      {async   }
        p1/w     |            <open
    """
    extra = {"load": {"color": 0xFF, "payload_int": 3, "category": "c", "category_id": 1}}
    timeline(tmp_path / "r.warplens", picture, tick_ns=10, origin=0, extra=extra)
    report = open_report(tmp_path / "r.warplens")
    rows = [
        (
            r["process"],
            r["message"],
            r["domain"],
            r["start"],
            r["end"],
            r["style"],
            r["depth"],
            r["parent"],
            r["unfinished"],
        )
        for r in report.table("nvtx_ranges").to_pylist()
    ]
    assert rows == [
        (0, "step", None, 0, 140, "PushPop", 0, None, False),
        (0, "load", None, 20, 90, "PushPop", 1, 0, False),
        (0, "read", "io", 50, 200, "PushPop", 2, None, False),
        (1, "async", None, 30, 130, "StartEnd", 0, None, False),
        (1, "async", None, 60, 160, "StartEnd", 1, None, False),
        (1, "open", None, 120, 210, "PushPop", 0, None, True),
    ]
    assert [(m["message"], m["start"]) for m in report.table("nvtx_marks").to_pylist()] == [("save", 160)]
    loaded = report.table("nvtx_ranges").to_pylist()[1]
    assert (loaded["color"], loaded["payload_int"], loaded["category"]) == (0xFF, 3, "c")
    assert [row["name"] for row in report.table("threads").to_pylist()] == ["main", "w"]


def test_a_line_needs_a_bar() -> None:
    with pytest.raises(ValueError, match="is `thread"):
        draw("main [step]")


def test_tasks_counters_and_payloads_can_be_drawn(tmp_path: Path) -> None:
    picture = """
        main        |[step        ]  !save
        main#t1     |  {fetch     }
        main#t1     |    [parse]
        main~mem    |0   3   1.5  ?
        w~calls@io  |  7
    """
    timeline(
        tmp_path / "r.warplens",
        picture,
        tick_ns=10,
        origin=0,
        counters={"mem": {"unit": "bytes"}},
        payloads={"step": [{"batch": 3}], "save": ["a.pt"]},
        end_payloads={"fetch": [1]},
    )
    report = open_report(tmp_path / "r.warplens")
    found = [
        (r["message"], r["task"], r["depth"], r["parent"], r["style"])
        for r in report.table("nvtx_ranges").to_pylist()
    ]
    assert found == [
        ("step", None, 0, None, "PushPop"),
        ("fetch", 0, 0, None, "StartEnd"),
        ("parse", 0, 1, 1, "PushPop"),
    ]
    assert [(row["name"], row["thread"], row["start"]) for row in report.table("tasks").to_pylist()] == [
        ("t1", 0, 20)
    ]
    counters = [
        (row["counter"], row["domain"], row["name"], row["type"], row["unit"])
        for row in report.table("nvtx_counters").to_pylist()
    ]
    assert counters == [(0, None, "mem", "float64", "bytes"), (1, "io", "calls", "int64", None)]
    samples = [
        (row["counter"], row["start"], row["value_int"], row["value_float"], row["no_value"])
        for row in report.table("nvtx_counter_samples").to_pylist()
    ]
    assert samples == [
        (0, 0, None, 0.0, None),
        (1, 20, 7, None, None),
        (0, 40, None, 3.0, None),
        (0, 80, None, 1.5, None),
        (0, 130, None, None, "unavailable"),
    ]
    payloads = [
        (row["event_type"], row["event"], row["at_end"], row["json"])
        for row in report.table("payloads").to_pylist()
    ]
    assert payloads == [
        ("mark", 0, False, '"a.pt"'),
        ("range", 0, False, '{"batch": 3}'),
        ("range", 1, True, "1"),
    ]


def test_cuda_can_be_drawn(tmp_path: Path) -> None:
    picture = """
        main          |[step               ]
        main          |  [load        ]
        main:api      |   (cudaLaunchKernel#1)(cuCtxSynchronize )
        gpu0.7        |       (gemm#1   )(HtoD#9 )(memset )(graph#1 )  !3#1
        gpu1.2        |        (gemm    )
        :sync         |                        (Context )
        main:overhead |(Buffer_flush )
        gpu0:memory   |+4096#1  +100  -4096
        gpu0~SM_Active|0    55.5
        p1/w:api      |(cudaFree )
    """
    timeline(
        tmp_path / "r.warplens",
        picture,
        tick_ns=10,
        origin=0,
        cuda={"gemm": {"grid_x": 8}, "#9": {"bytes": 77}},
    )
    report = open_report(tmp_path / "r.warplens")

    def rows(table: str, *columns: str) -> list[tuple[object, ...]]:
        return [tuple(row[name] for name in columns) for row in report.table(table).to_pylist()]

    assert rows("cuda_api", "id", "thread", "start", "end", "api", "name", "correlation", "range") == [
        (0, 0, 30, 230, "runtime", "cudaLaunchKernel", 1, 1),
        (1, 0, 230, 420, "driver", "cuCtxSynchronize", 1_000_000, None),
        (1 << 32, 1 << 24, 0, 110, "runtime", "cudaFree", 1_000_001, None),
    ]
    assert rows(
        "kernels", "id", "device", "context", "stream", "start", "end", "name", "api", "correlation", "grid_x"
    ) == [
        (0, 0, 1, 7, 70, 180, "gemm", 0, 1, 8),
        (1, 1, 2, 2, 80, 180, "gemm", None, None, 8),
    ]
    assert rows("memcpys", "kind", "bytes", "api", "correlation") == [("Host-to-Device", 77, None, 9)]
    assert rows("memsets", "start", "api") == [(270, None)]
    assert rows("graphs", "start", "api") == [(360, 0)]
    assert rows("cuda_events", "start", "event", "api") == [(480, 3, 0)]
    assert rows("syncs", "kind", "start", "end") == [("Context", 240, 340)]
    assert rows("overhead", "kind", "thread") == [("Buffer flush", 0)]
    assert rows("gpu_memory", "operation", "bytes", "total") == [
        ("allocate", 4096, 4096),
        ("allocate", 100, 4196),
        ("free", 4096, 100),
    ]
    assert rows("gpu_metrics", "gpu", "metric", "start", "value") == [
        (0, "SM Active", 0, 0.0),
        (0, "SM Active", 50, 55.5),
    ]
    assert rows("devices", "process", "device") == [(0, 0), (0, 1)]
    assert rows("streams", "context", "stream") == [(2, 2), (1, 7)]
