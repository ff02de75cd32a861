"""What the rows of the timeline are called, and in which order they stand below their thread, stream or process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["slices", "marks", "states", "samples", "counter"]


@dataclass(frozen=True)
class Row:
    """The row that a layer of the index is: `kind` of drawing, `name`, and `short`, what it is called in the address."""

    name: str
    short: str
    kind: Kind = "slices"


# In the order in which they stand: what a program says of itself, what it asks of the GPU, what it waits for, what the CPU did.
LAYERS: dict[str, Row] = {
    "nvtx_ranges": Row("NVTX", "nvtx"),
    "nvtx_gpu_projection": Row("NVTX", "nvtx"),
    "nvtx_marks": Row("Marks", "marks", "marks"),
    "ops": Row("Operations", "ops"),
    "python_calls": Row("Python", "python"),
    "task_samples": Row("Tasks", "tasks"),
    "kernels": Row("Kernels", "kernels"),
    "graphs": Row("Graphs", "graphs"),
    "memcpys": Row("Copies", "copies"),
    "memory_rows": Row("Copies", "copies"),
    "memsets": Row("Memset", "memset"),
    "cuda_events": Row("Events", "events", "marks"),
    "cuda_api": Row("CUDA API", "api"),
    "overhead": Row("CUDA overhead", "overhead"),
    "syncs": Row("CUDA synchronization", "syncs"),
    "collectives": Row("Collectives", "collectives"),
    "um_events": Row("Unified memory", "um"),
    "mpi_events": Row("MPI", "mpi"),
    "openmp_events": Row("OpenMP", "openmp"),
    "openacc_events": Row("OpenACC", "openacc"),
    "osrt": Row("OS runtime", "osrt"),
    "syscalls": Row("System calls", "syscalls"),
    "gc": Row("GC", "gc"),
    "gil": Row("GIL", "gil", "states"),
    "imports": Row("Imports", "imports"),
    "samples": Row("Samples", "samples", "samples"),
    "thread_states": Row("State", "state", "states"),
    "intrakernel_launches": Row("Launches that timed themselves", "launches"),
    "intrakernel_units": Row("Blocks", "blocks"),
    "intrakernel_events": Row("Regions", "regions"),
    "intrakernel_marks": Row("Marks", "marks", "marks"),
}
_PLACES = {layer: place for place, layer in enumerate(LAYERS)}


def row_of(layer: str) -> Row:
    """Return the row of a layer; one that is not known is called as it is."""
    return LAYERS.get(layer) or Row(layer.replace("_", " "), layer)


def place_of(layer: str) -> int:
    """Return the place of a layer among its siblings."""
    return _PLACES.get(layer, len(_PLACES))
