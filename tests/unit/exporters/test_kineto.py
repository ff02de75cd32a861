"""The Kineto export: what tools for PyTorch's traces look for, and the way back through our own importer."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.support.reports import kineto_trace
from warplens import catalog
from warplens.cli.group import commands
from warplens.errors import UsageError
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report
from warplens.testing.timeline import timeline

pytestmark = pytest.mark.slow


PICTURE = """
    main         |[step                  ][step                  ]  !here
    main@pytorch | [aten::mm  ]            [aten::mm  ]
    main:api     |  (cudaLaunchKernel#1)(cudaMemcpyAsync#2 )(cudaStreamSynchronize )
    gpu0.7       |        (gemm#1  )         (HtoD#2  )(memset )
    :sync        |                                          (Stream )
    main:call    | (forward )
"""
CUDA: dict[str, Any] = {
    "gemm": {"grid_x": 8, "block_x": 128, "demangled": 'void "gemm"<float>(int)', "registers": 40},
    "#2": {"bytes": 18_000, "source_kind": "Pinned", "destination_kind": "Device"},
    "gpu0": {"name": "H100"},
}


def export(report: Report, out: Path, **options: Any) -> dict[str, Any]:
    catalog.find("exporters.formats", "kineto").load().write(report, out, **options)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return found


def drawn(tmp_path: Path, picture: str = PICTURE, **options: Any) -> Report:
    timeline(tmp_path / "r.warplens", picture, cuda=CUDA, **options)
    return open_report(tmp_path / "r.warplens")


def test_events_are_as_the_profiler_of_pytorch_writes_them(tmp_path: Path) -> None:
    trace = export(drawn(tmp_path, ranks={"": 3}, realtime_offset=5), tmp_path / "out.json")
    assert trace["distributedInfo"] == {"backend": "nccl", "rank": 3, "world_size": 4}
    assert [(device["id"], device["name"]) for device in trace["deviceProperties"]] == [(0, "H100")]
    assert trace["baseTimeNanoseconds"] == 1_000_000_005
    events = trace["traceEvents"]
    by_category: dict[str, list[dict[str, Any]]] = {}
    for event in events:
        if event["ph"] == "X":
            by_category.setdefault(event["cat"], []).append(event)
    names = {category: [event["name"] for event in found] for category, found in by_category.items()}
    assert names == {
        "user_annotation": ["step", "step", "ProfilerStep#0", "ProfilerStep#1"],
        "cpu_op": ["aten::mm", "aten::mm"],
        "cuda_runtime": ["cudaLaunchKernel", "cudaMemcpyAsync", "cudaStreamSynchronize"],
        "kernel": ['void "gemm"<float>(int)'],
        "gpu_user_annotation": ["step"],
        "gpu_memcpy": ["Memcpy HtoD (Pinned -> Device)"],
        "gpu_memset": ["Memset (Device)"],
        "cuda_sync": ["Stream Sync"],
        "python_function": ["/app.py(1): forward"],
    }
    (kernel,), call, op = by_category["kernel"], by_category["cuda_runtime"][0], by_category["cpu_op"][0]
    assert (kernel["pid"], kernel["tid"], kernel["ts"], kernel["dur"]) == (0, 7, 8.0, 10.0)
    assert (kernel["args"]["grid"], kernel["args"]["block"], kernel["args"]["registers per thread"]) == (
        [8, 1, 1],
        [128, 1, 1],
        40,
    )
    assert kernel["args"]["correlation"] == call["args"]["correlation"]
    assert kernel["args"]["External id"] == call["args"]["External id"] == op["args"]["External id"]
    arrows = [(event["ph"], event["id"]) for event in events if event.get("cat") == "ac2g"]
    assert {("s", 1), ("f", 1), ("s", 2), ("f", 2)} <= set(arrows)


def test_details_of_operations_come_back(tmp_path: Path) -> None:
    inputs = {
        "Input Dims": [[2, 3], []],
        "Input Strides": [[3, 1], []],
        "Input type": ["float", "Scalar"],
        "Concrete Inputs": ["", "1.5"],
    }
    events = [
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "aten::mul",
            "pid": 7,
            "tid": 7,
            "ts": 1,
            "dur": 3,
            "args": {**inputs, "Sequence number": 4},
        },
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "MulBackward0",
            "pid": 7,
            "tid": 8,
            "ts": 6,
            "dur": 3,
            "args": {"Sequence number": 4, "Fwd thread id": 1},
        },
    ]
    text = json.dumps({"schemaVersion": 1, "traceEvents": events})
    (tmp_path / "in.json").write_text(text, encoding="utf-8")
    import_file(tmp_path / "in.json", tmp_path / "a.warplens")
    with open_report(tmp_path / "a.warplens") as report:
        written = export(report, tmp_path / "out.json")["traceEvents"]
    forward, backward = (event for event in written if event.get("cat") == "cpu_op")
    assert {name: forward["args"][name] for name in inputs} == inputs
    assert backward["args"]["Fwd thread id"] == forward["tid"] == 7
    assert [
        (event["ph"], event["tid"], event["ts"]) for event in written if event.get("cat") == "fwdbwd"
    ] == [("s", 7, 0), ("f", 8, 5)]
    import_file(tmp_path / "out.json", tmp_path / "b.warplens")
    with open_report(tmp_path / "b.warplens") as again:
        facts = "SELECT o.name, f.name AS forward, o.strides, o.concrete FROM ops o LEFT JOIN ops f ON o.forward = f.range ORDER BY o.start"
        assert [row["forward"] for row in again.sql(facts).to_pylist()] == [None, "aten::mul"]
        assert json.loads(again.sql(facts).to_pylist()[0]["strides"]) == inputs["Input Strides"]


def test_each_rank_has_a_file(tmp_path: Path) -> None:
    drawn(tmp_path, "p1/gpu0.1 |(a )\np2/gpu0.1 |(b )", ranks={"p1": 0, "p2": 1}).close()
    words = [
        "export",
        "-t",
        "kineto",
        "-o",
        str(tmp_path / "run.pt.trace.json"),
        str(tmp_path / "r.warplens"),
    ]
    assert CliRunner().invoke(commands, words).exit_code == 0
    names = {
        path.name: json.loads(path.read_text(encoding="utf-8"))["distributedInfo"]["rank"]
        for path in tmp_path.glob("run.*")
    }
    assert names == {"run.rank0.pt.trace.json": 0, "run.rank1.pt.trace.json": 1}
    assert "exists; -f replaces it" in str(CliRunner().invoke(commands, words).exception)
    import_file(tmp_path, tmp_path / "again.warplens")  # the folder is that report again


def test_a_trace_of_one_process_says_which(tmp_path: Path) -> None:
    report = drawn(tmp_path, "p1/gpu0.1 |(a )\np2/gpu0.1 |(b )", ranks={"p1": 0, "p2": 1})
    with pytest.raises(
        UsageError, match=r"2 processes .* used a GPU.*pid=…. \(100 \(rank 0\), 101 \(rank 1\)\)"
    ):
        export(report, tmp_path / "out.json")
    trace = export(report, tmp_path / "out.json", pid=101)
    assert [event["name"] for event in trace["traceEvents"] if event.get("cat") == "kernel"] == ["b"]
    with pytest.raises(UsageError, match="no process 7"):
        export(report, tmp_path / "out.json", pid=7)


def test_an_exported_report_comes_back(tmp_path: Path) -> None:
    before = drawn(tmp_path)
    export(before, tmp_path / "out.json")
    import_file(tmp_path / "out.json", tmp_path / "again.warplens")
    after = open_report(tmp_path / "again.warplens")
    moved = before.origin - after.origin
    for table, columns in (
        ("kernels", "demangled, grid_x, block_x, registers, device, stream, correlation"),
        ("memcpys", "kind, bytes, source_kind, destination_kind, device, stream, correlation"),
        ("memsets", "bytes, device, stream"),
        ("cuda_api", "name, api, correlation"),
        ("nvtx_ranges WHERE message NOT LIKE 'Profiler%'", "message, domain"),
    ):
        text = (
            f'SELECT "start" + {{}} AS "start", "end" - "start" AS took, {columns} FROM {table} ORDER BY ALL'
        )
        assert after.sql(text.format(moved)).to_pylist() == before.sql(text.format(0)).to_pylist(), table
    launched = "SELECT k.demangled, a.name, r.message FROM kernels k JOIN cuda_api a ON k.api = a.id JOIN nvtx_ranges r ON a.range = r.id"
    assert after.sql(launched).to_pylist() == before.sql(launched).to_pylist()
    steps = "SELECT message FROM nvtx_ranges WHERE message LIKE 'ProfilerStep%' ORDER BY ALL"
    assert [row["message"] for row in after.sql(steps).to_pylist()] == ["ProfilerStep#0", "ProfilerStep#1"]


def test_names_that_need_escaping(tmp_path: Path) -> None:
    extra = {"a": {"message": 'quote " \\ </script> \n\u2028'}}
    trace = export(drawn(tmp_path, "main |[a ]", extra=extra), tmp_path / "out.json")
    assert 'quote " \\ </script> \n\u2028' in [event["name"] for event in trace["traceEvents"]]


def test_collectives_keep_their_name_group_and_sizes(tmp_path: Path) -> None:
    args = {
        "Collective name": "_allgather_base",
        "dtype": "BFloat16",
        "In msg nelems": 100,
        "Out msg nelems": 800,
        "Group size": 8,
        "Process Group Name": "3",
        "Process Group Ranks": "[0, 1, 2, 3]",
    }
    name = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
    trace = kineto_trace.write(
        tmp_path / "in.json",
        [
            kineto_trace.call("cudaLaunchKernelExC", 20, 5, 1),
            kineto_trace.kernel(name, 60, 30, 1, **args),
        ],
    )
    import_file(trace, tmp_path / "a.warplens")
    with open_report(tmp_path / "a.warplens") as report:
        events = export(report, tmp_path / "out.json")["traceEvents"]
    (kernel,) = (event for event in events if event.get("cat") == "kernel")
    kept = {key: kernel["args"].get(key) for key in args}
    assert kept == {**args, "Collective name": "all_gather"}  # the name that all frameworks share
