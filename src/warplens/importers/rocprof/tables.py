"""Writes the tables of one process of rocprofv3: calls, kernels, copies, allocations, markers, threads, GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.arrays import Int64Array
from warplens.convert.cuda import names
from warplens.importers.nsys.calls import enclosing
from warplens.importers.nsys.ranges import NsysRanges
from warplens.importers.rocprof.records import RocmProcess
from warplens.importers.rows import numbered
from warplens.storage.writer import THREADS_PER_PROCESS

if TYPE_CHECKING:
    from warplens.storage.writer import PartWriter

_DIRECTION = re.compile(r"(HOST|DEVICE)_TO_(HOST|DEVICE)$")
_LIBRARIES = ("RCCL", "ROCDECODE", "ROCJPEG")
_NUMBER = re.compile(r"\d+")


@dataclass
class RocmTables:
    """Writes `process` as the part's process `number`; afterwards `begin`, `end` (ns) and `notes` are about it."""

    part: PartWriter
    process: RocmProcess
    number: int
    notes: list[tuple[str, str, int]] = field(default_factory=list)  # severity, message, count

    def __post_init__(self) -> None:
        self.key = self.part.key(self.number)
        times = [
            self._ints(kind, edge)
            for kind, rows in self.process.tables.items()
            if rows.num_rows
            for edge in ("Start_Timestamp", "End_Timestamp")
        ]
        given = [time for time in (self.process.begin, self.process.end) if time]
        self.begin = min([*(int(column.min()) for column in times), *given], default=0)
        self.end = max([*(int(column.max()) for column in times), *given], default=self.begin)
        self._devices = self._numbered_devices()
        self._number_threads()
        self._ranges = NsysRanges()
        self._calls = np.empty(0, np.int64), np.empty(0, np.int64)  # correlation, rising, and id

    def write(self) -> None:
        """Write all tables of the process."""
        self._write_markers()
        self._write_calls()
        self._write_kernels()
        self._write_copies()
        self._write_allocations()
        self._write_hardware()

    def _rows(self, kind: str) -> int:
        return self.process.tables[kind].num_rows if kind in self.process.tables else 0

    def _ints(self, kind: str, name: str) -> Int64Array:
        if kind not in self.process.tables:
            return np.empty(0, np.int64)
        return np.asarray(self.process.tables[kind].column(name).to_numpy(), np.int64)

    def _texts(self, kind: str, name: str, change: Callable[[str], str | None] = str) -> pa.DictionaryArray:
        """Return a dictionary column; `change` makes each distinct text what the report has."""
        if not self._rows(kind):
            return pa.nulls(0, pa.string()).dictionary_encode()
        column = self.process.tables[kind].column(name).combine_chunks().dictionary_encode()
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        values = pa.array([change(text) for text in column.dictionary.to_pylist()], pa.string())
        return values.take(column.indices).dictionary_encode()

    def _timed(self, kind: str) -> tuple[Int64Array, dict[str, Any]]:
        """Return the order of a kind's rows and the columns id, process, start and end."""
        start, end = self._ints(kind, "Start_Timestamp"), self._ints(kind, "End_Timestamp")
        backwards = int((end < start).sum())
        if backwards:
            self.notes.append(("warning", f"{kind} that end before they start count as instants", backwards))
        end = np.maximum(start, end)
        order = np.lexsort((-end, start))
        process = np.full(len(order), self.key, np.int64)
        times = {"start": start[order], "end": end[order]}
        return order, {"id": numbered(process), "process": process, **times}

    def _number_threads(self) -> None:
        tids = np.unique(
            np.concatenate([self._ints(kind, "Thread_Id") for kind in ("calls", "markers", "kernels")])
        )
        known = [tid for tid in tids.tolist() if tid > 0]
        main = self.process.pid if self.process.pid in known or not known else known[0]
        self._tids = [main, *(tid for tid in known if tid != main)]
        places = {tid: self.key * THREADS_PER_PROCESS + place for place, tid in enumerate(self._tids)}
        self._thread_of = lambda tids: np.array(
            [places.get(tid, self.key * THREADS_PER_PROCESS) for tid in tids.tolist()], np.int64
        )

    def _numbered_devices(self) -> dict[str, int]:
        """Return the device of each text that means a GPU."""
        devices = {label: number for number, gpu in enumerate(self.process.gpus) for label in gpu.labels}
        if self._rows("kernels"):
            seen = self.process.tables["kernels"].column("Agent_Id").unique().to_pylist()
            unknown = sorted((text for text in seen if text not in devices), key=_by_number)
            first = len(self.process.gpus)
            devices |= {text: first + place for place, text in enumerate(unknown)}
        return devices

    def _device(self, kind: str, column: str = "Agent_Id", missing: int = 0) -> Int64Array:
        if not self._rows(kind):
            return np.empty(0, np.int64)
        texts = self.process.tables[kind].column(column).to_pylist()
        return np.array([self._devices.get(text, missing) for text in texts], np.int64)

    def _write_markers(self) -> None:
        order, columns = self._timed("markers")
        tids, message = (
            self._ints("markers", "Thread_Id")[order],
            self._texts("markers", "Function").take(order),
        )
        made_by = np.array(self._texts("markers", "Operation").take(order).to_pylist(), dtype=object)
        thread = self._thread_of(tids)
        # CSV files do not say which function it was: marks have no length, ranges of the process no thread.
        named = made_by != ""
        is_mark = np.where(
            named, [str(name).endswith("MarkA") for name in made_by], columns["start"] == columns["end"]
        )
        loose = np.where(named, [_is_loose(str(name)) for name in made_by], tids == 0)
        is_mark, loose = is_mark.astype(bool), loose.astype(bool)
        marks = np.flatnonzero(is_mark)
        self.part.write(
            "nvtx_marks",
            {
                "id": numbered(columns["process"][marks]),
                "process": columns["process"][marks],
                "thread": thread[marks],
                "start": columns["start"][marks],
                "message": message.take(marks),
            },
        )
        self._write_ranges(
            start=columns["start"][~is_mark],
            end=columns["end"][~is_mark],
            thread=thread[~is_mark],
            loose=loose[~is_mark],
            message=message.filter(pa.array(~is_mark)),
        )

    def _write_ranges(
        self,
        *,
        start: Int64Array,
        end: Int64Array,
        thread: Int64Array,
        loose: Any,
        message: pa.DictionaryArray,
    ) -> None:
        """Write ranges of threads, ranges of the process (`loose`), and calls of libraries as ranges of a separate domain."""
        libraries, of_library = self._library_calls()
        count = len(start)
        start, end, thread = (
            np.concatenate((mine, libraries[name]))
            for mine, name in ((start, "start"), (end, "end"), (thread, "thread"))
        )
        loose = np.concatenate((loose, np.zeros(len(of_library), bool)))
        messages = pa.concat_arrays([message.cast(pa.string()), libraries["name"]])
        domains = pa.concat_arrays([pa.nulls(count, pa.string()), of_library])
        order = np.lexsort((-end, start))
        start, end, thread, loose = start[order], end[order], thread[order], loose[order]
        process = np.full(len(order), self.key, np.int64)
        ids = numbered(process)
        depth, parent = np.zeros(len(order), np.int32), np.full(len(order), -1, np.int64)
        pushed, free = np.flatnonzero(~loose), np.flatnonzero(loose)
        depth[pushed], above = native.nest(thread[pushed], start[pushed], end[pushed])
        parent[pushed] = np.where(above < 0, -1, ids[pushed][above] if len(pushed) else -1)
        depth[free] = native.lanes(start[free], end[free])
        self._ranges.add(thread[pushed], ids[pushed], start[pushed], end[pushed], above)
        never = np.zeros(len(order), bool)
        self.part.write(
            "nvtx_ranges",
            {
                "id": ids,
                "process": process,
                "thread": thread,
                "start": start,
                "end": end,
                "domain": domains.take(order).dictionary_encode(),
                "message": messages.take(order).dictionary_encode(),
                "style": pa.DictionaryArray.from_arrays(
                    pa.array(loose.astype(np.int32), pa.int32()), ["PushPop", "StartEnd"]
                ),
                "depth": depth,
                "parent": pa.array(parent, pa.int64(), mask=parent < 0),
                "unfinished": never,
                "inherited": never,
                "clipped": never,
            },
        )

    def _library_calls(self) -> tuple[dict[str, Any], pa.Array]:
        """Take calls of libraries (RCCL, …) out of the calls; return them, and the library of each."""
        library = pa.array([""] * 0, pa.string())
        columns: dict[str, Any] = {name: np.empty(0, np.int64) for name in ("start", "end", "thread")} | {
            "name": library
        }
        if not self._rows("calls"):
            return columns, library
        calls = self.process.tables["calls"]
        mine = pa.array(
            [text.startswith(_LIBRARIES) for text in calls.column("Domain").to_pylist()], pa.bool_()
        )
        rows, self.process.tables["calls"] = calls.filter(mine), calls.filter(pc.invert(mine))
        columns = {
            "start": rows.column("Start_Timestamp").to_numpy(),
            "end": np.maximum(
                rows.column("Start_Timestamp").to_numpy(), rows.column("End_Timestamp").to_numpy()
            ),
            "thread": self._thread_of(rows.column("Thread_Id").to_numpy()),
            "name": _whole(rows.column("Function")),
        }
        domains = [text.partition("_")[0] for text in rows.column("Domain").to_pylist()]
        return columns, pa.array(domains, pa.string())

    def _write_calls(self) -> None:
        order, columns = self._timed("calls")
        thread = self._thread_of(self._ints("calls", "Thread_Id")[order])
        correlation = self._ints("calls", "Correlation_Id")[order]
        around = enclosing(self._ranges, thread, columns["start"])
        self.part.write(
            "cuda_api",
            {
                **columns,
                "thread": thread,
                "api": self._texts(
                    "calls", "Domain", lambda text: "driver" if text.startswith("HSA") else "runtime"
                ).take(order),
                "name": self._texts("calls", "Function", names.call).take(order),
                "result": np.zeros(len(order), np.int32),
                "correlation": correlation,
                "range": pa.array(around, pa.int64(), mask=around < 0),
            },
        )
        known, first = np.unique(correlation, return_index=True)
        self._calls = known, columns["id"][first]

    def _called(self, correlation: Int64Array) -> dict[str, Any]:
        """Return the columns api and correlation of work."""
        known, ids = self._calls
        if not len(known):
            api = pa.nulls(len(correlation), pa.int64())
        else:
            place = np.minimum(np.searchsorted(known, correlation), len(known) - 1)
            missing = (known[place] != correlation) | (correlation <= 0)
            api = pa.array(ids[place], pa.int64(), mask=missing)
        return {"api": api, "correlation": pa.array(correlation, pa.int64(), mask=correlation <= 0)}

    def _write_kernels(self) -> None:
        order, columns = self._timed("kernels")
        stream = self._ints("kernels", "Stream_Id")
        if not stream.any():  # older versions write the queue alone
            stream = self._ints("kernels", "Queue_Id")
        self._kernel_streams = stream[order]
        block = {
            axis: np.maximum(self._ints("kernels", f"Workgroup_Size_{axis.upper()}"), 1) for axis in "xyz"
        }
        # ROCm counts the threads of a grid where CUDA counts its blocks.
        grid = {axis: -(-self._ints("kernels", f"Grid_Size_{axis.upper()}") // block[axis]) for axis in "xyz"}
        shared = np.maximum(
            self._ints("kernels", "Group_Segment_Size"), self._ints("kernels", "LDS_Block_Size")
        )
        device = self._device("kernels")[order]
        self._kernel_places = set(zip(device.tolist(), self._kernel_streams.tolist(), strict=True))
        self.part.write(
            "kernels",
            {
                **columns,
                "device": device,
                "context": device + 1,
                "stream": self._kernel_streams,
                "name": self._texts("kernels", "Kernel_Name", lambda text: _short(text)).take(order),
                "demangled": self._texts("kernels", "Kernel_Name", lambda text: _full(text)).take(order),
                "mangled": self._texts(
                    "kernels", "Kernel_Name", lambda text: text if text.startswith("_Z") else None
                ).take(order),
                **{f"grid_{axis}": values[order] for axis, values in grid.items()},
                **{f"block_{axis}": values[order] for axis, values in block.items()},
                "registers": self._ints("kernels", "VGPR_Count")[order],
                "static_shared": np.zeros(len(order), np.int64),
                "dynamic_shared": shared[order],
                **self._called(self._ints("kernels", "Correlation_Id")[order]),
            },
        )

    def _write_copies(self) -> None:
        order, columns = self._timed("copies")
        size = self._ints("copies", "Bytes")[order]
        if len(size) and not size.any():
            self.notes.append(
                ("warning", "copies have no size in CSV files: record with `--output-format json`", len(size))
            )
        source, target = (
            self._device("copies", f"{which}_Agent_Id", missing=-1)[order]
            for which in ("Source", "Destination")
        )
        device = np.where(target >= 0, target, np.maximum(source, 0))
        stream = self._ints("copies", "Stream_Id")[order]
        self._copy_places = set(zip(device.tolist(), stream.tolist(), strict=True))
        self.part.write(
            "memcpys",
            {
                **columns,
                "device": device,
                "context": device + 1,
                "stream": stream,
                "bytes": size,
                "kind": self._texts("copies", "Direction", copy_kind).take(order),
                **self._called(self._ints("copies", "Correlation_Id")[order]),
            },
        )

    def _write_allocations(self) -> None:
        order, columns = self._timed("allocations")
        rows = self.process.tables["allocations"].take(order).to_pylist() if len(order) else []
        live: dict[int, tuple[int, int]] = {}  # address: bytes, device
        totals: dict[int, int] = {}
        made = []
        for row in rows:
            address = int(row["Address"] or "0", 16)
            frees = "FREE" in row["Operation"]
            device = self._devices.get(row["Agent_Id"], -1)
            size, device = live.pop(address, (0, device)) if frees else (row["Allocation_Size"], device)
            if not frees:
                live[address] = size, device
            totals[device] = totals.get(device, 0) + (-size if frees else size)
            made.append((address, "free" if frees else "allocate", size, device, totals[device]))
        address_of, operation, sizes, device_of, total = zip(*made, strict=True) if made else ((),) * 5
        device = np.array(device_of, np.int64)
        self.part.write(
            "gpu_memory",
            {
                "id": columns["id"],
                "process": columns["process"],
                "device": pa.array(device, pa.int64(), mask=device < 0),
                "start": columns["start"],
                "operation": pa.array(operation, pa.string()).dictionary_encode(),
                "kind": pa.array(
                    ["Device" if one >= 0 else "Host" for one in device_of], pa.string()
                ).dictionary_encode(),
                "address": pa.array(address_of, pa.uint64()),
                "bytes": pa.array(sizes, pa.int64()),
                "total": pa.array(total, pa.int64()),
                **self._called(self._ints("allocations", "Correlation_Id")[order]),
            },
        )

    def _write_hardware(self) -> None:
        gpus = dict(enumerate(self.process.gpus))
        places = self._kernel_places | self._copy_places
        devices = sorted({*gpus, *(device for device, _ in places)})
        about: list[dict[str, Any]] = []
        for device in devices:
            gpu = gpus.get(device)
            about.append(
                {
                    "process": self.key,
                    "device": device,
                    "name": gpu.name if gpu else f"GPU {device}",
                    "multiprocessors": gpu.units if gpu else None,
                    "memory": gpu.memory if gpu else None,
                }
            )
        self.part.write("devices", about)
        self.part.write(
            "contexts", [{"process": self.key, "context": device + 1, "device": device} for device in devices]
        )
        streams = {stream: device + 1 for device, stream in sorted(places, reverse=True)}
        self.part.write(
            "streams",
            [
                {"process": self.key, "context": context, "stream": stream}
                for stream, context in sorted(streams.items())
            ],
        )

    def described(self, host: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the row of `processes`, and those of `threads`."""
        process = self.process
        row = {
            "process": self.key,
            "pid": process.pid,
            "parent_pid": 0,
            "host": host,
            "rank": process.rank,
            "executable": process.name.partition(" ")[0],
            "command": process.name,
            "start": self.begin,
            "end": self.end,
            "primary": self.number == 0,
            "exited": True,
            "name": process.name.partition(" ")[0].rpartition("/")[2] or None,
            "recorded": True,
        }
        threads = [
            {
                "thread": self.key * THREADS_PER_PROCESS + place,
                "process": self.key,
                "tid": tid & 0x7FFFFFFF,
                "name": None,
                "start": self.begin,
            }
            for place, tid in enumerate(self._tids)
        ]
        return row, threads


def copy_kind(direction: str) -> str:
    """Return the kind of a copy such as `MEMORY_COPY_HOST_TO_DEVICE`."""
    match = _DIRECTION.search(direction)
    return f"{match[1].title()}-to-{match[2].title()}" if match else "Unknown"


def _is_loose(operation: str) -> bool:
    return operation.endswith(("RangeStartA", "ProcessRangeA"))


def _by_number(text: str) -> tuple[int, str]:
    match = _NUMBER.search(text)
    return int(match[0]) if match else 0, text


def _full(name: str) -> str | None:
    return names.demangled(name.removesuffix(".kd"))


def _short(name: str) -> str | None:
    full = _full(name)
    return names.function(full) if full else None


def _whole(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece."""
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], pa.string())
