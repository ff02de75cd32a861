"""The rows of a report as a tree: host → process → thread → its events.

Host → GPU → context → stream → what ran on it.

The page draws the tree itself; the terminal and the exporters take their rows from it (`rows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warplens.timeline.entities import Entities, HostGpu, Inside
from warplens.timeline.index.inside import SLOTS
from warplens.timeline.kinds import kind_of, place_of
from warplens.timeline.names import direction

if TYPE_CHECKING:
    from warplens.timeline.lanes import Lane

ON_STREAM = frozenset(("kernels", "memcpys", "memsets", "graphs", "cuda_events", "nvtx_gpu_projection"))
# What is drawn in the row of the thread, stream and so on itself.
_OWN = {
    "thread": "thread_states",
    "stream": "kernels",
    "inside": "intrakernel_launches",
    "sm": "intrakernel_units",
    "warp": "intrakernel_events",
}
_INSIDE = frozenset(("intrakernel_units", "intrakernel_events", "intrakernel_marks"))
# What a layer is called that is grouped by kinds: the end of the id, and the name.
_KINDS = {
    "nvtx_ranges": {
        "push_pop": ("nvtx", "NVTX"),
        "tasks": ("nvtx:tasks", "NVTX of tasks"),
        "start_end": ("nvtx", "Start/end ranges"),
    },
    "python_calls": {"function": ("python", "Python")},
    "samples": {"python": ("samples", "Python samples"), "native": ("samples:native", "CPU samples")},
}
_METRICS_OPEN = 4
_MOST_INSIDE = (
    10_000  # rows inside kernels: what a page can hold; the others are in the report, and in its stats
)


@dataclass(frozen=True)
class CounterOwner:
    """The owner of a counter: a process, its GPU (`device`), or a GPU of a host (`gpu`, `uuid`)."""

    process: int | None = None
    device: int | None = None
    host: str = ""
    gpu: int | None = None
    uuid: str | None = None


@dataclass
class Row:
    """One row, or a group of rows.

    `kind`: `host`, `process`, `thread`, `gpu`, …, or `short` of the kind of events that it shows.

    `source`: where its events come from (a track of the index, or a counter); None for a group. `open`: whether its children are shown
    at first. `facts`: the keys of what it is below: process, rank, device.
    """

    id: str
    kind: str
    name: str
    detail: str = ""
    order: tuple[Any, ...] = ()
    children: dict[str, Row] = field(default_factory=dict)
    source: Any = None
    open: bool = True
    facts: dict[str, int] = field(default_factory=dict)
    events: int = 0

    def child(
        self,
        part: str,
        kind: str,
        name: str,
        detail: str = "",
        *,
        order: tuple[Any, ...] = (),
        **facts: int | None,
    ) -> Row:
        """Return the child whose id ends in `part`, made if there is none."""
        if part not in self.children:
            known = {key: value for key, value in facts.items() if value is not None}
            self.children[part] = Row(
                f"{self.id}/{part}" if self.id else part,
                kind,
                name,
                detail=detail,
                order=order,
                facts={**self.facts, **known},
            )
        return self.children[part]

    def sorted(self) -> list[Row]:
        """Return the children in the order in which they stand."""
        return sorted(self.children.values(), key=lambda one: one.order)

    def total(self) -> int:
        """The number of events in it."""
        return self.events + sum(child.total() for child in self.children.values())

    def walk(self) -> Iterator[Row]:
        """Yield the row and all below it, in the order in which they stand."""
        yield self
        for child in self.sorted():
            yield from child.walk()


class RowTree:
    """Puts tracks and counters of a report in their places below `root`."""

    def __init__(self, entities: Entities) -> None:
        self._entities = entities
        self.root = Row("", "report", "")
        self._inside = 0

    def add(self, track: Lane) -> None:
        """Put one track in its place."""
        key, layer = track.key, track.layer
        if layer in _INSIDE:
            self._inside += 1
            if self._inside > _MOST_INSIDE:
                cut_ = self._kernel(track.process, _number(key, "inside"))
                cut_.detail = "not all of its rows are shown"
                return
        kind = kind_of(layer)
        parent, part, name = self._place(layer, key)
        own = parent.kind in _OWN and _OWN[parent.kind] == layer
        row = parent if own else parent.child(part, kind.short, name, order=(2, place_of(layer), part))
        if (
            row.source is not None
        ):  # two tracks of one name: a table that is grouped by more than is known here
            row = parent.child(
                f"{part}.{track.number}", kind.short, name, order=(2, place_of(layer), part, track.number)
            )
        row.events = track.events
        row.facts.setdefault("process", track.process)
        row.source = track

    def count(self, layer: str, key: str, name: str, where: CounterOwner) -> Row:
        """Return the row of a counter, in its place."""
        if where.gpu is not None:
            parent = self._gpu(self._entities.gpu_by_uuid(where.host, where.gpu, where.uuid))
        elif where.device is not None and where.device >= 0 and where.process is not None:
            parent = self._gpu(self._entities.gpu(where.process, where.device))
        else:
            parent = self._process(where.process if where.process is not None else -1)
        detail = ""
        if where.device is not None and where.process is not None and len(self._entities.processes) > 1:
            detail = self._entities.process_name(where.process)[1]
        place = len(parent.children)
        if (
            layer == "gpu_metrics"
            and sum(child.kind == "counter" for child in parent.children.values()) >= _METRICS_OPEN
        ):
            parent = parent.child("metrics", "group", "More metrics", order=(1, 0))
            parent.open = False
        return parent.child(f"counter:{layer}:{key}", "counter", name, detail=detail, order=(0, place))

    def _place(self, layer: str, key: Mapping[str, Any]) -> tuple[Row, str, str]:
        """Return below what a track belongs, what its id ends in, and its name."""
        known = kind_of(layer)
        process, thread, device, kind = (key.get(name) for name in ("process", "thread", "device", "kind"))
        process = -1 if process is None else int(process)
        if layer == "memory_rows":
            gpu = self._gpu(self._entities.gpu(process, device))
            memory = gpu.child("memory", "memory", "Memory", order=(2, 0))
            several = len(self._entities.users(self._entities.gpu(process, device))) > 1
            name = (
                f"{direction(kind)} ({self._entities.process_name(process)[1]})"
                if several
                else direction(kind)
            )
            return memory, f"copies:{process}:{kind}", name
        if "inside" in key:
            return self._within(layer, process, key), known.short, known.name
        if layer in ON_STREAM:
            return self._stream(process, key), known.short, known.name
        if layer in _KINDS:
            short, name = _KINDS[layer].get(str(kind), (f"{known.short}:{kind}", f"{known.name} ({kind})"))
            owner = None if kind == "start_end" else thread
            return self._thread(process, owner), short, name
        if thread is not None:
            return self._thread(process, int(thread)), known.short, known.name
        if device is not None:
            return self._gpu(self._entities.gpu(process, int(device))), f"{known.short}:{process}", known.name
        if layer == "syncs":
            group = self._process(process).child("syncs", "group", known.name, order=(2, place_of(layer)))
            group.open = False
            context, stream = key.get("context"), key.get("stream")
            named = f"Context {context}" if stream is None else f"Stream {stream}"
            return group, f"{known.short}:{context}:{stream}", named
        where = [f"{name} {key[name]}" for name in ("group",) if key.get(name) not in (None, "")]
        named = f"{known.name} ({where[-1]})" if where else known.name
        return (
            self._process(process),
            ":".join([known.short, *(str(key.get(name)) for name in ("group",) if name in key)]),
            named,
        )

    def _within(self, layer: str, process: int, key: Mapping[str, Any]) -> Row:
        """Return the row of a track inside a kernel.

        Its launches, an SM with its blocks, or a warp with its regions.
        """
        kernel = self._kernel(process, _number(key, "inside"))
        if layer == "intrakernel_launches":
            return kernel
        sm, slot = divmod(_number(key, "sm"), SLOTS)
        node = kernel.child(f"sm:{sm}", "sm", f"SM {sm}", order=(0, sm))
        if layer == "intrakernel_units":
            return node
        warp = _number(key, "warp")
        detail = f"block {slot + 1} at once" if slot else ""
        return node.child(f"warp:{slot}:{warp}", "warp", f"Warp {warp}", detail=detail, order=(0, slot, warp))

    def _kernel(self, process: int, first: int) -> Row:
        """Return the row above the insides of kernels of a name.

        Their stream, else their GPU, else their process.
        """
        inside = self._entities.insides.get((process, first)) or Inside("kernel", None, None, stream=None)
        if inside.context is not None and inside.stream is not None:
            place = {"context": inside.context, "stream": inside.stream, "device": inside.device}
            parent = self._stream(process, place)
        elif inside.device is not None:
            parent = self._gpu(self._entities.gpu(process, inside.device))
        else:
            parent = self._process(process)
        node = parent.child(f"inside:{process}:{first}", "inside", f"Inside {inside.name}", order=(4, first))
        node.open = False
        return node

    def _host(self, host: str) -> Row:
        place = (
            self._entities.hosts.index(host) if host in self._entities.hosts else len(self._entities.hosts)
        )
        return self.root.child(f"host:{place}", "host", host or "host", order=(place,))

    def _process(self, process: int) -> Row:
        row = self._entities.processes.get(process) or {}
        name, detail = self._entities.process_name(process)
        rank = row.get("rank")
        order = (0, rank is None, rank or 0, process)
        return self._host(self._entities.host(process)).child(
            f"process:{process}", "process", name, detail=detail, order=order, process=process, rank=rank
        )

    def _thread(self, process: int, thread: int | None) -> Row:
        if thread is None:
            return self._process(process)
        name, detail = self._entities.thread_name(thread)
        main = detail.startswith("main")
        return self._process(process).child(
            f"thread:{thread}", "thread", name, detail=detail, order=(1, not main, thread)
        )

    def _gpu(self, gpu: HostGpu) -> Row:
        users = self._entities.users(gpu)
        own = users[0] if len(users) == 1 else None  # whose it is, if it is of one process alone
        return self._host(gpu.host).child(
            f"gpu:{gpu.id}",
            "gpu",
            gpu.name,
            detail=gpu.uuid or "",
            order=(1, gpu.number, gpu.key),
            device=gpu.number,
            process=own,
            rank=self._entities.rank(own),
        )

    def _stream(self, process: int, key: Mapping[str, Any]) -> Row:
        context, stream = key.get("context"), _number(key, "stream")
        device = self._entities.device_of(process, context, key.get("device"))
        gpu = self._gpu(self._entities.gpu(process, device))
        within = -1 if context is None else int(context)
        several = len(self._entities.processes) > 1
        detail = ", ".join(self._entities.process_name(process)) if several else ""
        facts = {"process": process, "rank": self._entities.rank(process)}
        node = gpu.child(
            f"context:{process}:{within}",
            "context",
            self._entities.context_name(process, within),
            detail=detail,
            order=(3, process, within),
            **facts,
        )
        return node.child(
            f"stream:{stream}",
            "stream",
            self._entities.stream_name(process, within, stream),
            order=(0, stream),
        )


def _number(key: Mapping[str, Any], name: str) -> int:
    """Return a part of a track's key; -1 if the table lacks it."""
    value = key.get(name)
    return -1 if value is None else int(value)
