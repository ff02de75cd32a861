"""The SQLite schema of `nsys export`, for tools that read it.

## What maps to what
Tables and columns have the names of schema 3.28. Empty tables are left out.

| here | there |
|---|---|
| `cuda_api`, `kernels`, `memcpys`, `memsets`, `graphs`, `syncs`, `cuda_events` | `CUPTI_ACTIVITY_KIND_…` |
| `um_events` | `CUPTI_ACTIVITY_KIND_MEMCPY` (kinds 11 to 13), `CUDA_UM_…_PAGE_FAULT_EVENTS` |
| `gpu_memory`, `overhead` | `CUDA_GPU_MEMORY_…_EVENTS`, `CUPTI_ACTIVITY_KIND_OVERHEAD` and `…_JIT` |
| `nvtx_ranges`, `nvtx_marks`, domains, categories | `NVTX_EVENTS`; payloads as JSON in `jsonText`, their layouts in `NVTX_PAYLOAD_…` |
| `osrt`, `file_access`, `syscalls` | `OSRT_API`, `OSRT_FILE_ACCESS_…`, `SYSCALL` |
| `samples` | `COMPOSITE_EVENTS`, a row for each, and `SAMPLING_CALLCHAINS` |
| `thread_states` | `SCHED_EVENTS` |
| `frames` | `…_CALLCHAINS`; of Python the module is `file:line` |
| `mpi_events`, `openmp_events`, `openacc_events`, ranks | `MPI_…`, `OPENMP_EVENT_KIND_…`, `CUPTI_ACTIVITY_KIND_OPENACC_…`, `MPI_RANKS` |
| `gpu_metrics` | `GPU_METRICS`, `TARGET_INFO_GPU_METRICS` |
| `processes`, `threads`, `diagnostics` | `PROCESSES`, `ThreadNames`, `DIAGNOSTIC_EVENT` |
| `devices`, `contexts`, `streams`, `targets` | `TARGET_INFO_…` |

Times count from the start of the report, whose wall-clock time is in
`TARGET_INFO_SESSION_START_TIME`. In the global ids, each host is a machine. `EXPORT_PRODUCT_NAME`
is `warplens`. Environment variables are not exported.

## What is lost
See LOSES. Names of CUDA functions have no version (`cudaLaunchKernel`, not
`cudaLaunchKernel_v7000`). Ranges of asyncio tasks become start/end ranges, because they are not on
the stack of a thread.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warplens.exporters.nsys import about, cpu, enums, nvtx, tables
from warplens.exporters.nsys.database import Writer
from warplens.exporters.nsys.stacks import Stacks

if TYPE_CHECKING:
    from warplens.exporters.losses import Loss
    from warplens.report import Report

SUFFIX = ".sqlite"
LOSES: tuple[Loss, ...] = (
    (
        "Python's calls, imports, garbage collections, GIL and tasks",
        "python_calls",
        "imports",
        "gc",
        "gil",
        "tasks",
        "task_samples",
    ),
    (
        "NVTX counters, objects and operations; tasks of ranges",
        "nvtx_counters",
        "nvtx_objects",
        "nvtx_operations",
        "tasks",
    ),
    (
        "collectives, operations and memory of frameworks, beyond their ranges and kernels",
        "collectives",
        "ops",
        "tensor_memory",
    ),
    (
        "errors, descriptors, targets and objects of OS calls; lines and build ids of native frames",
        "osrt",
        "samples",
    ),
    (
        "samples of one of two kinds: `:kind=python` or `:kind=native` selects the exported kind",
        "samples",
    ),
    (
        "whether a copy was asynchronous, graphs of copies and memsets, external ids",
        "memcpys",
        "memsets",
        "graphs",
        "external_ids",
    ),
    (
        "capture windows; processes before and after an exec become one",
        "capture_windows",
    ),
    (
        "regions inside kernels (`warplens.intrakernel`)",
        "intrakernel_launches",
    ),
)


def write(report: Report, out: Path, *, kind: str = "auto") -> None:
    """Write the report as nsys would export it.

    Args:
        report: the report.
        out: the file.
        kind: samples to export: python, native, or auto (native ones if there are any).
    """
    with Writer(out) as writer:
        about.capture(writer, report)
        about.processes(writer, report)
        about.devices(writer, report)
        stacks = Stacks.of(report, writer)
        nvtx.write(writer, report)
        tables.write(writer, report, stacks)
        interval = cpu.samples(writer, report, stacks, kind=kind)
        reasons = cpu.switches(writer, report)
        cpu.file_access(writer, report)
        about.metrics(writer, report)
        about.export(writer, interval)
        enums.write(writer, reasons)
