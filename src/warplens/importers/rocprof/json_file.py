"""Reads the JSON of rocprofv3: all records of one or more processes, with kinds and operations by number."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from warplens.errors import ReportError
from warplens.importers.rocprof.records import RocmAgent, RocmProcess, normalised

ROOT = "rocprofiler-sdk-tool"
_LARGEST = 2 << 30  # bytes: such a file is held in memory as a whole
_GPU = 2  # ROCPROFILER_AGENT_TYPE_GPU
_CALLS = ("hip_api", "hsa_api", "rccl_api", "rocdecode_api", "rocjpeg_api")
_TAKEN = (*_CALLS, "marker_api", "kernel_dispatch", "memory_copy", "memory_allocation")
_TIMES = {"Start_Timestamp": "start_timestamp", "End_Timestamp": "end_timestamp"}
_MESSAGES = ("MarkA", "RangePushA", "RangeStartA", "ThreadRangeA", "ProcessRangeA")

_Row = Mapping[str, Any]


def read(source: Path) -> list[RocmProcess]:
    """Return the processes of the file. Raises ReportError for a broken one."""
    if source.stat().st_size > _LARGEST:
        raise ReportError(
            f"{source} has more than {_LARGEST >> 30} GiB: record with `rocprofv3 --output-format csv`."
        )
    try:
        root = json.loads(source.read_bytes())[ROOT]
        return [_process(row) for row in (root if isinstance(root, list) else [root])]
    except (
        ValueError,
        KeyError,
        IndexError,
        TypeError,
        AttributeError,
        OverflowError,
        RecursionError,
    ) as error:
        raise ReportError(
            f"{source} is broken: {type(error).__name__}: {error}. Copy it again, or record it again."
        ) from error


class _Names:
    """Names of kinds, operations, kernels and markers by their numbers."""

    def __init__(
        self,
        kinds: list[_Row],
        markers: dict[int, str],
        kernels: dict[int, _Row],
        agents: dict[int, str],
    ) -> None:
        self._kinds, self._markers, self._kernels, self._agents = kinds, markers, kernels, agents

    @classmethod
    def of(cls, process: _Row) -> _Names:
        """Return the names that a process's records use."""
        strings = process.get("strings", {})
        return cls(
            strings.get("buffer_records", []),
            {one["key"]: one["value"] for one in strings.get("marker_api", [])},
            {one["kernel_id"]: one for one in process.get("kernel_symbols", [])},
            {
                agent["id"]["handle"]: f"{kind} {number}"
                for kind, is_gpu in (("CPU", False), ("GPU", True))
                for number, agent in enumerate(_agents(process, is_gpu=is_gpu))
            },
        )

    def kind(self, record: _Row) -> str:
        return str(self._kinds[record["kind"]]["kind"])

    def operation(self, record: _Row) -> str:
        return str(self._kinds[record["kind"]]["operations"][record["operation"]])

    def marker(self, record: _Row) -> str:
        number = record["correlation_id"]["internal"]
        return str(self._markers.get(number, "")) or self.operation(record)

    def kernel(self, number: int) -> str:
        symbol = self._kernels.get(number)
        if symbol is None:
            return f"kernel {number}"
        return str(symbol.get("formatted_kernel_name") or symbol["kernel_name"])

    def registers(self, number: int) -> int:
        return int(self._kernels.get(number, {}).get("arch_vgpr_count", 0))

    def agent(self, handle: _Row) -> str:
        return self._agents.get(handle["handle"], f"Agent {handle['handle']}")


def _process(row: _Row) -> RocmProcess:
    about, names = row["metadata"], _Names.of(row)
    command = about.get("command") or []
    process = RocmProcess(
        int(about["pid"]),
        " ".join(map(str, command)) if isinstance(command, list) else str(command),
        begin=int(about.get("init_time", 0)) or None,
        end=int(about.get("fini_time", 0)) or None,
    )
    process.gpus = list(_gpus(row, names))
    records: dict[str, list[_Row]] = row.get("buffer_records", {})
    others = [(kind, rows) for kind, rows in records.items() if kind not in _TAKEN]
    for kind, rows in (*others, *row.get("callback_records", {}).items()):
        process.drop(kind, len(rows))
    calls = [record for kind in _CALLS for record in records.get(kind, [])]
    _add(
        process,
        "calls",
        calls,
        columns={
            "Thread_Id": [record["thread_id"] for record in calls],
            "Domain": [names.kind(record) for record in calls],
            "Function": [names.operation(record) for record in calls],
        },
    )
    _markers(process, records.get("marker_api", []), names)
    _kernels(process, records.get("kernel_dispatch", []), names)
    copies = records.get("memory_copy", [])
    _add(
        process,
        "copies",
        copies,
        columns={
            "Stream_Id": [record.get("stream_id", {}).get("handle", 0) for record in copies],
            "Bytes": [record.get("bytes", 0) for record in copies],
            "Direction": [names.operation(record) for record in copies],
            "Source_Agent_Id": [names.agent(record["src_agent_id"]) for record in copies],
            "Destination_Agent_Id": [names.agent(record["dst_agent_id"]) for record in copies],
        },
    )
    memory = records.get("memory_allocation", [])
    _add(
        process,
        "allocations",
        memory,
        columns={
            "Allocation_Size": [record["allocation_size"] for record in memory],
            "Operation": [names.operation(record) for record in memory],
            "Agent_Id": [names.agent(record["agent_id"]) for record in memory],
            "Address": [str(record["address"]) for record in memory],
        },
    )
    return process


def _add(process: RocmProcess, kind: str, records: list[_Row], columns: dict[str, Any]) -> None:
    """Add records with these columns, their times and their correlation."""
    times = {name: [record[key] for record in records] for name, key in _TIMES.items()}
    correlation = [record["correlation_id"]["internal"] for record in records]
    process.add(kind, normalised(kind, {**times, "Correlation_Id": correlation, **columns}))


def _markers(process: RocmProcess, records: list[_Row], names: _Names) -> None:
    marked = [record for record in records if names.operation(record).endswith(_MESSAGES)]
    process.drop("calls that control or name markers", len(records) - len(marked))
    _add(
        process,
        "markers",
        marked,
        columns={
            "Thread_Id": [record["thread_id"] for record in marked],
            "Function": [names.marker(record) for record in marked],
            "Operation": [names.operation(record) for record in marked],
        },
    )


def _kernels(process: RocmProcess, records: list[_Row], names: _Names) -> None:
    about = [record["dispatch_info"] for record in records]
    sizes = {
        f"{column}_Size_{axis.upper()}": [one[key][axis] for one in about]
        for column, key in (("Workgroup", "workgroup_size"), ("Grid", "grid_size"))
        for axis in "xyz"
    }
    _add(
        process,
        "kernels",
        records,
        columns={
            **sizes,
            "Thread_Id": [record.get("thread_id", 0) for record in records],
            "Stream_Id": [record.get("stream_id", {}).get("handle", 0) for record in records],
            "Queue_Id": [one["queue_id"]["handle"] for one in about],
            "Group_Segment_Size": [one.get("group_segment_size", 0) for one in about],
            "VGPR_Count": [names.registers(one["kernel_id"]) for one in about],
            "Agent_Id": [names.agent(one["agent_id"]) for one in about],
            "Kernel_Name": [names.kernel(one["kernel_id"]) for one in about],
        },
    )


def _agents(process: _Row, *, is_gpu: bool) -> list[_Row]:
    """Return the GPUs, or the other agents, in the order of their nodes."""
    agents = [agent for agent in process.get("agents", []) if (agent["type"] == _GPU) == is_gpu]
    return sorted(agents, key=lambda agent: agent.get("node_id", 0))


def _gpus(row: _Row, names: _Names) -> Iterator[RocmAgent]:
    for number, agent in enumerate(_agents(row, is_gpu=True)):
        banks = agent.get("mem_banks") or []
        yield RocmAgent(
            (names.agent(agent["id"]),),
            str(agent.get("product_name") or agent.get("name") or f"GPU {number}"),
            units=agent.get("cu_count"),
            memory=sum(int(bank.get("size_in_bytes", 0)) for bank in banks) or None,
        )
