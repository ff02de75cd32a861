"""Writes what rocprofv3 writes, JSON and CSV, from one list of records; by the format of ROCprofiler-SDK 1.0 (ROCm 7)."""

from __future__ import annotations

import csv
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_KINDS = {
    "KERNEL_DISPATCH": ["KERNEL_DISPATCH_COMPLETE"],
    "MEMORY_COPY": [
        "MEMORY_COPY_HOST_TO_DEVICE",
        "MEMORY_COPY_DEVICE_TO_HOST",
        "MEMORY_COPY_DEVICE_TO_DEVICE",
    ],
    "HIP_RUNTIME_API": ["hipLaunchKernel", "hipMemcpyAsync", "hipDeviceSynchronize", "hipMalloc"],
    "HSA_CORE_API": ["hsa_signal_wait_scacquire"],
    "RCCL_API": ["ncclAllReduce"],
    "MARKER_CORE_API": ["roctxMarkA", "roctxRangePushA", "roctxRangeStartA"],
    "MARKER_NAME_API": ["roctxNameOsThread"],
    "MEMORY_ALLOCATION": ["MEMORY_ALLOCATION_ALLOCATE", "MEMORY_ALLOCATION_FREE"],
    "SCRATCH_MEMORY": ["SCRATCH_MEMORY_ALLOC"],
}
_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_FILES = {
    "HIP_RUNTIME_API": "hip_api",
    "HSA_CORE_API": "hsa_api",
    "RCCL_API": "rccl_api",
    "MARKER_CORE_API": "marker_api",
    "MARKER_NAME_API": "marker_api",
}


@dataclass
class RocprofOutput:
    """Records of one process with two GPUs (nodes 1 and 2; node 0 is the CPU). Times are ns."""

    pid: int = 717
    kernels: list[dict[str, Any]] = field(default_factory=list)
    copies: list[dict[str, Any]] = field(default_factory=list)
    calls: list[tuple[str, str, int, int, int, int]] = field(default_factory=list)
    memory: list[tuple[str, int, int, int, int]] = field(default_factory=list)
    _correlation: int = 0

    def call(self, name: str, start: int, end: int, *, tid: int = 717, kind: str = "HIP_RUNTIME_API") -> int:
        """Add a call; of markers `name` is the message behind the operation, `roctxRangePushA:step`."""
        self._correlation += 1
        self.calls.append((kind, name, tid, self._correlation, start, end))
        return self._correlation

    def kernel(self, name: str, start: int, end: int, *, by: int = 0, gpu: int = 0, stream: int = 1) -> None:
        """Add a kernel of 4 blocks of 64 threads."""
        row = {"name": name, "start": start, "end": end, "by": by, "gpu": gpu, "stream": stream}
        self.kernels.append(row)

    def copy(self, direction: str, start: int, end: int, *, size: int, by: int = 0) -> None:
        """Add a copy of `size` bytes, `HOST_TO_DEVICE` or `DEVICE_TO_HOST`, with GPU 0."""
        row = {"direction": direction, "start": start, "end": end, "size": size, "by": by}
        self.copies.append(row)

    def allocate(self, operation: str, at: int, *, address: int, size: int = 0) -> None:
        """Add an allocation (`ALLOCATE`) or its end (`FREE`) on GPU 0."""
        self._correlation += 1
        self.memory.append((operation, at, address, size, self._correlation))

    def as_json(self) -> dict[str, Any]:
        """Return the file as rocprofv3 writes it for one process."""
        names = list(dict.fromkeys(kernel["name"] for kernel in self.kernels))
        records: dict[str, list[dict[str, Any]]] = {
            name: [] for name in ("kernel_dispatch", "hip_api", "hsa_api", "marker_api", "rccl_api")
        } | {"memory_copy": [], "memory_allocation": [], "scratch_memory": [{"size": 64}]}
        messages = []
        for kind, name, tid, correlation, start, end in self.calls:
            operation, _, message = name.partition(":")
            row = self._record(kind, operation, start, end=end, correlation=correlation)
            records[_FILES[kind]].append({**row, "thread_id": tid or self.pid})
            if message:
                messages.append({"key": correlation, "value": message})
        for kernel in self.kernels:
            row = self._record(
                "KERNEL_DISPATCH", 0, kernel["start"], end=kernel["end"], correlation=kernel["by"]
            )
            records["kernel_dispatch"].append(
                {
                    **row,
                    "thread_id": self.pid,
                    "stream_id": {"handle": kernel["stream"]},
                    "dispatch_info": {
                        "agent_id": {"handle": 1000 + kernel["gpu"]},
                        "queue_id": {"handle": 9},
                        "kernel_id": 11 + names.index(kernel["name"]),
                        "private_segment_size": 0,
                        "group_segment_size": 512,
                        "workgroup_size": {"x": 64, "y": 1, "z": 1},
                        "grid_size": {"x": 256, "y": 1, "z": 1},
                    },
                }
            )
        for copy in self.copies:
            name = f"MEMORY_COPY_{copy['direction']}"
            row = self._record("MEMORY_COPY", name, copy["start"], end=copy["end"], correlation=copy["by"])
            ends = [{"handle": 999}, {"handle": 1000}]
            if copy["direction"].startswith("DEVICE"):
                ends.reverse()
            agents = {"src_agent_id": ends[0], "dst_agent_id": ends[1]}
            records["memory_copy"].append(
                {**row, **agents, "bytes": copy["size"], "stream_id": {"handle": 1}}
            )
        for operation, at, address, size, correlation in self.memory:
            name = f"MEMORY_ALLOCATION_{operation}"
            row = self._record("MEMORY_ALLOCATION", name, at, end=at + 5, correlation=correlation)
            about = {"agent_id": {"handle": 1000}, "address": f"0x{address:016x}", "allocation_size": size}
            records["memory_allocation"].append({**row, **about, "thread_id": self.pid})
        agents = [
            {"id": {"handle": 999}, "type": 1, "node_id": 0, "name": "AMD EPYC"},
            {"id": {"handle": 1000}, "type": 2, "node_id": 1, "name": "gfx942", "cu_count": 304},
            {"id": {"handle": 1001}, "type": 2, "node_id": 2, "name": "gfx942", "cu_count": 304},
        ]
        process = {
            "metadata": {"pid": self.pid, "init_time": 0, "fini_time": 0, "command": ["./train", "-n", "3"]},
            "agents": agents,
            "strings": {
                "buffer_records": [{"kind": kind, "operations": names} for kind, names in _KINDS.items()],
                "marker_api": messages,
            },
            "kernel_symbols": [
                {
                    "kernel_id": 11 + place,
                    "kernel_name": name,
                    "formatted_kernel_name": name,
                    "arch_vgpr_count": 24,
                }
                for place, name in enumerate(names)
            ],
            "buffer_records": records,
            "callback_records": {"counter_collection": []},
        }
        return {"rocprofiler-sdk-tool": [process]}

    def write_json(self, folder: Path) -> Path:
        """Write the JSON file and return its path."""
        path = folder / f"{self.pid}_results.json"
        path.write_text(json.dumps(self.as_json(), indent=1))
        return path

    def write_csv(self, folder: Path, *, old: bool = False) -> Path:
        """Write the CSV files into a folder and return it; `old`: with the columns of ROCm 6.2."""
        folder.mkdir(exist_ok=True)
        times = ["Correlation_Id", "Start_Timestamp", "End_Timestamp"]
        sizes = [f"{what}_Size_{axis}" for what in ("Workgroup", "Grid") for axis in "XYZ"]
        by_file: dict[str, list[list[Any]]] = {}
        for kind, name, tid, correlation, start, end in self.calls:
            operation, _, message = name.partition(":")
            thread = 0 if operation == "roctxRangeStartA" else tid
            row = [kind, message or operation, self.pid, thread, correlation, start, end]
            by_file.setdefault(_FILES[kind], []).append(row)
        for name, rows in by_file.items():
            self._table(
                folder, f"{name}_trace", ["Domain", "Function", "Process_Id", "Thread_Id", *times], rows
            )
        label = (lambda node: node) if old else (lambda node: f"Agent {node}")
        middle = [] if old else ["Stream_Id", "Thread_Id"]
        self._table(
            folder,
            "kernel_trace",
            ["Kind", "Agent_Id", "Queue_Id", *middle, "Kernel_Id", "Kernel_Name", *times]
            + (
                ["Private_Segment_Size", "Group_Segment_Size"]
                if old
                else ["LDS_Block_Size", "Scratch_Size", "VGPR_Count"]
            )
            + sizes,
            [
                ["KERNEL_DISPATCH", label(1 + one["gpu"]), 9, *([] if old else [one["stream"], self.pid])]
                + [11, one["name"], one["by"], one["start"], one["end"]]
                + ([0, 512] if old else [512, 0, 24])
                + [64, 1, 1, 256, 1, 1]
                for one in self.kernels
            ],
        )
        self._table(
            folder,
            "memory_copy_trace",
            [
                "Kind",
                "Direction",
                *([] if old else ["Stream_Id"]),
                "Source_Agent_Id",
                "Destination_Agent_Id",
                *times,
            ],
            [
                ["MEMORY_COPY", f"MEMORY_COPY_{one['direction']}", *([] if old else [1])]
                + [label(node) for node in ((0, 1) if one["direction"].startswith("HOST") else (1, 0))]
                + [one["by"], one["start"], one["end"]]
                for one in self.copies
            ],
        )
        if self.memory:
            self._table(
                folder,
                "memory_allocation_trace",
                ["Kind", "Operation", "Agent_Id", "Allocation_Size", "Address", *times],
                [
                    [
                        *("MEMORY_ALLOCATION", f"MEMORY_ALLOCATION_{operation}", label(1) if size else ""),
                        *(size, f"0x{address:016x}", correlation, at, at + 5),
                    ]
                    for operation, at, address, size, correlation in self.memory
                ],
            )
        agents = [(0, "CPU", 0, "AMD EPYC"), (1, "GPU", 304, "gfx942"), (2, "GPU", 304, "gfx942")]
        self._table(
            folder,
            "agent_info",
            ["Node_Id", "Logical_Node_Id", "Agent_Type", "Cu_Count", "Name"],
            [[node, node, kind, units, name] for node, kind, units, name in agents],
        )
        return folder

    def _record(
        self, kind: str, operation: str | int, start: int, *, end: int, correlation: int
    ) -> dict[str, Any]:
        number = operation if isinstance(operation, int) else _KINDS[kind].index(operation)
        return {
            "size": 128,
            "kind": _NUMBERS[kind],
            "operation": number,
            "correlation_id": {"internal": correlation, "external": 0},
            "start_timestamp": start,
            "end_timestamp": end,
        }

    def _table(self, folder: Path, name: str, columns: list[str], rows: list[list[Any]]) -> None:
        with open(folder / f"{self.pid}_{name}.csv", "w", newline="") as file:
            writer = csv.writer(file, quoting=csv.QUOTE_NONNUMERIC, lineterminator="\n")
            writer.writerows([columns, *rows])
