"""The events of a Kineto trace, as lines of JSON: of one process, category by category."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.ranges.projection import on_streams
from warplens.exporters.chrome.json_text import microseconds
from warplens.exporters.op_facts import OpFacts
from warplens.exporters.tracks import batches, values
from warplens.model.framework_tables import OPERATORS

if TYPE_CHECKING:
    from warplens.report import Report

_AT_ONCE = 1 << 16  # as Python objects
_LOW = (1 << 32) - 1
_OPS = {
    "sequence": "Sequence number",
    "shapes": "Input Dims",
    "types": "Input type",
    "strides": "Input Strides",
    "concrete": "Concrete Inputs",
}
_SYNCS = {
    "Context": "Context Sync",
    "Stream": "Stream Sync",
    "Event": "Event Sync",
    "Stream wait event": "Stream Wait Event",
}
_COLLECTIVE = {
    "name": "Collective name",
    "group": "Process Group Name",
    "group_size": "Group size",
    "sequence": "Seq",
    "elements_in": "In msg nelems",
    "elements_out": "Out msg nelems",
    "type": "dtype",
}


class KinetoEvents:
    """The events of the process `key`, whose id is `pid`; times are counted from `origin`.

    `tids`: of its threads.
    """

    def __init__(self, report: Report, key: int, pid: int, tids: dict[int, int]) -> None:
        self._report, self._key, self._pid, self._tids = report, key, pid, tids
        self._origin = report.origin
        self._ranges: dict[int, int] = {}
        self._collectives = self._by_kernel()

    def all(self) -> Iterator[list[str]]:
        """Yield all events, piece by piece."""
        yield from self._annotations()
        yield from self._each("nvtx_marks", ("thread", "start", "message"), self._mark)
        yield from self._each(
            "python_calls",
            ("id", "thread", "start", "end", "kind", "name", "file", "line", "parent"),
            self._python,
        )
        yield from self._each(
            "cuda_api", ("thread", "start", "end", "api", "name", "correlation", "range"), self._call
        )
        launched = ("device", "context", "stream", "start", "end", "correlation", "api")
        sizes = [f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz"]
        memory = ("static_shared", "dynamic_shared", "registers")
        yield from self._each("kernels", ("id", *launched, "demangled", *sizes, *memory), self._kernel)
        kinds = ("kind", "bytes", "source_kind", "destination_kind")
        yield from self._each("memcpys", (*launched, *kinds), self._copy)
        yield from self._each("memsets", (*launched, "bytes", "memory_kind"), self._set)
        yield from self._on_streams()
        yield from self._each(
            "syncs", ("start", "end", "kind", "stream", "context", "correlation"), self._sync
        )
        columns = ("thread", "start", "device", "device_type", "address", "bytes", "allocated", "reserved")
        yield from self._each("tensor_memory", columns, self._memory)

    def step_lines(self, steps: pa.Table) -> list[str]:
        """Return the training steps as the profiler of PyTorch would have marked them."""
        rows = [row for row in steps.to_pylist() if row["process"] == self._key]
        return [
            self._whole(
                "user_annotation",
                json.dumps(f"ProfilerStep#{row['index']}"),
                self._pid,
                tid=self._tid(row["thread"]),
                start=row["start"],
                end=row["end"],
                args="",
            )
            for row in rows
        ]

    def _each(
        self, table: str, columns: Sequence[str], shape: Callable[[dict[str, Any]], Iterator[str]]
    ) -> Iterator[list[str]]:
        if not self._report.tables[table]:
            return
        for batch in batches(self._report, table, ("process", *columns), most=_AT_ONCE):
            own = batch.filter(pc.equal(batch.column("process"), self._key)).drop_columns(["process"])
            if own.num_rows:
                yield [line for row in own.to_pylist() for line in shape(row)]

    def _annotations(self) -> Iterator[list[str]]:
        facts = OpFacts(self._report, (*_OPS, "forward"))
        origins = self._forward_operations()
        for batch in batches(
            self._report,
            "nvtx_ranges",
            ("id", "process", "thread", "start", "end", "domain", "message"),
            most=_AT_ONCE,
        ):
            told = dict(facts.of(values(batch, "id")))
            columns = {name: told[name].to_pylist() for name in _OPS if name in told}
            links = told["forward"].to_pylist() if "forward" in told else None
            own = np.flatnonzero(values(batch, "process") == self._key).tolist()
            rows = batch.to_pylist()
            lines: list[str] = []
            for place in own:
                row = rows[place]
                args = [f'"External id":{_external(row["id"])}']
                for name, column in columns.items():
                    if column[place] is not None:
                        args.append(f'"{_OPS[name]}":{_json(column[place])}')
                forward = None if links is None or links[place] is None else origins.get(links[place])
                if forward is not None:
                    args.append(f'"Fwd thread id":{self._tid(forward[0])}')
                    lines += self._flow(row, *forward)
                category = "cpu_op" if row["domain"] == OPERATORS else "user_annotation"
                name = json.dumps(row["message"] or "")
                lines.append(
                    self._whole(
                        category,
                        name,
                        self._pid,
                        tid=self._tid(row["thread"]),
                        start=row["start"],
                        end=row["end"],
                        args=",".join(args),
                    )
                )
            yield lines

    def _forward_operations(self) -> dict[int, tuple[int, int]]:
        """Return thread and begin of the operations that have a backward operation, by their range."""
        if not self._report.tables["ops"]:
            return {}
        rows = self._report.sql(
            f"""SELECT range, thread, "start" FROM ops WHERE process = {self._key}
                AND range IN (SELECT forward FROM ops WHERE forward IS NOT NULL)"""
        )
        return {row["range"]: (row["thread"], row["start"]) for row in rows.to_pylist()}

    def _flow(self, row: dict[str, Any], thread: int, start: int) -> Iterator[str]:
        """Yield the arrow that leads from a forward operation to its backward one."""
        for phase, tid, time in (
            ('"ph":"s"', self._tid(thread), start),
            ('"ph":"f","bp":"e"', self._tid(row["thread"]), row["start"]),
        ):
            where = f'"pid":{self._pid},"tid":{tid},"ts":{self._time(time)}'
            yield f'{{{phase},"id":{_external(row["id"])},{where},"cat":"fwdbwd","name":"fwdbwd"}}'

    def _on_streams(self) -> Iterator[list[str]]:
        """Yield the spans of annotations on each stream, as PyTorch's profiler writes them.

        `gpu_user_annotation`.
        """
        if not self._report.tables["nvtx_ranges"] or not self._report.tables["cuda_api"]:
            return
        for (process, device, _, stream), rows in on_streams(self._report, ("id", "message", "domain")):
            if process != self._key:
                continue
            for batch in rows.to_batches(_AT_ONCE):
                yield [
                    self._whole(
                        "gpu_user_annotation",
                        json.dumps(row["message"] or ""),
                        device,
                        tid=stream,
                        start=row["first"],
                        end=row["last"],
                        args=f'"External id":{_external(row["id"])}',
                    )
                    for row in batch.to_pylist()
                    if row["domain"] != OPERATORS
                ]

    def _mark(self, row: dict[str, Any]) -> Iterator[str]:
        yield self._instant(json.dumps(row["message"] or ""), row, "")

    def _memory(self, row: dict[str, Any]) -> Iterator[str]:
        kind = {"CPU": 0, "CUDA": 1}.get(row["device_type"], 20)
        device = -1 if row["device"] is None else row["device"]
        args = f'"Device Type":{kind},"Device Id":{device},"Addr":{row["address"]},"Bytes":{row["bytes"]}'
        for name, told in (("allocated", "Total Allocated"), ("reserved", "Total Reserved")):
            if row[name] is not None:
                args += f',"{told}":{row[name]}'
        yield self._instant('"[memory]"', row, args)

    def _python(self, row: dict[str, Any]) -> Iterator[str]:
        if row["kind"] != "function":
            return
        where = f"{row['file']}({row['line'] or 0}): " if row["file"] else ""
        args = f'"Python id":{_external(row["id"])}'
        if row["parent"] is not None:
            args += f',"Python parent id":{_external(row["parent"])}'
        name = json.dumps(where + row["name"])
        yield self._whole(
            "python_function",
            name,
            self._pid,
            tid=self._tid(row["thread"]),
            start=row["start"],
            end=row["end"],
            args=args,
        )

    def _call(self, row: dict[str, Any]) -> Iterator[str]:
        correlation = row["correlation"]
        args = f'"correlation":{correlation}'
        if row["range"] is not None:
            self._ranges[correlation] = _external(row["range"])
            args = f'"External id":{_external(row["range"])},{args}'
        category, tid = "cuda_driver" if row["api"] == "driver" else "cuda_runtime", self._tid(row["thread"])
        yield self._whole(
            category,
            json.dumps(row["name"]),
            self._pid,
            tid=tid,
            start=row["start"],
            end=row["end"],
            args=args,
        )
        if correlation:
            where = f'"pid":{self._pid},"tid":{tid},"ts":{self._time(row["start"])}'
            yield f'{{"ph":"s","id":{correlation},{where},"cat":"ac2g","name":"ac2g"}}'

    def _kernel(self, row: dict[str, Any]) -> Iterator[str]:
        shared = row["static_shared"] + row["dynamic_shared"]
        args = f'"registers per thread":{row["registers"]},"shared memory":{shared},'
        args += f'"grid":[{row["grid_x"]},{row["grid_y"]},{row["grid_z"]}],"block":[{row["block_x"]},{row["block_y"]},{row["block_z"]}]'
        if row["id"] in self._collectives:
            args += "," + self._collectives[row["id"]]
        yield from self._on_gpu("kernel", row["demangled"], row, more=args)

    def _copy(self, row: dict[str, Any]) -> Iterator[str]:
        first, to, last = row["kind"].partition("-to-")
        kinds = (
            f" ({row['source_kind']} -> {row['destination_kind']})"
            if row["source_kind"] and row["destination_kind"]
            else ""
        )
        name = f"Memcpy {first[:1]}to{last[:1]}{kinds}" if to else f"Memcpy {row['kind']}"
        took = row["end"] - row["start"]
        rate = f',"memory bandwidth (GB/s)":{row["bytes"] / took:.6g}' if took > 0 else ""
        yield from self._on_gpu("gpu_memcpy", name, row, more=f'"bytes":{row["bytes"]}{rate}')

    def _set(self, row: dict[str, Any]) -> Iterator[str]:
        name = f"Memset ({row['memory_kind'] or 'Unknown'})"
        yield from self._on_gpu("gpu_memset", name, row, more=f'"bytes":{row["bytes"]}')

    def _on_gpu(self, category: str, name: str, row: dict[str, Any], more: str) -> Iterator[str]:
        correlation = row["correlation"] or 0
        external = f'"External id":{self._ranges[correlation]},' if correlation in self._ranges else ""
        place = f'"device":{row["device"]},"context":{row["context"]},"stream":{row["stream"]}'
        args = f'{external}"queued":0,{place},"correlation":{correlation},{more}'
        yield self._whole(
            category,
            json.dumps(name),
            row["device"],
            tid=row["stream"],
            start=row["start"],
            end=row["end"],
            args=args,
        )
        if correlation and row["api"] is not None:
            where = f'"pid":{row["device"]},"tid":{row["stream"]},"ts":{self._time(row["start"])}'
            yield f'{{"ph":"f","id":{correlation},{where},"cat":"ac2g","name":"ac2g","bp":"e"}}'

    def _sync(self, row: dict[str, Any]) -> Iterator[str]:
        stream = -1 if row["stream"] is None else row["stream"]
        args = f'"stream":{stream},"correlation":{row["correlation"] or 0},"device":0,"context":{row["context"] or 0}'
        name = json.dumps(_SYNCS.get(row["kind"], f"{row['kind']} Sync"))
        yield self._whole("cuda_sync", name, 0, tid=stream, start=row["start"], end=row["end"], args=args)

    def _by_kernel(self) -> dict[int, str]:
        """Return what is known of collectives as arguments of their kernels."""
        if not self._report.tables["collectives"]:
            return {}
        rows = self._report.table("collectives", ["kernel", *_COLLECTIVE, "peers"]).to_pylist()
        texts = {}
        for row in rows:
            if row["kernel"] is not None:
                args = [
                    f'"{told}":{_text_or_number(row[name])}'
                    for name, told in _COLLECTIVE.items()
                    if row[name] is not None
                ]
                if row["peers"] is not None:
                    args.append(f'"Process Group Ranks":{json.dumps(row["peers"])}')
                texts[row["kernel"]] = ",".join(args)
        return texts

    def _whole(self, category: str, name: str, pid: int, tid: int, start: int, end: int, args: str) -> str:
        where = f'"pid":{pid},"tid":{tid},"ts":{self._time(start)},"dur":{microseconds(end - start)}'
        return f'{{"ph":"X","cat":"{category}","name":{name},{where},"args":{{{args}}}}}'

    def _instant(self, name: str, row: dict[str, Any], args: str) -> str:
        where = f'"pid":{self._pid},"tid":{self._tid(row["thread"])},"ts":{self._time(row["start"])}'
        return f'{{"ph":"i","s":"t","cat":"cpu_instant_event","name":{name},{where},"args":{{{args}}}}}'

    def _time(self, time: int) -> str:
        return microseconds(time - self._origin)

    def _tid(self, thread: int) -> int:
        return self._tids.get(thread, 0)


def _external(id: int) -> int:
    """Return the number of a row within its process, from 1: 0 means none."""
    return (id & _LOW) + 1


def _json(value: Any) -> str:
    """Return what is JSON in a text as it is; else as a text or number."""
    if isinstance(value, str):
        try:
            json.loads(value)
        except ValueError:
            return json.dumps(value)
        return value
    return json.dumps(value)


def _text_or_number(value: Any) -> str:
    return json.dumps(value)
