"""The kinds of rows of a timeline: what each is called, how it is drawn, and in which order they stand. One line for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Drawing = Literal["slices", "marks", "states", "samples", "counter"]


@dataclass(frozen=True)
class Kind:
    """A kind of rows: `name`, `short` (what it is called in addresses and options), and how its events are drawn.

    The events of `layer` are those of that layer of the index (`timeline.index.layers`). `label`: the terminal's name, where it has another
    one, for it writes what the CPU did in small letters.
    """

    layer: str
    name: str
    short: str
    drawn: Drawing = "slices"
    label: str = ""


# In the order in which they stand on the page: what a program says of itself, what it asks of the GPU, what it waits for, what the CPU did.
KINDS: dict[str, Kind] = {
    kind.layer: kind
    for kind in (
        Kind("nvtx_ranges", "NVTX", "nvtx"),
        Kind("nvtx_gpu_projection", "NVTX", "nvtx"),
        Kind("nvtx_marks", "Marks", "marks", "marks"),
        Kind("python_calls", "Python", "python"),
        Kind("task_samples", "Tasks", "tasks", label="tasks"),
        Kind("kernels", "Kernels", "kernels"),
        Kind("graphs", "Graphs", "graphs"),
        Kind("memcpys", "Copies", "copies"),
        Kind("memory_rows", "Copies", "copies"),
        Kind("memsets", "Memset", "memset"),
        Kind("cuda_events", "Events", "events", "marks"),
        Kind("cuda_api", "CUDA API", "api"),
        Kind("overhead", "CUDA overhead", "overhead"),
        Kind("syncs", "CUDA synchronization", "syncs"),
        Kind("collectives", "Collectives", "collectives"),
        Kind("um_events", "Unified memory", "um"),
        Kind("mpi_events", "MPI", "mpi"),
        Kind("openmp_events", "OpenMP", "openmp"),
        Kind("openacc_events", "OpenACC", "openacc"),
        Kind("osrt", "OS calls", "osrt"),
        Kind("file_access", "File access", "files"),
        Kind("syscalls", "System calls", "syscalls"),
        Kind("gc", "GC", "gc"),
        Kind("gil", "GIL", "gil", "states"),
        Kind("imports", "Imports", "imports", label="imports"),
        Kind("samples", "Samples", "samples", "samples", label="samples"),
        Kind("thread_states", "State", "state", "states", label="state"),
        Kind("intrakernel_launches", "Launches that timed themselves", "launches"),
        Kind("intrakernel_units", "Blocks", "blocks"),
        Kind("intrakernel_events", "Regions", "regions"),
        Kind("intrakernel_marks", "Marks", "marks", "marks"),
    )
}
# Below a thread in the terminal and in the files of other viewers, where the state comes first: the page draws it in the row of the thread.
CPU: tuple[str, ...] = (
    *("thread_states", "samples", "python_calls", "task_samples", "imports", "gc", "gil", "osrt", "file_access"),
    *("mpi_events", "openmp_events", "openacc_events", "syscalls"),
)
_PLACES = {layer: place for place, layer in enumerate(KINDS)}


def kind_of(layer: str) -> Kind:
    """Return the kind of rows that show a layer; one that is not known is called as it is."""
    return KINDS.get(layer) or Kind(layer, layer.replace("_", " "), layer)


def label_of(layer: str) -> str:
    """Return what the terminal calls the rows of a layer."""
    kind = kind_of(layer)
    return kind.label or kind.name


def place_of(layer: str) -> int:
    """Return the place of a layer among its siblings on the page."""
    return _PLACES.get(layer, len(_PLACES))
