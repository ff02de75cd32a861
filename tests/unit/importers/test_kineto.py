"""The importer `kineto` takes over every category of PyTorch's traces, old and new, and Chrome traces of others."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.kineto_trace import (
    AUTOGRAD,
    HOST,
    Event,
    call,
    event,
    gpu,
    kernel,
    op,
    write,
    write_text,
)
from warplens.importers.importing import import_file
from warplens.report import Report
from warplens.report import open as open_report

CARD = {
    "id": 0,
    "name": "NVIDIA H100",
    "totalGlobalMem": 85_018_279_936,
    "computeMajor": 9,
    "computeMinor": 0,
    "numSms": 132,
}
NAMES = [
    {"name": "process_name", "ph": "M", "ts": 0, "pid": HOST, "tid": 0, "args": {"name": "python3"}},
    {"name": "process_labels", "ph": "M", "ts": 0, "pid": HOST, "tid": 0, "args": {"labels": "CPU"}},
    {"name": "process_sort_index", "ph": "M", "ts": 0, "pid": HOST, "tid": 0, "args": {"sort_index": 5}},
    {"name": "process_labels", "ph": "M", "ts": 0, "pid": 0, "tid": 0, "args": {"labels": "GPU 0"}},
    {
        "name": "thread_name",
        "ph": "M",
        "ts": 0,
        "pid": HOST,
        "tid": AUTOGRAD,
        "args": {"name": f"thread {AUTOGRAD} (pt_autograd_0)"},
    },
    {"name": "thread_name", "ph": "M", "ts": 0, "pid": 0, "tid": 7, "args": {"name": "stream 7 "}},
]


def imported(path: Path) -> Report:
    report = path.with_name("out.warplens")
    import_file(path, report)
    return open_report(report)


def trace(folder: Path, events: list[Event] | str, **header: Any) -> Report:
    return imported(write(folder / "run.json", events, **header))


def rows(report: Report, table: str, *columns: str) -> list[Any]:
    """Return the rows of a table: of one column its values, of several tuples."""
    found = [tuple(row.values()) for row in report.table(table, list(columns)).to_pylist()]
    return [row[0] for row in found] if len(columns) == 1 else found


def said(report: Report) -> dict[str, int | None]:
    return {row["code"]: row["count"] for row in report.diagnostics.to_pylist()}


def test_calls_and_what_they_launched(tmp_path: Path) -> None:
    events = [
        *NAMES,
        kernel("void ns::gemm<int>(int)", 110.5, 20.25, 3),
        kernel("lost", 5, 1, 99),
        call("cudaLaunchKernel_v7000", 100.001, 4.002, 3),
        call("cuLaunchKernelEx", 102, 1, 4, "cuda_driver"),
        kernel("_Z4reluPf", 131, 2, 4, stream=9),
        call("cudaMemcpyAsync", 140, 2, 5),
        gpu("gpu_memcpy", "Memcpy HtoD (Pinned -> Device)", 141, 3, 5, bytes=4096),
        gpu("gpu_memset", "Memset (Device)", 145, 1, 6, bytes=64),
        op("aten::mm", 99, 10),
    ]
    report = trace(tmp_path, events, deviceProperties=[CARD], distributedInfo={"rank": 3, "world_size": 8})
    assert rows(report, "cuda_api", "id", "name", "api", "start", "end", "correlation", "range") == [
        (0, "cudaLaunchKernel", "runtime", 100_001, 104_003, 3, 0),
        (1, "cuLaunchKernelEx", "driver", 102_000, 103_000, 4, 0),
        (2, "cudaMemcpyAsync", "runtime", 140_000, 142_000, 5, None),
    ]
    assert rows(report, "kernels", "name", "demangled", "mangled", "start", "end", "stream", "api") == [
        ("lost", "lost", None, 5000, 6000, 7, None),
        ("gemm", "void ns::gemm<int>(int)", None, 110_500, 130_750, 7, 0),
        ("relu", "relu(float*)", "_Z4reluPf", 131_000, 133_000, 9, 1),
    ]
    first = report.table("kernels").to_pylist()[1]
    assert [first[f"{what}_{axis}"] for what in ("grid", "block") for axis in "xyz"] == [8, 2, 1, 128, 1, 1]
    assert (first["registers"], first["dynamic_shared"], first["device"], first["context"]) == (
        32,
        1024,
        0,
        1,
    )
    assert rows(report, "memcpys", "kind", "source_kind", "destination_kind", "bytes", "api") == [
        ("Host-to-Device", "Pinned", "Device", 4096, 2)
    ]
    assert rows(report, "memsets", "memory_kind", "bytes", "api") == [("Device", 64, None)]
    assert rows(report, "processes", "pid", "rank", "name", "start", "end") == [
        (HOST, 3, "python3", 5000, 146_000)
    ]
    assert rows(report, "threads", "tid", "name") == [(HOST, None)]
    assert rows(report, "devices", "device", "name", "compute_major", "multiprocessors", "memory") == [
        (0, "NVIDIA H100", 9, 132, 85_018_279_936)
    ]
    assert rows(report, "streams", "context", "stream") == [(1, 7), (1, 9)]
    assert said(report) == {"no-call": 1}


def test_operations(tmp_path: Path) -> None:
    events = [
        event("user_annotation", "ProfilerStep#4", 0, 1000),
        op(
            "aten::linear",
            10,
            20,
            External_id=1,
            Sequence_number=7,
            Fwd_thread_id=0,
            Input_Dims=[[64, 512], []],
            Input_type=["float", ""],
        ),
        op(
            "aten::addmm",
            12,
            10,
            External_id=2,
            Sequence_number=7,
            Fwd_thread_id=0,
            Input_Dims=[[64, 512], []],
        ),
        op("aten::relu", 40, 5, External_id=3),
        op(
            "autograd::engine::evaluate_function: AddmmBackward0",
            100,
            50,
            tid=AUTOGRAD,
            Sequence_number=7,
            Fwd_thread_id=1,
        ),
        op("aten::mm", 110, 20, tid=AUTOGRAD),
        op("ProfilerStep#5", 1000, 500),
    ]
    report = trace(tmp_path, [*NAMES, *events])
    assert rows(
        report, "ops", "name", "range", "external", "sequence", "forward", "backward", "shapes", "types"
    ) == [
        ("aten::linear", 1, 1, 7, None, False, "[[64,512],[]]", '["float",""]'),
        ("aten::addmm", 2, 2, 7, None, False, "[[64,512],[]]", None),
        ("aten::relu", 3, 3, None, None, False, None, None),
        ("autograd::engine::evaluate_function: AddmmBackward0", 4, None, 7, 2, True, None, None),
        ("aten::mm", 5, None, None, None, True, None, None),
    ]
    assert rows(report, "nvtx_ranges", "message", "domain", "style", "depth", "parent", "end") == [
        ("ProfilerStep#4", None, "PushPop", 0, None, 1_000_000),
        ("aten::linear", "pytorch", "PushPop", 1, 0, 30_000),
        ("aten::addmm", "pytorch", "PushPop", 2, 1, 22_000),
        ("aten::relu", "pytorch", "PushPop", 1, 0, 45_000),
        ("autograd::engine::evaluate_function: AddmmBackward0", "pytorch", "PushPop", 0, None, 150_000),
        ("aten::mm", "pytorch", "PushPop", 1, 4, 130_000),
        ("ProfilerStep#5", None, "PushPop", 0, None, 1_500_000),
    ]
    assert rows(report, "threads", "tid", "name") == [(HOST, None), (AUTOGRAD, "pt_autograd_0")]


def test_arrows_from_the_pass_forward_to_the_one_back(tmp_path: Path) -> None:
    arrow = {"cat": "fwdbwd", "name": "fwdbwd", "pid": HOST, "id": 5}
    events = [
        op("aten::mul", 10, 5),
        op("aten::add", 20, 5),
        op("MulBackward0", 50, 5, tid=AUTOGRAD),
        {"ph": "f", "bp": "e", "tid": AUTOGRAD, "ts": 50, **arrow},
        {"ph": "s", "tid": HOST, "ts": 10, **arrow},
    ]
    assert rows(trace(tmp_path, events), "ops", "name", "forward", "backward") == [
        ("aten::mul", None, False),
        ("aten::add", None, False),
        ("MulBackward0", 0, True),
    ]


def test_python_functions_become_calls_and_stacks(tmp_path: Path) -> None:
    python = "python_function"
    events = [
        event(python, "train.py(3): <module>", 0, 100, args={"Python id": 1, "Python parent id": None}),
        event(
            python,
            "nn.Module: Linear_0",
            10,
            30,
            args={"Python id": 2, "Python parent id": 1, "Python module id": 0},
        ),
        event(python, "train.py(9): step", 50, 40, args={"Python id": 3}),
        event(python, "nn.Module: Linear_0", 55, 10),
        event(python, "train.py(9): step", 92, 5),
        event(python, "threading.py(1): _bootstrap", 1, 50, pid=0, tid=0),
        op("aten::addmm", 57, 2),
        call("cudaLaunchKernel", 58, 1, 1),
        op("aten::relu", 95, 1),
    ]
    report = trace(tmp_path, events)
    assert rows(report, "python_calls", "name", "file", "line", "depth", "parent", "kind")[:4] == [
        ("<module>", "train.py", 3, 0, None, "function"),
        ("_bootstrap", "threading.py", 1, 0, None, "function"),
        ("nn.Module: Linear_0", None, None, 1, 0, "function"),
        ("step", "train.py", 9, 1, 0, "function"),
    ]
    frames = {row["frame"]: row for row in report.table("frames").to_pylist()}

    def stack(frame: int | None) -> list[str]:
        return [] if frame is None else [*stack(frames[frame]["parent"]), frames[frame]["function"]]

    assert sorted(map(stack, frames)) == [
        ["<module>"],
        ["<module>", "nn.Module: Linear_0"],
        ["<module>", "step"],
        ["<module>", "step", "nn.Module: Linear_0"],
        ["_bootstrap"],
    ]
    assert all(row["depth"] == len(stack(frame)) - 1 for frame, row in frames.items())
    assert [stack(frame) for frame in rows(report, "ops", "stack")] == [
        ["<module>", "step", "nn.Module: Linear_0"],
        ["<module>", "step"],
    ]
    assert [stack(frame) for frame in rows(report, "cuda_api", "stack")] == [
        ["<module>", "step", "nn.Module: Linear_0"]
    ]
    assert report.tables["processes"] == 1  # a thread that PyTorch knows nothing of has no ids in the file


def test_collectives(tmp_path: Path) -> None:
    told = {
        "Collective name": "_allgather_base",
        "dtype": "BFloat16",
        "In msg nelems": 100,
        "Out msg nelems": 800,
        "Group size": 8,
        "Process Group Name": "3",
        "Process Group Ranks": "[0, 1, 2, 3]",
        "Seq": 17,
    }
    events = [
        event("cpu_op", "record_param_comms", 10, 50, args={"External id": 5, **told}),
        event("user_annotation", "nccl:_all_gather_base", 12, 40),
        call("cudaLaunchKernelExC", 20, 5, 1),
        kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 60, 30, 1, **told),
        event("cpu_op", "record_param_comms", 100, 5, args={"Collective name": "barrier", "Group size": 8}),
        event("cpu_op", "record_param_comms", 110, 5, args={"Collective name": "wait"}),
        event("user_annotation", "nccl:all_reduce", 200, 20),
        call("cudaLaunchKernel", 205, 5, 2),
        kernel("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", 230, 30, 2),
        kernel("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclWorkElem)", 300, 30, 9),
        kernel("gemm", 400, 30, 9),
    ]
    columns = (
        "name",
        "kernel",
        "start",
        "range",
        "group",
        "group_size",
        "sequence",
        "bytes_in",
        "bytes_out",
        "elements_in",
        "type",
        "peers",
    )
    assert rows(trace(tmp_path, events), "collectives", *columns) == [
        ("all_gather", 0, 60_000, 0, "3", 8, 17, 200, 1600, 100, "BFloat16", "[0, 1, 2, 3]"),
        ("barrier", None, 100_000, 2, None, 8, None, None, None, None, None, None),
        ("all_reduce", 1, 230_000, 4, None, None, None, None, None, None, None, None),
        ("broadcast", 2, 300_000, None, None, None, None, None, None, None, None, None),
    ]


def test_a_trace_of_nothing_but_communication(tmp_path: Path) -> None:
    report = trace(
        tmp_path,
        [kernel("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", 5, 2, 1)],
    )
    assert rows(report, "collectives", "name", "kernel", "range", "end") == [
        ("reduce_scatter", 0, None, 7000)
    ]
    assert rows(report, "processes", "start", "end") == [(5000, 7000)]


def test_memory_of_tensors(tmp_path: Path) -> None:
    memory = {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": HOST, "tid": HOST}
    totals = {"Total Allocated": 2048, "Total Reserved": 4096}
    events = [
        op("aten::empty", 10, 5),
        {
            **memory,
            "ts": 11,
            "args": {"Addr": 139_926_520_725_504, "Bytes": 1024, "Device Type": 1, "Device Id": 2, **totals},
        },
        {**memory, "ts": 20, "args": {"Addr": 4096, "Bytes": -512, "Device Type": 0, "Device Id": -1}},
        {**memory, "ts": 30, "name": "[OutOfMemory]", "args": {"Bytes": 1}},
    ]
    report = trace(tmp_path, events)
    columns = ("start", "device", "device_type", "address", "bytes", "allocated", "reserved", "range")
    assert rows(report, "tensor_memory", *columns) == [
        (11_000, 2, "CUDA", 139_926_520_725_504, 1024, 2048, 4096, 0),
        (20_000, None, "CPU", 4096, -512, None, None, None),
    ]
    assert rows(report, "nvtx_marks", "message") == ["[OutOfMemory]"]


def test_waits_events_and_overhead(tmp_path: Path) -> None:
    wait = {
        "cuda_sync_kind": "Stream Wait Event",
        "wait_on_stream": 20,
        "wait_on_cuda_event_id": 6,
        "context": 1,
        "stream": 7,
        "correlation": 8,
    }
    events = [
        op("aten::mm", 0, 5),
        call("cudaStreamWaitEvent", 1, 1, 8),
        event("cuda_sync", "Stream Wait Event", 10, 2, pid=0, tid=7, args=wait),
        event(
            "cuda_sync",
            "Context Sync",
            20,
            9,
            pid=0,
            tid=7,
            args={"cuda_sync_kind": "Context Sync", "stream": 4294967295},
        ),
        event(
            "cuda_event",
            "CUDA Event Record",
            30,
            0,
            pid=0,
            tid=7,
            args={"event_id": 6, "stream": 7, "device": 0, "context": 1},
        ),
        event("overhead", "Activity Buffer Request", 40, 3, pid=-1, tid=0),
    ]
    report = trace(tmp_path, events)
    assert rows(report, "syncs", "kind", "start", "end", "stream", "event", "context", "api") == [
        ("Stream wait event", 10_000, 12_000, 7, 6, 1, 0),
        ("Context", 20_000, 29_000, None, None, None, None),
    ]
    assert rows(report, "cuda_events", "event", "stream", "start") == [(6, 7, 30_000)]
    assert rows(report, "overhead", "kind", "start", "end", "thread") == [
        ("Activity buffer request", 40_000, 43_000, None)
    ]
    assert report.tables["processes"] == 1


def test_old_names_of_categories(tmp_path: Path) -> None:
    events = [
        event("Operator", "aten::mm", 0, 10),
        event("Runtime", "cudaLaunchKernel", 1, 1, args={"correlation": 4}),
        event("Kernel", "gemm", 3, 1, pid=1, tid="stream 7", args={"correlation": 4, "device": 1}),
        event("Memcpy", "Memcpy DtoH (Device -> Pageable)", 5, 1, pid=1, tid=7, args={"bytes": 8}),
        event("Memset", "Memset (Device)", 6, 1, pid=1, tid=7, args={"bytes": 8}),
    ]
    report = trace(tmp_path, events)
    counts = {name: report.tables[name] for name in ("ops", "cuda_api", "kernels", "memcpys", "memsets")}
    assert counts == dict.fromkeys(counts, 1)
    assert rows(report, "kernels", "device", "stream", "api") == [(1, 7, 0)]
    assert rows(report, "memcpys", "device", "stream", "kind") == [(1, 7, "Device-to-Host")]


def test_rocm(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 10),
        event(
            "cuda_runtime",
            "hipLaunchKernel",
            1,
            1,
            args={"cid": 107, "correlation": 4, "kernel": "gemm", "grid": [1, 1, 1]},
        ),
        event(
            "kernel",
            "gemm",
            3,
            1,
            pid=2,
            tid=4,
            args={"device": 2, "stream": 4, "correlation": 4, "kind": "Dispatch Kernel"},
        ),
        event(
            "gpu_memcpy",
            "CopyHostToDevice",
            5,
            1,
            pid=2,
            tid=4,
            args={"device": 2, "stream": 4, "correlation": 5, "kind": "HtoD"},
        ),
    ]
    report = trace(tmp_path, events, hip_runtime_version=60443483)
    assert rows(report, "kernels", "device", "context", "stream", "grid_x", "api") == [(2, 3, 4, 0, 0)]
    assert rows(report, "memcpys", "kind") == ["Host-to-Device"]
    assert rows(report, "cuda_api", "name", "api") == [("hipLaunchKernel", "runtime")]


@pytest.mark.slow
def test_chrome_traces_of_others(tmp_path: Path) -> None:
    mine = {"pid": 10, "tid": 11}
    events = [
        {"ph": "B", "cat": "io", "name": "read", "ts": 1, **mine, "args": {"path": "/data"}},
        {"ph": "X", "name": "inner", "ts": 2, "dur": 1, **mine},
        {"ph": "E", "ts": 5, **mine},
        {"ph": "E", "ts": 6, **mine},
        {"ph": "B", "name": "open", "ts": 7, **mine},
        {"ph": "b", "cat": "net", "name": "request", "id": "0x1", "ts": 2, **mine},
        {"ph": "b", "cat": "net", "name": "request", "id": "0x2", "ts": 3, **mine},
        {"ph": "e", "cat": "net", "name": "request", "id": "0x1", "ts": 8, "pid": 10, "tid": 12},
        {"ph": "e", "cat": "net", "name": "request", "id": "0x2", "ts": 4, **mine},
        {"ph": "S", "cat": "old", "name": "job", "id": 3, "ts": 3, **mine},
        {"ph": "F", "cat": "old", "name": "job", "id": 3, "ts": 9, **mine},
        {"ph": "i", "name": "now", "ts": 4, "s": "g", **mine},
        {"ph": "C", "name": "queue", "ts": 1, "pid": 20, "args": {"length": 3, "load": 0.5}},
        {"ph": "C", "name": "queue", "ts": 2, "pid": 20, "args": {"length": 4}},
        {"ph": "C", "name": "heat", "ts": 2, "pid": 20, "args": {"value": "none"}},
        {"ph": "X", "name": "text ids", "ts": 1, "dur": 1, "pid": "browser", "tid": "main"},
        {"ph": "N", "name": "object", "id": 1, "ts": 1, **mine},
        {"ph": "s", "cat": "link", "name": "link", "id": 1, "ts": 1, **mine},
    ]
    report = imported(write_text(tmp_path / "run.json", json.dumps(events)))
    ranges = sorted(
        rows(
            report,
            "nvtx_ranges",
            "message",
            "category",
            "domain",
            "style",
            "start",
            "end",
            "depth",
            "unfinished",
        )
    )
    assert ranges == [
        ("inner", None, None, "PushPop", 2000, 3000, 1, False),
        ("job", "old", None, "StartEnd", 3000, 9000, 1, False),
        ("open", None, None, "PushPop", 7000, 9000, 0, True),
        ("read", "io", None, "PushPop", 1000, 5000, 0, False),
        ("request", "net", None, "StartEnd", 2000, 8000, 0, False),
        ("request", "net", None, "StartEnd", 3000, 4000, 2, False),
        ("text ids", None, None, "PushPop", 1000, 2000, 0, False),
    ]
    ended_elsewhere = report.sql(
        "SELECT message, tid FROM nvtx_ranges r JOIN threads t ON r.end_thread = t.thread"
    ).to_pylist()
    assert ended_elsewhere == [{"message": "request", "tid": 12}]
    assert rows(report, "payloads", "event_type", "type", "json") == [("range", "args", '{"path": "/data"}')]
    assert rows(report, "nvtx_marks", "message", "start") == [("now", 4000)]
    counters = {row["counter"]: row["name"] for row in report.table("nvtx_counters").to_pylist()}
    samples = rows(report, "nvtx_counter_samples", "counter", "start", "value_int", "value_float", "no_value")
    assert [(counters[key], *rest) for key, *rest in samples] == [
        ("queue.length", 1000, 3, None, None),
        ("queue.load", 1000, None, 0.5, None),
        ("queue.length", 2000, 4, None, None),
        ("heat", 2000, None, None, "unavailable"),
    ]
    assert rows(report, "processes", "pid", "name") == [(10, None), (20, None), (0, "browser")]
    assert said(report) == {"no-begin": 1, "not-imported": 1}


def test_proton(tmp_path: Path) -> None:
    """One object for each stream, one behind the other; no process, no arguments of CUDA."""
    lines = [
        {
            "displayTimeUnit": "us",
            "traceEvents": [
                {
                    "name": "matmul",
                    "cat": "kernel",
                    "ph": "X",
                    "ts": 0.0,
                    "dur": 8.5,
                    "tid": stream,
                    "args": {"call_stack": ["ROOT"]},
                }
            ],
        }
        for stream in (0, 7)
    ]
    report = imported(
        write_text(tmp_path / "proton.chrome_trace", "".join(json.dumps(line) + "\n" for line in lines))
    )
    assert rows(report, "kernels", "name", "device", "stream", "end") == [
        ("matmul", 0, 0, 8500),
        ("matmul", 0, 7, 8500),
    ]
    assert said(report) == {"no-call": 2}


@pytest.mark.parametrize("name", ["run.json", "run.json.gz", "run.txt", "run.pt.trace.json.gz"])
def test_a_trace_is_known_by_its_content(name: str, tmp_path: Path) -> None:
    report = imported(
        write(
            tmp_path / name,
            [op("aten::mm", 0, 1)],
            displayTimeUnit="ms",
            baseTimeNanoseconds=1_767_189_312 * 10**9,
        )
    )
    assert rows(report, "ops", "name") == ["aten::mm"]


def test_events_that_are_not_imported_are_listed(tmp_path: Path) -> None:
    secret = {"environment": {"TOKEN": "somebody's"}}
    events = [
        op("aten::mm", 0, 1),
        event("gpu_user_annotation", "step", 1, 2, pid=0, tid=7),
        event("Trace", "PyTorch Profiler (0)", 0, 9, pid="Spans", tid="PyTorch Profiler"),
        {
            "name": "Iteration Start: PyTorch Profiler",
            "ph": "i",
            "s": "g",
            "pid": "Traces",
            "tid": "Trace PyTorch Profiler",
            "ts": 0,
        },
        {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 9},
        {"ph": "s", "id": 1, "pid": HOST, "tid": HOST, "ts": 1, "cat": "ac2g", "name": "ac2g"},
        op("aten::late", 5, -1),
        {**op("aten::never", 0, 1), "ts": "soon"},
        event("cpu_op", "aten::endless", 6),
    ]
    report = trace(tmp_path, events, metadata=secret)
    messages = {row["message"]: row["count"] for row in report.diagnostics.to_pylist()}
    assert len(messages) == 6
    assert sorted(count for count in messages.values() if count is not None) == [1, 1, 1, 1, 3]
    assert any("'metadata'" in text for text in messages)
    stored = b"".join(path.read_bytes() for path in (tmp_path / "out.warplens").rglob("*") if path.is_file())
    assert b"somebody" not in stored
    assert rows(report, "ops", "name", "start", "end") == [
        ("aten::mm", 0, 1000),
        ("aten::late", 5000, 5000),
        ("aten::endless", 6000, 6000),
    ]


def test_an_empty_trace(tmp_path: Path) -> None:
    report = trace(tmp_path, [])
    assert rows(report, "processes", "primary") == [True]
    assert report.tables["nvtx_ranges"] == 0


def test_devices_that_nobody_knows_become_tracks(tmp_path: Path) -> None:
    events = [
        op("aten::mm", 0, 9),
        event("mtia_ccp_events", "dma", 1, 2, tid=3),
        event("privateuse1_runtime", "launch", 1, 2),
    ]
    report = trace(tmp_path, events)
    assert rows(report, "nvtx_ranges", "message", "start") == [
        ("aten::mm", 0),
        ("dma", 1000),
        ("launch", 1000),
    ]
    assert said(report) == {}


def test_counters_on_another_clock_do_not_stretch_the_time(tmp_path: Path) -> None:
    value = {"ph": "C", "name": "Power", "pid": HOST, "args": {"W": 300}}
    report = trace(tmp_path, [op("aten::mm", 10, 5), {**value, "ts": 12}, {**value, "ts": 1_122_426 * 10**6}])
    assert report.span == (10_000, 15_000)
    assert report.tables["nvtx_counter_samples"] == 2
    assert said(report) == {"counter-clock": 1}


@pytest.mark.slow
def test_a_folder_of_ranks(tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for rank in (10, 2):
        info = {"distributedInfo": {"rank": rank}} if rank == 2 else {}
        write(folder / f"rank{rank}.json.gz", [op("aten::mm", rank, 1), kernel("gemm", rank, 1, 1)], **info)
    write_text(
        folder / "rank3.json", '{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"ph": "X", "na'
    )
    write_text(folder / "notes.json", '{"lr": 0.1}')
    (folder / "rank4.json.gz").write_bytes(b"")
    parts = import_file(folder, tmp_path / "out.warplens")
    assert [part.command for part in parts] == [["rank2.json.gz"], ["rank10.json.gz"]]
    with open_report(tmp_path / "out.warplens") as report:
        assert rows(report, "processes", "rank") == [2, 10]
        first = report.sql(
            'SELECT rank, k."start" FROM kernels k JOIN processes USING (process) ORDER BY 1'
        ).to_pylist()
        assert first == [{"rank": 2, "start": 2000}, {"rank": 10, "start": 10_000}]
        missing = [
            row["message"] for row in report.diagnostics.to_pylist() if row["code"] == "file-unreadable"
        ]
        assert "rank3.json" in missing[0]
        assert "notes.json is no Chrome trace: it is text" in missing[1]
        assert "rank4.json.gz is no Chrome trace: it is empty" in missing[2]
        assert len(missing) == 3


@pytest.mark.slow
def test_an_import_loads_only_the_needed_modules(tmp_path: Path) -> None:
    write(tmp_path / "trace.json", [op("a", 0, 9), call("cudaLaunchKernel", 2, 3, 1), kernel("k", 4, 5, 1)])
    program = (
        "import sys; from pathlib import Path; from warplens.cli.light import import_lightly; import_lightly();"
        "from warplens.importers.importing import import_file; import_file(Path(sys.argv[1]), Path(sys.argv[2]));"
        "print(sorted({'pandas', 'pyarrow.compute', 'pyarrow.acero', 'duckdb'} & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "trace.json"), str(tmp_path / "trace.warplens")]
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "[]\n"
