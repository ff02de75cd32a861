"""Recordings of NVIDIA Nsight Systems, as its SQLite export holds them.

## Made by
`nsys export -t sqlite run.nsys-rep`, or `nsys stats`, which leaves one beside the report. Every schema from the `.qdrep` era (2021)
to 3.30 is read: tables and columns that a file lacks are empty.

## What maps to what
| there | here |
|---|---|
| `CUPTI_ACTIVITY_KIND_RUNTIME` (runtime and driver) | `cuda_api`, names without their version |
| `…_KERNEL`, `…_MEMCPY`, `…_MEMSET`, `…_GRAPH_TRACE` | `kernels`, `memcpys`, `memsets`, `graphs` |
| `…_MEMCPY` of unified memory, `CUDA_UM_CPU_PAGE_FAULT_EVENTS`, `…_GPU_…` | `um_events` |
| `…_SYNCHRONIZATION`, `…_CUDA_EVENT` | `syncs`, `cuda_events` |
| `CUDA_GPU_MEMORY_USAGE_EVENTS`, `…_POOL_EVENTS` | `gpu_memory`; the running totals are ours |
| `…_OVERHEAD`, `…_JIT`, `PROFILER_OVERHEAD` | `overhead` |
| `GPU_METRICS` | `gpu_metrics` |
| `NVTX_EVENTS` | `nvtx_ranges`, `nvtx_marks`; names of domains, categories, threads; payloads that it has as JSON |
| `NVTX_PAYLOAD_SCHEMAS`, `…_ENUMS` and their entries | `nvtx_schemas`, of every process that uses their domain |
| `TARGET_INFO_GPU`, `…_CUDA_DEVICE`, `…_CUDA_CONTEXT_INFO`, `…_CUDA_STREAM`, `…_NVTX_CUDA_*` | `devices`, `contexts`, `streams` |
| `PROCESSES`, `ThreadNames` | `processes`, `threads`: those that did something |
| `DIAGNOSTIC_EVENT` | `diagnostics` |

Times stay as they are: ns since nsys' session began. The process that nsys launched comes first; where the file does not say which it
was, the one that did something first.

## What is dropped
Environments, output and analysis files are never read. Tables that hold something and have no place are listed in `diagnostics` as
`not-imported`, with their number of rows. Of tables that have one, these columns go: green contexts, call chains, cache and shared memory
settings.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warpline.errors import NotAReport
from warpline.importers.nsys import calls, facts, hardware, memory, metrics, overhead, waits, work
from warpline.importers.nsys.database import MAGIC, Database
from warpline.importers.nsys.identity import Identity
from warpline.importers.nsys.ranges import Annotations
from warpline.importers.nsys.taken import Context, Tally

if TYPE_CHECKING:
    from warpline.importers.base import Progress
    from warpline.report.writer import Facts, PartWriter

SUFFIXES = (".sqlite",)
CONTENT = "SQLite file"
DROPS: tuple[str, ...] = ("CPU samples, OS runtime calls and graphics", "environments, output and files of the analysis")

_SOURCES = {
    "cuda": ("CUPTI_ACTIVITY_KIND_RUNTIME", "CUPTI_ACTIVITY_KIND_KERNEL", "CUPTI_ACTIVITY_KIND_MEMCPY"),
    "nvtx": ("NVTX_EVENTS",),
    "gpu_metrics": ("GPU_METRICS",),
}


def recognises(path: Path) -> bool:
    """Say whether the file is a SQLite file; whether nsys made it, `read` finds out."""
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part. Raises NotAReport for what nsys did not make, ReportError for a broken file."""
    with Database(source) as database:
        if not database.has("StringIds", "id", "value"):
            raise NotAReport(f"{source} is a SQLite file, but no export of Nsight Systems: it has no table StringIds.")
        about = facts.settings(database)
        known = facts.machines(database)
        host = facts.host_of(about, known)
        tally = Tally()
        progress("processes", 0.0)
        identity = Identity(database, part)
        context = Context(database, identity, part, tally)
        progress("NVTX", 0.1)
        annotations = Annotations(context)
        progress("calls", 0.5)
        calls.write(context, annotations.ranges)
        progress("GPU work", 0.65)
        for take in (work.kernels, work.copies, work.memsets, work.graphs):
            take(context)
        progress("the rest", 0.8)
        for take in (waits.syncs, waits.cuda_events, memory.gpu_memory, memory.um_events, overhead.write, hardware.write):
            take(context)
        metrics.write(context, host)
        facts.diagnostics(context)
        facts.left_out(database, tally)
        version = about.get("EXPORT_PRODUCT_VERSION", "")
        sources = {name: {"on": any(map(database.count, tables)), "by": f"nsys {version}".strip()} for name, tables in _SOURCES.items()}
        told = facts.facts(identity, about, host, sources)
        hosts = {machine: facts_of["Hostname"] for machine, facts_of in known.items() if facts_of.get("Hostname")}
        part.write("processes", identity.process_rows(hosts, facts.command(about)))
        part.write("threads", identity.thread_rows(annotations.thread_names))
        part.write("capture_windows", facts.windows(part.part, told))
        part.write("targets", facts.targets(host, told.boot_id, known))
        part.write("diagnostics", tally.rows)
        progress("write", 1.0)
        return told
