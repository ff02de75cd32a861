"""What the stats of GPUs must say, computed from the files of other tools by plain loops: nothing here is shared with what is tested."""

from __future__ import annotations

import bisect
import gzip
import json
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

Call = tuple[Any, int, int]  # thread, start, end


@dataclass
class Op:
    """What a GPU did. `role`: compute, communication or memory; `call`: number of its call, None for none."""

    start: int
    end: int
    stream: int
    role: str
    call: Any = None
    direction: str = ""
    bytes: int = 0
    staged: bool = False


@dataclass
class Gpu:
    """A GPU, its operations, and the calls and waits of its process."""

    ops: list[Op] = field(default_factory=list)
    calls: dict[Any, Call] = field(default_factory=dict)
    waits: dict[Any, list[tuple[int, int]]] = field(default_factory=lambda: defaultdict(list))

    def parts(self) -> Counter[frozenset[str]]:
        """For how long which roles ran at once; nothing: from the first to the last operation."""
        edges = sorted(
            [(op.start, 1, op.role) for op in self.ops] + [(op.end, -1, op.role) for op in self.ops]
        )
        running: Counter[str] = Counter()
        found: Counter[frozenset[str]] = Counter()
        before = edges[0][0]
        for time, change, role in edges:
            found[frozenset(name for name in running if running[name])] += time - before
            running[role] += change
            before = time
        return found

    def idle(self) -> Counter[str]:
        """The time between operations by cause, gap by gap."""
        found: Counter[str] = Counter()
        reach = None
        for op in sorted(self.ops, key=lambda op: op.start):
            if reach is not None and op.start > reach:
                for start, end, cause in self._gap(reach, op):
                    found[cause] += end - start
            reach = op.end if reach is None else max(reach, op.end)
        return found

    def _gap(self, begin: int, op: Op) -> list[tuple[int, int, str]]:
        call = self.calls.get(op.call)
        if call is None:
            return [(begin, op.start, "unknown")]
        called = min(max(call[1], begin), op.start)
        pieces, now = [], begin
        waits = self.waits.get(call[0], [])
        place = bisect.bisect_right(waits, (begin, 1 << 62)) - 1
        if place >= 0 and waits[place][1] > begin and called > begin:
            until = min(waits[place][1] + min(begin - waits[place][0], 1_000_000), called)
            pieces.append((begin, until, "sync-bound"))
            now = until
        for start, end in waits[place + 1 :]:
            if start >= called:
                break
            start, end = max(start, now), min(end, called)
            if end > start:
                pieces += [(now, start, "host-bound"), (start, end, "sync-bound")]
                now = end
        pieces.append((now, called, "host-bound"))
        late = call[2] <= begin and op.start - called > 50_000
        pieces.append(
            (called, op.start, "unknown" if late else "copy-bound" if op.staged else "launch-bound")
        )
        return pieces

    def queue(self, stream: int) -> tuple[int, int, float]:
        """The most launches in the queue of a stream, how many there were, and the mean over time."""
        begun: dict[Any, int] = {}
        for op in self.ops:
            if op.stream == stream and op.call in self.calls:
                begun[op.call] = min(op.start, begun.get(op.call, op.start))
        edges = sorted(
            [(self.calls[key][1], -1) for key in begun]
            + [(max(start, self.calls[key][1]), 1) for key, start in begun.items()]
        )
        length = most = area = 0
        before = edges[0][0]
        for time, change in edges:
            area += length * (time - before)
            most = max(most, length if time > before else 0)
            length -= change
            before = time
        return most, len(begun), area / max(edges[-1][0] - edges[0][0], 1)

    def latencies(self) -> tuple[list[int], list[int]]:
        """From call to kernel: of launches into a free stream, and of those behind other work."""
        free: list[int] = []
        behind: list[int] = []
        for stream in {op.stream for op in self.ops}:
            reach, seen = -(1 << 62), set()
            for op in sorted((op for op in self.ops if op.stream == stream), key=lambda op: op.start):
                if op.call in self.calls and op.call not in seen and not op.direction:
                    called = self.calls[op.call][1]
                    (free if reach <= called else behind).append(max(op.start - called, 0))
                seen.add(op.call)
                reach = max(reach, op.end)
        return free, behind

    def directions(self) -> dict[str, tuple[int, int, int]]:
        """Bytes, operations and time (the union) by direction of copies."""
        found = {}
        for direction in {op.direction for op in self.ops if op.direction}:
            own = sorted((op.start, op.end) for op in self.ops if op.direction == direction)
            union = reach = 0
            for start, end in own:
                union += max(end - max(start, reach), 0)
                reach = max(reach, end)
            found[direction] = sum(op.bytes for op in self.ops if op.direction == direction), len(own), union
        return found


def of_nsys(file: Path) -> dict[int, Gpu]:
    """Read an export of nsys by its tables: GPUs by their numbers, of which no two processes have the same."""
    found: dict[int, Gpu] = defaultdict(Gpu)
    with closing(sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)) as source:
        names = dict(source.execute("SELECT id, value FROM StringIds"))
        calls = {}
        waits = defaultdict(list)
        text = 'SELECT globalTid, start, "end", correlationId, nameId FROM CUPTI_ACTIVITY_KIND_RUNTIME'
        for thread, start, end, correlation, name in source.execute(text):
            calls[thread >> 24, correlation] = (thread, start, end)
            if _waits(names[name]):
                waits[thread].append((start, end))
        tables = {name for (name,) in source.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        shared = 'globalPid >> 24, correlationId, deviceId, streamId, start, "end"'
        for process, correlation, device, stream, start, end, name in source.execute(
            f"SELECT {shared}, demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL"
        ):
            found[device].ops.append(Op(start, end, stream, _role(names[name]), (process, correlation)))
        kinds = {1: "Host-to-Device", 2: "Device-to-Host", 8: "Device-to-Device", 10: "Peer-to-Peer"}
        if "CUPTI_ACTIVITY_KIND_MEMCPY" in tables:
            for process, correlation, device, stream, start, end, kind, size, first, last in source.execute(
                f"SELECT {shared}, copyKind, bytes, srcKind, dstKind FROM CUPTI_ACTIVITY_KIND_MEMCPY"
            ):
                key, staged = (process, correlation), 0 in (first, last)
                found[device].ops.append(
                    Op(start, end, stream, "memory", key, f"[CUDA memcpy {kinds[kind]}]", size, staged)
                )
                if staged and key in calls:
                    waits[calls[key][0]].append(calls[key][1:])
        if "CUPTI_ACTIVITY_KIND_MEMSET" in tables:
            for process, correlation, device, stream, start, end, size in source.execute(
                f"SELECT {shared}, bytes FROM CUPTI_ACTIVITY_KIND_MEMSET"
            ):
                found[device].ops.append(
                    Op(start, end, stream, "memory", (process, correlation), "[CUDA memset]", size)
                )
    for gpu in found.values():
        gpu.calls, gpu.waits = calls, {thread: _joined(spans) for thread, spans in waits.items()}
    return dict(found)


def of_kineto(file: Path) -> dict[int, Gpu]:
    """Read a trace of PyTorch's profiler by its events."""
    with gzip.open(file, "rt", encoding="utf-8") as stream:
        events = json.load(stream, parse_float=Decimal)  # ns since 1970 are too many for a float
    found: dict[int, Gpu] = defaultdict(Gpu)
    calls: dict[Any, Call] = {}
    waits = defaultdict(list)
    for event in events if isinstance(events, list) else events["traceEvents"]:
        category, about = str(event.get("cat", "")).lower(), event.get("args") or {}
        if event.get("ph") != "X":
            continue
        start, length = round(event["ts"] * 1000), round(event.get("dur", 0) * 1000)
        end = start + length
        if category in ("cuda_runtime", "cuda_driver", "runtime"):
            thread = event["pid"], event["tid"]
            calls[about.get("correlation")] = (thread, start, end)
            if _waits(event["name"]):
                waits[thread].append((start, end))
        elif category in ("kernel", "gpu_memcpy", "memcpy", "gpu_memset", "memset"):
            name, direction = str(event["name"]), ""
            role = _role(name) if category == "kernel" else "memory"
            if role == "memory":
                ends = {
                    "HtoD": "Host-to-Device",
                    "DtoH": "Device-to-Host",
                    "DtoD": "Device-to-Device",
                    "PtoP": "Peer-to-Peer",
                }
                direction = next(
                    (f"[CUDA memcpy {text}]" for short, text in ends.items() if short in name),
                    "[CUDA memset]",
                )
            op = Op(
                start,
                end,
                about["stream"],
                role,
                about.get("correlation"),
                direction,
                int(about.get("bytes", 0)),
                "Pageable" in name,
            )
            found[about["device"]].ops.append(op)
    for gpu in found.values():
        staged = [calls[op.call] for op in gpu.ops if op.staged and op.call in calls]
        for thread, start, end in staged:
            waits[thread].append((start, end))
    for gpu in found.values():
        gpu.calls, gpu.waits = calls, {thread: _joined(spans) for thread, spans in waits.items()}
    return dict(found)


def _role(name: str) -> str:
    return "communication" if "nccl" in name.lower() or "all_reduce" in name else "compute"


def _waits(name: str) -> bool:
    synchronous = ("cudaMemcpy", "hipMemcpy", "cuMemcpy")
    return (
        "Synchronize" in name
        or name.split("_v")[0] in ("cudaFree", "hipFree", "cuMemFree", "cudaFreeHost", "hipFreeHost")
        or (name.startswith(synchronous) and "Async" not in name)
    )


def _joined(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if found and start <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        elif end > start:
            found.append((start, end))
    return found
