"""PyTorch profiler (Kineto) traces.

For Holistic Trace Analysis, TraceLens and other tools that read these traces.

## What maps to what
- NVTX ranges: `user_annotation`, and `gpu_user_annotation` on each stream with work that they
  launched. Ranges of the domain `pytorch`: `cpu_op`, with shapes, strides, types, values and
  sequence numbers of their inputs if known. `fwdbwd` and `Fwd thread id` lead from a forward
  operation to its backward ones.
- Training steps: `ProfilerStep#N`, which most of these tools need. A report without ranges of that
  name gets them from its own steps (`step`, `iteration`, …).
- CUDA API calls: `cuda_runtime`, `cuda_driver`. GPU work: `kernel`, `gpu_memcpy`, `gpu_memset`,
  with device, stream and sizes. Arrows (`ac2g`) and `correlation` lead from a call to its work,
  `External id` from both to the innermost range around the call.
- Waits: `cuda_sync`. Traced Python calls: `python_function`. Tensors: `[memory]`. NVTX marks:
  instants.
- Collectives: arguments of their kernel. Devices: `deviceProperties`. Rank and number of ranks:
  `distributedInfo`.
- A trace holds one rank. A report with several processes that used a GPU becomes one file per
  process (`run.rank0.pt.trace.json`); `-t kineto:pid=4711` writes one of them.

## What is lost
See LOSES. Times are microseconds with three decimals since `baseTimeNanoseconds`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.analysis.steps.steps import steps
from warplens.disk.files import text_output
from warplens.errors import MissingData, UsageError
from warplens.exporters.chrome.json_text import named
from warplens.exporters.chrome.kineto_events import KinetoEvents
from warplens.model.words import counted
from warplens.report.selection import Selection
from warplens.timeline.names import thread_label

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".pt.trace.json"
LOSES: tuple[Loss, ...] = (
    (
        "processes without GPU work, if others have some",
        "kernels",
    ),
    (
        "domains, categories, colours, payloads, style and tasks of NVTX ranges",
        "nvtx_ranges",
    ),
    (
        "counters, samples, thread states, OS calls, GC and the GIL, MPI and the like",
        "nvtx_counters",
        "samples",
        "thread_states",
        "osrt",
        "gc",
        "gil",
        "mpi_events",
    ),
    (
        "GPU memory and metrics, unified memory, CUDA graphs as a whole, CUDA events, overhead, regions inside kernels",
        "gpu_memory",
        "gpu_metrics",
        "um_events",
        "graphs",
        "cuda_events",
        "overhead",
        "intrakernel_launches",
    ),
    (
        "results of calls, mangled and short names of kernels, clusters and local memory",
        "cuda_api",
        "kernels",
    ),
    "diagnostics and targets",
)
_GPU_WORK = "SELECT DISTINCT process FROM kernels UNION SELECT DISTINCT process FROM memcpys UNION SELECT DISTINCT process FROM memsets"
_STEP = "SELECT 1 FROM nvtx_ranges WHERE message LIKE 'ProfilerStep#%' LIMIT 1"


def write(report: Report, out: Path, *, pid: int = 0) -> None:
    """Write one process of the report as a Kineto trace.

    Args:
        report: the report.
        out: the file.
        pid: process id of the system; 0: the only process that used a GPU.
    """
    process = _chosen(report, pid)
    key = process["process"]
    threads = [
        row
        for row in report.table("threads", ["thread", "process", "tid", "name"]).to_pylist()
        if row["process"] == key
    ]
    events = KinetoEvents(report, key, process["pid"], tids={row["thread"]: row["tid"] for row in threads})
    with text_output(out) as file:
        file.write(json.dumps(_head(report, process))[:-1] + ',"traceEvents":[\n')
        comma = ""
        for piece in _pieces(report, process, threads, events=events):
            if piece:
                file.write(comma + ",\n".join(piece))
                comma = ",\n"
        file.write(f'\n],"traceName":{json.dumps(out.name)}}}\n')


def files(report: Report, *, pid: int = 0) -> dict[str, dict[str, Any]]:
    """Return the files of a report with the options that write each; none if it is one file."""
    processes = [] if pid else _on_gpu(report)
    if len(processes) < 2:
        return {}
    ranks = [row["rank"] for row in processes]
    named = None not in ranks and len(set(ranks)) == len(ranks)
    return {f"rank{row['rank']}" if named else f"pid{row['pid']}": {"pid": row["pid"]} for row in processes}


def _on_gpu(report: Report) -> list[dict[str, Any]]:
    """Return the processes that used a GPU."""
    used = {row["process"] for row in report.sql(_GPU_WORK).to_pylist()}
    return [row for row in _processes(report) if row["process"] in used]


def _processes(report: Report) -> list[dict[str, Any]]:
    columns = ["process", "pid", "rank", "primary", "name", "recorded"]
    return sorted(report.table("processes", columns).to_pylist(), key=lambda row: int(row["process"]))


def _chosen(report: Report, pid: int) -> dict[str, Any]:
    rows = _processes(report)
    if pid:
        matches = [row for row in rows if row["pid"] == pid]
        if not matches:
            raise UsageError(
                f"{report.path} has no process {pid}; there are: {', '.join(str(row['pid']) for row in rows[:20])}."
            )
        return matches[0]
    on_gpu = _on_gpu(report)
    if len(on_gpu) > 1:
        ranks = ["" if row["rank"] is None else f" (rank {row['rank']})" for row in on_gpu]
        words = ", ".join(f"{row['pid']}{rank}" for row, rank in zip(on_gpu[:20], ranks, strict=False))
        raise UsageError(
            f"{counted(len(on_gpu), 'process')} of {report.path} used a GPU, but a trace holds one: "
            f"choose it with `kineto:pid=…` ({words})."
        )
    candidates = on_gpu or [row for row in rows if row["primary"]] or rows
    if not candidates:
        raise UsageError(f"{report.path} has no process.")
    return candidates[0]


def _head(report: Report, process: dict[str, Any]) -> dict[str, Any]:
    devices = [row for row in report.table("devices").to_pylist() if row["process"] == process["process"]]
    about = {
        "totalGlobalMem": "memory",
        "computeMajor": "compute_major",
        "computeMinor": "compute_minor",
        "numSms": "multiprocessors",
    }
    head: dict[str, Any] = {
        "schemaVersion": 1,
        "deviceProperties": [
            {
                "id": row["device"],
                "name": row["name"],
                **{told: row[name] for told, name in about.items() if row[name] is not None},
            }
            for row in devices
        ],
        "displayTimeUnit": "ms",
        "baseTimeNanoseconds": report.origin + report.manifests[0].realtime_offset,
    }
    ranks = {
        row["rank"] for row in report.table("processes", ["rank"]).to_pylist() if row["rank"] is not None
    }
    if process["rank"] is not None:
        head["distributedInfo"] = {
            "backend": "nccl",
            "rank": process["rank"],
            "world_size": max(max(ranks) + 1, len(ranks)),
        }
    return head


def _pieces(
    report: Report, process: dict[str, Any], threads: list[dict[str, Any]], events: KinetoEvents
) -> Iterator[list[str]]:
    pid = process["pid"]
    yield [
        named("process_name", pid, None, name=process["name"] or str(pid)),
        *(named("thread_name", pid, row["tid"], name=thread_label(row)) for row in threads),
        *(
            named("process_name", row["device"], None, name=f"GPU {row['device']}")
            for row in _devices(report, process)
        ),
        *(
            named("thread_name", row["device"], row["stream"], name=f"stream {row['stream']}")
            for row in _streams(report, process)
        ),
    ]
    yield from events.all()
    if not report.sql(_STEP).num_rows:
        try:
            yield events.step_lines(steps(report, Selection()))
        except MissingData:
            pass


def _devices(report: Report, process: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for row in report.table("devices", ["process", "device"]).to_pylist()
        if row["process"] == process["process"]
    ]


def _streams(report: Report, process: dict[str, Any]) -> list[dict[str, Any]]:
    streams: list[dict[str, Any]] = report.sql(
        "SELECT DISTINCT device, stream FROM kernels WHERE process = ? ORDER BY ALL", [process["process"]]
    ).to_pylist()
    return streams
