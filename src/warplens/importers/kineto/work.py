"""GPU work of a trace: kernels, copies, memsets, waits, CUDA events.

And the devices, contexts and streams that it names.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int32Array, Int64Array
from warplens.convert.cuda import names
from warplens.importers.kineto.columns import Texts, filled, optional, ordered, where_known
from warplens.importers.kineto.layout import NULL, NULL32
from warplens.importers.rows import numbered

if TYPE_CHECKING:
    from warplens.importers.kineto.calls import KinetoCalls
    from warplens.importers.kineto.trace import KinetoTrace

_AXES = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
_COPY = re.compile(r"([HDPA])(?:ost|evice|eer|rray)?\s*(?:to|2|To)\s*([HDPA])")
_ENDS = re.compile(r"\(\s*([\w ]+?)\s*->\s*([\w ]+?)\s*\)")
_MEMORY = re.compile(r"\(\s*([\w ]+?)\s*\)")
_LETTERS = {"H": "Host", "D": "Device", "P": "Peer", "A": "Array"}
_WAITS = {
    "stream wait event": "Stream wait event",
    "event sync": "Event",
    "stream sync": "Stream",
    "context sync": "Context",
    "device sync": "Context",
}


def copy_kind(name: str) -> str:
    """Return the kind of a copy that is called `Memcpy HtoD (Pinned -> Device)` or `CopyHostToDevice`."""
    match = _COPY.search(name.removeprefix("Memcpy").removeprefix("Copy").strip())
    return f"{_LETTERS[match[1]]}-to-{_LETTERS[match[2]]}" if match else "Unknown"


@dataclass
class KinetoWork:
    """The GPU operations in report order, with the columns that the tables share."""

    trace: KinetoTrace
    calls: KinetoCalls
    places: set[tuple[int, ...]] = field(default_factory=set)  # process, device, context, stream
    without: dict[str, int] = field(default_factory=dict)  # work whose call is not there

    def kernels(self) -> KinetoKernels:
        """Write `kernels`."""
        order, columns, rows = self._placed("kernel")
        texts = self.trace.texts
        name = self._taken("kernel", order, "name")
        shared, registers, graph, node = (
            self._taken("kernel", order, field) for field in ("shared", "registers", "graph", "graph_node")
        )
        sizes = {axis: filled(self._taken("kernel", order, axis)) for axis in _AXES}
        columns |= {
            "name": texts.column(name, lambda text: names.function(names.demangled(text) or text)),
            "demangled": texts.column(name, names.demangled),
            "mangled": texts.column(name, lambda text: text if text.startswith("_Z") else None),
            **sizes,
            "registers": filled(registers),
            "static_shared": np.zeros(len(name), np.int64),
            "dynamic_shared": filled(shared),
            "graph": _positive(graph),
            "graph_node": _positive(node),
        }
        self.trace.write("kernels", columns)
        return KinetoKernels(
            columns["id"],
            columns["process"],
            start=columns["start"],
            end=columns["end"],
            name=name,
            row=rows,
            range=self._ranges,
        )

    def copies(self) -> None:
        """Write `memcpys`."""
        order, columns, _ = self._placed("memcpy")
        name, size, graph, node = (
            self._taken("memcpy", order, field) for field in ("name", "bytes", "graph", "graph_node")
        )
        texts = self.trace.texts
        columns |= {
            "bytes": filled(size),
            "kind": texts.column(name, copy_kind),
            "source_kind": texts.column(name, lambda text: _end(text, 1)),
            "destination_kind": texts.column(name, lambda text: _end(text, 2)),
            "graph": _positive(graph),
            "graph_node": _positive(node),
        }
        self.trace.write("memcpys", columns)

    def memsets(self) -> None:
        """Write `memsets`."""
        order, columns, _ = self._placed("memset")
        name, size, graph, node = (
            self._taken("memset", order, field) for field in ("name", "bytes", "graph", "graph_node")
        )
        columns |= {
            "bytes": filled(size),
            "value": np.zeros(len(name), np.int64),
            "memory_kind": self.trace.texts.column(name, _memory),
            "graph": _positive(graph),
            "graph_node": _positive(node),
        }
        self.trace.write("memsets", columns)

    def waits(self) -> None:
        """Write `syncs`."""
        trace = self.trace
        start, end, name, kind, correlation = trace.take(
            "sync", "start", "end", "name", "sync_kind", "correlation"
        )
        stream, context, event = trace.take("sync", "stream", "context", "event")
        process, order = self._owned("sync", start, end, correlation=correlation)
        start, end, stream, context, event, correlation = (
            column[order] for column in (start, end, stream, context, event, correlation)
        )
        label = np.where(kind < 0, name, kind)[order]
        trace.identity.saw(process, None, start=start, end=end)
        trace.write(
            "syncs",
            {
                "id": numbered(process),
                "process": process,
                "start": start,
                "end": end,
                "kind": trace.texts.column(label, lambda text: _WAITS.get(text.lower(), text)),
                "context": _positive(context),
                "stream": pa.array(stream, pa.int64(), mask=(stream < 0) | (stream >= 0xFFFFFFFF)),
                "event": _positive(event),
                **self._called(correlation, process)[0],
            },
        )

    def events(self) -> None:
        """Write `cuda_events`."""
        trace = self.trace
        start, end, correlation, stream, device, context, event = trace.take(
            "cuda_event", "start", "end", "correlation", "stream", "device", "context", "event"
        )
        process, order = self._owned("cuda_event", start, end, correlation=correlation)
        start, correlation, stream, device, context, event = (
            column[order] for column in (start, correlation, stream, device, context, event)
        )
        trace.identity.saw(process, None, start=start, end=start)
        trace.write(
            "cuda_events",
            {
                "id": numbered(process),
                "process": process,
                "device": optional(device),
                "context": filled(context, 1),
                "stream": filled(stream),
                "start": start,
                "event": filled(event),
                **self._called(correlation, process)[0],
            },
        )

    def overhead(self) -> None:
        """Write `overhead`."""
        trace, identity = self.trace, self.trace.identity
        start, end, name, correlation = trace.take("overhead", "start", "end", "name", "correlation")
        lane = identity.lanes.pop("overhead")
        process = identity.of_gpu(lane)
        thread = identity.thread[lane] if len(lane) else np.empty(0, np.int64)
        order = ordered(process, start, end)
        rows = slice(None) if order is None else order
        start, end, name, process, thread = start[rows], end[rows], name[rows], process[rows], thread[rows]
        identity.saw(process, None, start=start, end=end)
        trace.write(
            "overhead",
            {
                "id": numbered(process),
                "process": process,
                "thread": where_known(thread),
                "start": start,
                "end": end,
                "kind": trace.texts.column(
                    np.where(name < 0, 0, name), lambda text: text[:1] + text[1:].lower()
                ),
                "correlation": _positive(correlation[rows]),
            },
        )

    def hardware(self) -> None:
        """Write `devices`, `contexts` and `streams`."""
        properties = self.trace.header.get("deviceProperties")
        known = (
            [card for card in properties if isinstance(card, dict)] if isinstance(properties, list) else []
        )
        cards = {
            number: card for card in known if type(number := card.get("id")) is int and 0 <= number < 1 << 16
        }
        main = self.trace.identity.main
        owned = {(process, device) for process, device, _, _ in self.places} | {
            (main, number) for number in cards
        }
        self.trace.part.write(
            "devices", [_device(process, number, cards.get(number, {})) for process, number in sorted(owned)]
        )
        contexts = {(process, context): device for process, device, context, _ in sorted(self.places)}
        self.trace.part.write(
            "contexts",
            [
                {"process": process, "context": context, "device": device}
                for (process, context), device in sorted(contexts.items())
            ],
        )
        streams = {(process, stream): context for process, _, context, stream in sorted(self.places)}
        self.trace.part.write(
            "streams",
            [
                {"process": process, "context": context, "stream": stream}
                for (process, stream), context in sorted(streams.items())
            ],
        )

    def finish(self) -> None:
        """Say what has no call."""
        for kind, count in self.without.items():
            message = (
                f"{kind} whose launch is not in the file (before the recording, or removed): their "
                "ranges are unknown"
            )
            self.trace.say("info", "no-call", message, count)

    def _placed(self, kind: str) -> tuple[Any, dict[str, Any], Int64Array]:
        """Return the order of a kind's rows, the common columns of GPU work, and the event of each row."""
        trace = self.trace
        start, end, correlation, stream, device, context = trace.take(
            kind, "start", "end", "correlation", "stream", "device", "context"
        )
        process, order = self._owned(kind, start, end, correlation=correlation)
        rows = np.arange(len(start))[order]
        start, end, correlation, stream, device, context, lane = (
            column[order] for column in (start, end, correlation, stream, device, context, self._lane)
        )
        pid, tid = trace.identity.pids[lane], trace.identity.tids[lane]
        texts = trace.identity._texts[lane]
        # Where the arguments lack them, pid and tid of GPU work are device and stream.
        named = np.where((texts & 1 == 0) & (pid >= 0) & (pid < 1 << 16), pid, 0)
        device = np.where(device == NULL32, named, device).astype(np.int32)
        stream = np.where(
            stream == NULL,
            np.where((texts & 2 == 0) & (tid >= 0), tid, _stream_in(trace.texts, tid, texts)),
            stream,
        )
        context = np.where(context == NULL, device + 1, context).astype(np.int64)
        trace.identity.saw(process, None, start=start, end=end)
        self.places |= _combinations(process, device, context, stream)
        called, missing = self._called(correlation, process)
        if missing:
            self.without[f"{kind}s" if kind != "memcpy" else "copies"] = missing
        columns = {
            "id": numbered(process),
            "process": process,
            "device": device,
            "context": context,
            "stream": stream,
            "start": start,
            "end": end,
            **called,
        }
        return order, columns, rows

    def _owned(
        self, kind: str, start: Int64Array, end: Int64Array, correlation: Int64Array
    ) -> tuple[Int64Array, Any]:
        """Return the processes of a kind's rows in the order of the report, and that order."""
        identity = self.trace.identity
        lane = identity.lanes.pop(kind) if kind in identity.lanes else self.trace.take(kind, "lane")[0]
        process = identity.of_gpu(lane)
        if len(identity.keys) > 1:  # of several processes, the one whose call it was
            place, known = self.calls.find(correlation)
            if known.any():
                process = np.where(known, self.calls.process[place], process)
        order = ordered(process, start, end)
        self._lane = lane
        rows: Any = slice(None) if order is None else order
        return process[rows], rows

    def _called(self, correlation: Int64Array, process: Int64Array) -> tuple[dict[str, Any], int]:
        place, known = self.calls.find(correlation)
        if len(self.calls.id):
            known &= self.calls.process[place] == process
            api = pa.array(self.calls.id[place], pa.int64(), mask=~known)
            self._ranges = np.where(known, self.calls.range[place], -1)
        else:
            api = pa.nulls(len(correlation), pa.int64())
            self._ranges = np.full(len(correlation), -1, np.int64)
        return {"api": api, "correlation": _positive(correlation)}, int((~known).sum())

    def _taken(self, kind: str, order: Any, name: str) -> npt.NDArray[Any]:
        return np.asarray(self.trace.take(kind, name)[0][order])


@dataclass
class KinetoKernels:
    """The kernels in the order of the report; `row`: which event each was."""

    id: Int64Array
    process: Int64Array
    start: Int64Array
    end: Int64Array
    name: Int32Array
    row: Int64Array
    range: Int64Array  # that the call began in; -1: none


def _positive(values: Int64Array) -> pa.Array:
    return pa.array(values, pa.int64(), mask=values <= 0)


def _end(name: str, number: int) -> str | None:
    match = _ENDS.search(name)
    return match[number] if match else None


def _memory(name: str) -> str | None:
    match = _MEMORY.search(name)
    return match[1] if match else None


def _stream_in(texts: Texts, tid: Int64Array, is_text: Int64Array) -> Int64Array:
    """Return the number in a thread's name, as in `stream 7`; 0 if there is none."""
    out = np.zeros(len(tid), np.int64)
    for code in np.unique(tid[is_text & 2 != 0]).tolist():
        match = re.search(r"\d{1,9}", texts[code])
        out[(tid == code) & (is_text & 2 != 0)] = int(match[0]) if match else 0
    return out


def _combinations(*columns: npt.NDArray[Any]) -> set[tuple[int, ...]]:
    """Return the rows that differ; few do, and what follows its like is passed over at once."""
    changed = np.zeros(len(columns[0]), bool)
    changed[:1] = True
    for column in columns:
        changed[1:] |= column[1:] != column[:-1]
    return set(zip(*(column[changed].tolist() for column in columns), strict=True))


def _device(process: int, number: int, card: dict[str, Any]) -> dict[str, Any]:
    def figure(name: str, most: int) -> int | None:
        value = card.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most else None

    return {
        "process": process,
        "device": number,
        "name": str(card.get("name") or f"GPU {number}")[:200],
        "compute_major": figure("computeMajor", 1 << 16),
        "compute_minor": figure("computeMinor", 1 << 16),
        "multiprocessors": figure("numSms", 1 << 20),
        "memory": figure("totalGlobalMem", 1 << 60),
    }
