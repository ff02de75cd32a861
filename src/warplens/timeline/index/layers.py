"""The layers of a timeline: for each its table, tracks and names.

One line for each layer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from warplens.timeline.names import direction

Wording = Callable[..., str]


def _joined(*texts: str) -> str:
    return ": ".join(text for text in texts if text)


def _copy(kind: str, source: str, destination: str) -> str:
    where = " → ".join(text for text in (source, destination) if text)
    return f"Memcpy {direction(kind)} ({where})" if where else f"Memcpy {direction(kind)}"


def _setting(kind: str) -> str:
    return f"Memset ({kind})" if kind else "Memset"


def _task(task: str, state: str, doing: str) -> str:
    return _joined(task, doing if state == "running" else f"({doing})")


@dataclass(frozen=True)
class Layer:
    """Events of one table.

    `keys`: columns that say which track of the layer a row is on, the process first; texts are among them. `names`: columns whose texts
    are its name, put together by `wording`. `depth`: the column that says which lane it begins to look for room at. `link`: the column
    whose ids are the same for all events of one launch. `style`: rows are sorted by it into `push_pop`, `tasks` and `start_end`.
    `inside`: the rows of kernels that time themselves, whose keys `inside`, `sm` and `warp` are those of `Insides`: `launches`, `units`
    (one of each block), `regions` or `marks`.
    """

    name: str
    table: str
    keys: tuple[str, ...]
    names: tuple[str, ...]
    wording: Wording = _joined
    color: str = ""
    depth: str = ""
    link: str = ""
    style: bool = False
    stacks: bool = False
    inside: str = ""


_THREAD = ("process", "thread")
_STREAM = ("process", "device", "context", "stream")
_PLACES = ("kind", "source_kind", "destination_kind")
_WARP = ("process", "inside", "sm", "warp")

LAYERS: tuple[Layer, ...] = (
    Layer(
        "nvtx_ranges",
        "nvtx_ranges",
        (*_THREAD, "kind"),
        names=("message",),
        color="color",
        depth="depth",
        style=True,
    ),
    Layer("nvtx_marks", "nvtx_marks", _THREAD, names=("message",), color="color"),
    Layer("cuda_api", "cuda_api", _THREAD, names=("name",), link="id"),
    Layer("kernels", "kernels", _STREAM, names=("name",), link="api"),
    Layer("memcpys", "memcpys", _STREAM, names=_PLACES, wording=_copy, link="api"),
    Layer("memsets", "memsets", _STREAM, names=("memory_kind",), wording=_setting, link="api"),
    Layer(
        "graphs",
        "graphs",
        _STREAM,
        names=("graph",),
        wording=lambda graph: f"CUDA graph {graph}".rstrip(),
        link="api",
    ),
    Layer("memory_rows", "memcpys", ("process", "device", "kind"), names=_PLACES, wording=_copy, link="api"),
    Layer(
        "syncs",
        "syncs",
        ("process", "context", "stream"),
        names=("kind",),
        wording=lambda kind: f"{kind} synchronization",
        link="api",
    ),
    Layer("um_events", "um_events", ("process", "device"), names=("kind", "cause")),
    Layer("overhead", "overhead", _THREAD, names=("kind", "name")),
    Layer("collectives", "collectives", ("process", "group"), names=("name",)),
    Layer("osrt", "osrt", _THREAD, names=("name",)),
    Layer("syscalls", "syscalls", _THREAD, names=("name",)),
    Layer("thread_states", "thread_states", _THREAD, names=("state", "reason")),
    Layer("samples", "samples", (*_THREAD, "kind"), names=("stack",), stacks=True),
    Layer(
        "task_samples",
        "task_samples",
        _THREAD,
        names=("task", "state", "doing"),
        wording=_task,
        depth="depth",
    ),
    Layer("python_calls", "python_calls", (*_THREAD, "kind"), names=("name",), color="color", depth="depth"),
    Layer(
        "imports", "imports", _THREAD, names=("name",), wording=lambda name: f"import {name}", depth="depth"
    ),
    Layer(
        "gc", "gc", _THREAD, names=("generation",), wording=lambda generation: f"gc generation {generation}"
    ),
    Layer("gil", "gil", _THREAD, names=("state",), wording=lambda state: f"GIL {state}"),
    Layer("mpi_events", "mpi_events", _THREAD, names=("name",)),
    Layer("openmp_events", "openmp_events", _THREAD, names=("kind", "name")),
    Layer("openacc_events", "openacc_events", _THREAD, names=("name",)),
    Layer(
        "intrakernel_launches",
        "intrakernel_launches",
        _WARP[:2],
        names=("name",),
        link="api",
        inside="launches",
    ),
    Layer("intrakernel_units", "intrakernel_units", _WARP[:3], names=("cta",), inside="units"),
    Layer("intrakernel_events", "intrakernel_events", _WARP, names=("tag",), inside="regions"),
    Layer("intrakernel_marks", "intrakernel_events", _WARP, names=("tag",), inside="marks"),
)
TABLES = tuple(dict.fromkeys(layer.table for layer in LAYERS))
