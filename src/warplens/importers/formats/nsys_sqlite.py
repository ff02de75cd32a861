"""SQLite exports of NVIDIA Nsight Systems recordings.

## Made by
`nsys export -t sqlite run.nsys-rep`, or `nsys stats`, which leaves such a file beside the report.
Every schema from the `.qdrep` era (2021) to 3.30 works: tables and columns that a file lacks are
empty.

## What maps to what
| there | here |
|---|---|
| `CUPTI_ACTIVITY_KIND_RUNTIME` (runtime and driver) | `cuda_api`, names without their version |
| `…_KERNEL`, `…_MEMCPY`, `…_MEMSET`, `…_GRAPH_TRACE` | `kernels`, `memcpys`, `memsets`, `graphs` |
| `…_MEMCPY` of unified memory, `CUDA_UM_CPU_PAGE_FAULT_EVENTS`, `…_GPU_…` | `um_events` |
| `…_SYNCHRONIZATION`, `…_CUDA_EVENT` | `syncs`, `cuda_events` |
| `CUDA_GPU_MEMORY_USAGE_EVENTS`, `…_POOL_EVENTS` | `gpu_memory`; warplens computes the running totals |
| `…_OVERHEAD`, `…_JIT`, `PROFILER_OVERHEAD` | `overhead` |
| `GPU_METRICS` | `gpu_metrics` |
| `NVTX_EVENTS` | `nvtx_ranges`, `nvtx_marks`; names of domains, categories, threads; JSON payloads |
| `NVTX_PAYLOAD_SCHEMAS`, `…_ENUMS` and their entries | `nvtx_schemas`, of every process that uses their domain |
| `OSRT_API`, `OSRT_FILE_ACCESS_…` | `osrt`, `file_access` |
| `COMPOSITE_EVENTS` | `samples`: consecutive samples of one thread with one stack are one row |
| `SCHED_EVENTS` | `thread_states`: from each switch of a thread to its next |
| `OSRT_…`, `SAMPLING_…`, `CUDA_…`, `SYSCALL_CALLCHAINS` | `frames`, and the column `stack` |
| `MPI_…_EVENTS`, `MPI_RANKS` | `mpi_events`, and the rank in `processes` |
| `OPENMP_EVENT_KIND_…`, `CUPTI_ACTIVITY_KIND_OPENACC_…`, `SYSCALL` | `openmp_events`, `openacc_events`, `syscalls` |
| `TARGET_INFO_GPU`, `…_CUDA_DEVICE`, `…_CUDA_CONTEXT_INFO`, `…_CUDA_STREAM`, `…_NVTX_CUDA_*` | `devices`, `contexts`, `streams` |
| `PROCESSES`, `ThreadNames` | `processes`, `threads`: those with events |
| `DIAGNOSTIC_EVENT` | `diagnostics` |

A folder of such files becomes one report with a part for each file:
`nsys profile -o run.%q{OMPI_COMM_WORLD_RANK} …` writes one file per rank. If a file does not
contain its rank, a file name such as `rank3` gives it.

Times stay unchanged: ns since the start of nsys' session. The process that nsys launched comes
first; if the file does not name it, the process with the first event. The time that a sample stands
for is the usual distance between two samples of its thread.

## What is dropped
Environment variables, output and analysis files are never read. `diagnostics` lists tables with
rows but without a counterpart as `not-imported`, with their number of rows: graphics, network,
storage, other libraries. Tables with a counterpart lose: green contexts, cache and shared memory
settings, arguments of OS calls, stacks of context switches, ids of OpenMP tasks and locks. Threads
with scheduling events only are left out if their process has no other events.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from warplens.errors import NotAReport
from warplens.importers.file_names import in_order, rank_in
from warplens.importers.nsys import whole
from warplens.importers.nsys.sqlite import MAGIC, SqliteFile

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".sqlite",)
CONTENT = "SQLite file"
DROPS: tuple[str, ...] = ("graphics, network and storage", "environment variables, output and analysis files")


def recognises(path: Path) -> bool:
    """Say whether the file is a SQLite file, or the folder has one.

    Whether nsys made it, `read` finds out.
    """
    if path.is_dir():
        return any(_is_sqlite(file) for file in parts(path))
    with open(path, "rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def _is_sqlite(path: Path) -> bool:
    try:
        return recognises(path)
    except OSError:  # one that cannot be read does not hide the others
        return False


def parts(source: Path) -> list[Path]:
    """Return the SQLite files in a folder, those of lower ranks first.

    `read` says which cannot be read.
    """
    return in_order(path for path in source.iterdir() if path.suffix in SUFFIXES and path.is_file())


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises NotAReport for what nsys did not make, ReportError for a broken file.
    """
    with SqliteFile(source) as database:
        if not database.has("StringIds", "id", "value"):
            raise NotAReport(
                f"{source} is a SQLite file, but not an export of Nsight Systems: it has no table StringIds."
            )
        return whole.take(database, part, progress, rank=rank_in(source.stem))
