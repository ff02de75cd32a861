"""The rows of a report as a tree: host → process → thread → what it did; host → GPU → context → stream → what ran on it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from warplens.exporters.cuda_tracks import direction
from warplens.timeline.index.inside import SLOTS
from warplens.viewer.answers.places import Gpu, Inside, Places
from warplens.viewer.answers.plain import cut, number
from warplens.viewer.answers.rows import place_of, row_of

if TYPE_CHECKING:
    from warplens.viewer.answers.counters import Counter
    from warplens.viewer.answers.lanes import Lane

_ON_STREAM = frozenset(("kernels", "memcpys", "memsets", "graphs", "cuda_events", "nvtx_gpu_projection"))
# What is drawn in the row of the thread, stream and so on itself.
_OWN = {
    "thread": "thread_states",
    "stream": "kernels",
    "inside": "intrakernel_launches",
    "sm": "intrakernel_units",
    "warp": "intrakernel_events",
}
_INSIDE = frozenset(("intrakernel_units", "intrakernel_events", "intrakernel_marks"))
# What a layer is called that is kept apart by kinds: the end of the id, and the name.
_KINDS = {
    "nvtx_ranges": {"push_pop": ("nvtx", "NVTX"), "tasks": ("nvtx:tasks", "NVTX of tasks"), "start_end": ("nvtx", "Start/end ranges")},
    "python_calls": {"function": ("python", "Python")},
    "samples": {"python": ("samples", "Python samples"), "native": ("samples:native", "CPU samples")},
}
_THREADS_OPEN = 12  # of a process; the others are below one row that can be opened
_PROCESSES_OPEN = 8
_METRICS_OPEN = 4
_INSIDES_OPEN = 6  # of a stream
_SMS_OPEN = 8  # of a kernel
_MOST_INSIDE = 10_000  # rows inside kernels: what a page can hold; the others are in the report, and in its stats
_NAME = 300


@dataclass
class Node:
    """One row, or a group of rows."""

    id: str
    kind: str
    name: str
    detail: str = ""
    order: tuple[Any, ...] = ()
    children: dict[str, Node] = field(default_factory=dict)
    track: dict[str, Any] | None = None
    open: bool = True
    facts: dict[str, int] = field(default_factory=dict)
    events: int = 0

    def child(self, part: str, kind: str, name: str, detail: str = "", *, order: tuple[Any, ...] = (), **facts: int | None) -> Node:
        """Return the child whose id ends in `part`, made where there is none."""
        if part not in self.children:
            known = {key: value for key, value in facts.items() if value is not None}
            self.children[part] = Node(f"{self.id}/{part}" if self.id else part, kind, name, detail, order, facts={**self.facts, **known})
        return self.children[part]

    def sorted(self) -> list[Node]:
        """Return the children in the order in which they stand."""
        return sorted(self.children.values(), key=lambda one: one.order)

    def total(self) -> int:
        """How many events there are in it."""
        return self.events + sum(child.total() for child in self.children.values())

    def as_json(self) -> dict[str, Any]:
        """Return the node as `TrackNode` of the page has it."""
        found: dict[str, Any] = {"id": self.id, "kind": self.kind, "name": cut(self.name, _NAME)}
        if self.detail:
            found["detail"] = cut(self.detail, _NAME)
        found["children"] = [child.as_json() for child in self.sorted()]
        if self.track is not None:
            found["track"] = self.track
        if found["children"]:
            found["open"] = self.open
        return {**found, **self.facts}


class Tree:
    """Puts tracks and counters of a report (its number in the view: `report`) in their places; `origin`: what times are told from."""

    def __init__(self, report: int, origin: int, places: Places) -> None:
        self._report, self._origin, self._places = report, origin, places
        self._root = Node("", "report", "")
        self._inside = 0

    def add(self, lane: Lane) -> None:
        """Put one track of the index in its place."""
        key, layer = lane.key, lane.layer
        if layer in _INSIDE:
            self._inside += 1
            if self._inside > _MOST_INSIDE:
                cut_ = self._kernel(lane.process, _number(key, "inside"))
                cut_.detail = "not all of its rows are shown"
                return
        row = row_of(layer)
        parent, part, name = self._place(layer, key)
        own = parent.kind in _OWN and _OWN[parent.kind] == layer
        node = parent if own else parent.child(part, row.short, name, order=(2, place_of(layer), part))
        if node.track is not None:  # two tracks of one name: a table that is kept apart by more than is known here
            node = parent.child(f"{part}.{lane.number}", row.short, name, order=(2, place_of(layer), part, lane.number))
        node.events = lane.events
        node.facts.setdefault("process", lane.process)
        node.track = {
            "report": self._report,
            "track": lane.number,
            "kind": row.kind,
            "layer": layer,
            "lanes": lane.lanes,
            "events": lane.events,
            "busy": lane.busy,
            "begin": lane.begin - self._origin,
            "end": lane.end - self._origin,
        }

    def count(self, number_: int, counter: Counter) -> None:
        """Put one counter in its place."""
        where = counter.where
        if where.gpu is not None:
            parent = self._gpu(self._places.gpu_by_uuid(where.host, where.gpu, where.uuid))
        elif where.device is not None and where.device >= 0 and where.process is not None:
            parent = self._gpu(self._places.gpu(where.process, where.device))
        else:
            parent = self._process(where.process if where.process is not None else -1)
        detail = ""
        if where.device is not None and where.process is not None and len(self._places.processes) > 1:
            detail = self._places.process_name(where.process)[1]
        place = len(parent.children)
        if counter.layer == "gpu_metrics" and sum(child.kind == "counter" for child in parent.children.values()) >= _METRICS_OPEN:
            parent = parent.child("metrics", "group", "More metrics", order=(1, 0))
            parent.open = False
        node = parent.child(f"counter:{counter.layer}:{counter.key}", "counter", counter.name, detail, order=(0, place))
        node.events = len(counter.times)
        first, last = (int(counter.times[0]), int(counter.times[-1])) if len(counter.times) else (self._origin, self._origin)
        node.track = {
            "report": self._report,
            "track": number_,
            "kind": "counter",
            "layer": counter.layer,
            "lanes": 1,
            "events": node.events,
            "busy": 0,
            "begin": first - self._origin,
            "end": last - self._origin,
            "unit": counter.unit,
            "low": number(counter.low),
            "high": number(counter.high),
        }

    def nodes(self) -> list[dict[str, Any]]:
        """Return the tree: its hosts."""
        for host in self._root.children.values():
            processes = [child for child in host.sorted() if child.kind == "process"]
            for process in processes[_PROCESSES_OPEN:]:
                process.open = False
            for process in processes:
                _fold(process, "thread", "threads", _THREADS_OPEN)
            _fold_insides(host)
        return [host.as_json() for host in self._root.sorted()]

    def _place(self, layer: str, key: Mapping[str, Any]) -> tuple[Node, str, str]:
        """Return below what a track belongs, what its id ends in, and its name."""
        row = row_of(layer)
        process, thread, device, kind = (key.get(name) for name in ("process", "thread", "device", "kind"))
        process = -1 if process is None else int(process)
        if layer == "memory_rows":
            gpu = self._gpu(self._places.gpu(process, device))
            memory = gpu.child("memory", "memory", "Memory", order=(2, 0))
            several = len(self._places.users(self._places.gpu(process, device))) > 1
            name = f"{direction(kind)} ({self._places.process_name(process)[1]})" if several else direction(kind)
            return memory, f"copies:{process}:{kind}", name
        if "inside" in key:
            return self._within(layer, process, key), row.short, row.name
        if layer in _ON_STREAM:
            return self._stream(process, key), row.short, row.name
        if layer in _KINDS:
            short, name = _KINDS[layer].get(str(kind), (f"{row.short}:{kind}", f"{row.name} ({kind})"))
            owner = None if kind == "start_end" else thread
            return self._thread(process, owner), short, name
        if thread is not None:
            return self._thread(process, int(thread)), row.short, row.name
        if device is not None:
            return self._gpu(self._places.gpu(process, int(device))), f"{row.short}:{process}", row.name
        if layer == "syncs":
            group = self._process(process).child("syncs", "group", row.name, order=(2, place_of(layer)))
            group.open = False
            context, stream = key.get("context"), key.get("stream")
            named = f"Context {context}" if stream is None else f"Stream {stream}"
            return group, f"{row.short}:{context}:{stream}", named
        where = [f"{name} {key[name]}" for name in ("group",) if key.get(name) not in (None, "")]
        named = f"{row.name} ({where[-1]})" if where else row.name
        return (
            self._process(process),
            ":".join([row.short, *(str(key.get(name)) for name in ("group",) if name in key)]),
            named,
        )

    def _within(self, layer: str, process: int, key: Mapping[str, Any]) -> Node:
        """Return the row of a kernel's inside that a track is of: its launches, an SM with its blocks, or a warp with its regions."""
        kernel = self._kernel(process, _number(key, "inside"))
        if layer == "intrakernel_launches":
            return kernel
        sm, slot = divmod(_number(key, "sm"), SLOTS)
        node = kernel.child(f"sm:{sm}", "sm", f"SM {sm}", order=(0, sm))
        if layer == "intrakernel_units":
            return node
        warp = _number(key, "warp")
        detail = f"block {slot + 1} at once" if slot else ""
        return node.child(f"warp:{slot}:{warp}", "warp", f"Warp {warp}", detail, order=(0, slot, warp))

    def _kernel(self, process: int, first: int) -> Node:
        """Return the row for what is inside kernels of a name: below their stream, else their GPU, else their process."""
        inside = self._places.insides.get((process, first)) or Inside("kernel", None, None, None)
        if inside.context is not None and inside.stream is not None:
            place = {"context": inside.context, "stream": inside.stream, "device": inside.device}
            parent = self._stream(process, place)
        elif inside.device is not None:
            parent = self._gpu(self._places.gpu(process, inside.device))
        else:
            parent = self._process(process)
        node = parent.child(f"inside:{process}:{first}", "inside", f"Inside {inside.name}", order=(4, first))
        node.open = False
        return node

    def _host(self, host: str) -> Node:
        place = self._places.hosts.index(host) if host in self._places.hosts else len(self._places.hosts)
        return self._root.child(f"host:{place}", "host", host or "host", order=(place,))

    def _process(self, process: int) -> Node:
        row = self._places.processes.get(process) or {}
        name, detail = self._places.process_name(process)
        rank = row.get("rank")
        order = (0, rank is None, rank or 0, process)
        return self._host(self._places.host(process)).child(
            f"process:{process}", "process", name, detail, order=order, process=process, rank=rank
        )

    def _thread(self, process: int, thread: int | None) -> Node:
        if thread is None:
            return self._process(process)
        name, detail = self._places.thread_name(thread)
        main = detail.startswith("main")
        return self._process(process).child(f"thread:{thread}", "thread", name, detail, order=(1, not main, thread))

    def _gpu(self, gpu: Gpu) -> Node:
        users = self._places.users(gpu)
        own = users[0] if len(users) == 1 else None  # whose it is, where it is of one process alone
        return self._host(gpu.host).child(
            f"gpu:{gpu.id}",
            "gpu",
            gpu.name,
            gpu.uuid or "",
            order=(1, gpu.number, gpu.key),
            device=gpu.number,
            process=own,
            rank=self._places.rank(own),
        )

    def _stream(self, process: int, key: Mapping[str, Any]) -> Node:
        context, stream = key.get("context"), _number(key, "stream")
        device = self._places.device_of(process, context, key.get("device"))
        gpu = self._gpu(self._places.gpu(process, device))
        within = -1 if context is None else int(context)
        several = len(self._places.processes) > 1
        detail = ", ".join(self._places.process_name(process)) if several else ""
        facts = {"process": process, "rank": self._places.rank(process)}
        node = gpu.child(
            f"context:{process}:{within}",
            "context",
            self._places.context_name(process, within),
            detail,
            order=(3, process, within),
            **facts,
        )
        return node.child(f"stream:{stream}", "stream", self._places.stream_name(process, within, stream), order=(0, stream))


def _number(key: Mapping[str, Any], name: str) -> int:
    """Return a part of a track's key; -1 where the table lacks it."""
    value = key.get(name)
    return -1 if value is None else int(value)


def _fold_insides(node: Node) -> None:
    """Bound what is below the rows of kernels that time themselves, and the number of these on a stream."""
    for child in list(node.children.values()):
        _fold_insides(child)
    _fold(node, "inside", "kernels", _INSIDES_OPEN)
    if node.kind == "inside":
        for sm in node.children.values():
            sm.open = len(node.children) <= _SMS_OPEN // 2
        _fold(node, "sm", "SMs", _SMS_OPEN)


def _fold(node: Node, kind: str, group: str, most: int) -> None:
    """Put the children of a kind that did least below one row, where there are many of them; the first stays where it is."""
    own = [child for child in node.sorted() if child.kind == kind]
    if len(own) <= most:
        return
    kept = {child.id for child in [own[0], *sorted(own[1:], key=lambda child: -child.total())[: most - 1]]}
    rest = {part: child for part, child in node.children.items() if child.kind == kind and child.id not in kept}
    below = Node(
        f"{node.id}/{group}", group, f"{len(rest):,} more {group}", order=(own[0].order[0], 1 << 62), children=rest, facts=node.facts
    )
    below.open = False
    node.children = {part: child for part, child in node.children.items() if part not in rest}
    node.children[group] = below
