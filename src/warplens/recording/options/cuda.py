"""CUDA recording options and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

# Of API calls, in the order of `CudaSettings::backtrace_ns` in format.h.
BACKTRACE_CATEGORIES = ("kernel", "memory", "sync", "other")


@dataclass(frozen=True, slots=True)
class CudaOptions:
    """CUDA recording options.

    `all_apis`: also API calls that only ask for something. `graph_nodes`: the kernels and copies of CUDA graphs one by one, else each
    launch of a graph as a whole. `memory`: allocations. `um_migrations`, `um_cpu_faults`, `um_gpu_faults`: unified memory. `events`:
    cudaEventRecord. `flush_ms`: how often finished records are fetched, 0 = when CUPTI's buffers are full. `backtrace`: pairs of a
    category of API calls and the least duration (ns) of those whose stack is wanted. `cupti`: the libcupti to use.
    """

    all_apis: bool = False
    graph_nodes: bool = True
    memory: bool = False
    um_migrations: bool = False
    um_cpu_faults: bool = False
    um_gpu_faults: bool = False
    events: bool = False
    flush_ms: int = 200
    backtrace: tuple[tuple[str, int], ...] = ()
    cupti: Path | None = None
