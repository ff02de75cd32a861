"""The kinds of rows of a timeline: names, drawing and order. One line for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Drawing = Literal["slices", "marks", "states", "samples", "counter"]


@dataclass(frozen=True)
class RowKind:
    """A kind of rows: `name`, `short` (in addresses and options), and how its events are drawn.

    The events of `layer` are those of that layer of the index (`timeline.index.layers`). `label`: the terminal's name, if it has another
    one, for it writes what the CPU did in small letters.
    """

    layer: str
    name: str
    short: str
    drawn: Drawing = "slices"
    label: str = ""


# In the order in which they stand on the page: what a program says of itself, what it asks of the GPU, what it waits for, what the CPU did.
KINDS: dict[str, RowKind] = {
    kind.layer: kind
    for kind in (
        RowKind("nvtx_ranges", "NVTX", "nvtx"),
        RowKind("nvtx_gpu_projection", "NVTX", "nvtx"),
        RowKind("nvtx_marks", "Marks", "marks", drawn="marks"),
        RowKind("python_calls", "Python", "python"),
        RowKind("task_samples", "Tasks", "tasks", label="tasks"),
        RowKind("kernels", "Kernels", "kernels"),
        RowKind("graphs", "Graphs", "graphs"),
        RowKind("memcpys", "Copies", "copies"),
        RowKind("memory_rows", "Copies", "copies"),
        RowKind("memsets", "Memset", "memset"),
        RowKind("cuda_events", "Events", "events", drawn="marks"),
        RowKind("cuda_api", "CUDA API", "api"),
        RowKind("overhead", "CUDA overhead", "overhead"),
        RowKind("syncs", "CUDA synchronization", "syncs"),
        RowKind("collectives", "Collectives", "collectives"),
        RowKind("um_events", "Unified memory", "um"),
        RowKind("mpi_events", "MPI", "mpi"),
        RowKind("openmp_events", "OpenMP", "openmp"),
        RowKind("openacc_events", "OpenACC", "openacc"),
        RowKind("osrt", "OS calls", "osrt"),
        RowKind("file_access", "File access", "files"),
        RowKind("syscalls", "System calls", "syscalls"),
        RowKind("gc", "GC", "gc"),
        RowKind("gil", "GIL", "gil", drawn="states"),
        RowKind("imports", "Imports", "imports", label="imports"),
        RowKind("samples", "Samples", "samples", drawn="samples", label="samples"),
        RowKind("thread_states", "State", "state", drawn="states", label="state"),
        RowKind("intrakernel_launches", "Launches that timed themselves", "launches"),
        RowKind("intrakernel_units", "Blocks", "blocks"),
        RowKind("intrakernel_events", "Regions", "regions"),
        RowKind("intrakernel_marks", "Marks", "marks", drawn="marks"),
    )
}
# Below a thread in the terminal and in the files of other viewers, where the state comes first: the page draws it in the row of the thread.
CPU: tuple[str, ...] = (
    *(
        "thread_states",
        "samples",
        "python_calls",
        "task_samples",
        "imports",
        "gc",
        "gil",
        "osrt",
        "file_access",
    ),
    *("mpi_events", "openmp_events", "openacc_events", "syscalls"),
)
_PLACES = {layer: place for place, layer in enumerate(KINDS)}


def kind_of(layer: str) -> RowKind:
    """Return the kind of rows that show a layer; one that is not known is called as it is."""
    return KINDS.get(layer) or RowKind(layer, layer.replace("_", " "), layer)


def label_of(layer: str) -> str:
    """Return what the terminal calls the rows of a layer."""
    kind = kind_of(layer)
    return kind.label or kind.name


def place_of(layer: str) -> int:
    """Return the place of a layer among its siblings on the page."""
    return _PLACES.get(layer, len(_PLACES))
