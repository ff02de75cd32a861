"""A program that runs on paper: threads that call CUDA, streams, events, collectives. Tells when all of it happens, and writes a report.

Written without a look at the graph of the critical path, which is tested against it: time goes forward call by call, and whoever has to
wait waits. Running it again with other lengths is the truth that a what-if has to meet.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplens.testing.timeline import timeline

LATENCY, RETURN, OWN = (
    6,
    4,
    2,
)  # from a call to its operation; from the end of work to that of the wait; a wait with nothing to wait for
ORIGIN = 1_000_000_000
Row = dict[str, Any]
Instruction = tuple[Any, ...]
Scale = Callable[[str], float]


@dataclass
class Thread:
    """What one thread does: `(what, *arguments)`."""

    process: int
    instructions: list[Instruction] = field(default_factory=list)


@dataclass
class Run:
    """Rows of what happened, by table, and when the last of them ended: what a thread computes behind its last call nobody sees."""

    tables: dict[str, list[Row]] = field(
        default_factory=lambda: {
            name: [] for name in ("cuda_api", "kernels", "memcpys", "syncs", "cuda_events")
        }
    )
    end: int = 0
    begins: dict[str, dict[int, int]] = field(default_factory=dict)

    def add(self, table: str, row: Row) -> int:
        self.tables[table].append(row)
        self.end = max(self.end, row.get("end", 0) if table != "syncs" else 0)
        return len(self.tables[table]) - 1


def run(threads: list[Thread], scale: Scale = lambda name: 1.0) -> Run:
    """Let it happen. `scale`: what the length of a kernel, a call or `cpu` is multiplied by. Collectives are met until nothing changes."""
    meets: dict[str, int] = {}
    while True:
        found = _once(threads, scale, meets)
        met = {name: max(begins.values()) for name, begins in found.begins.items()}
        if met == meets:
            return found
        meets = met


def _once(threads: list[Thread], scale: Scale, meets: dict[str, int]) -> Run:
    result = Run()
    free: dict[tuple[int, int], int] = {}  # when a stream is through with what it has
    events: dict[tuple[int, int], tuple[int, int]] = {}  # when, and which record
    now = [0] * len(threads)
    done = [0] * len(threads)
    while any(done[n] < len(thread.instructions) for n, thread in enumerate(threads)):
        n = min(
            (n for n, thread in enumerate(threads) if done[n] < len(thread.instructions)),
            key=lambda n: (now[n], n),
        )
        process = threads[n].process
        what, *arguments = threads[n].instructions[done[n]]
        done[n] += 1
        begin = now[n]
        if what == "cpu":
            now[n] += int(arguments[0] * scale("cpu"))
            continue
        call: Row = {"process": process, "thread": n, "start": begin, "name": what}
        if what in ("cudaLaunchKernel", "cudaMemcpyAsync", "cudaMemcpy"):
            stream, name, length, calling = arguments
            start = max(begin + LATENCY, free.get((process, stream), 0))
            end = start + int(length * scale(name))
            if name.startswith("nccl"):
                result.begins.setdefault(name, {})[process] = start
                end = max(meets.get(name, start), start) + int(length * scale(name))
            free[process, stream] = end
            now[n] = end + RETURN if what == "cudaMemcpy" else begin + int(calling * scale(what))
            number = result.add("cuda_api", {**call, "end": now[n]})
            table = "kernels" if what == "cudaLaunchKernel" else "memcpys"
            result.add(
                table,
                {
                    "process": process,
                    "stream": stream,
                    "start": start,
                    "end": end,
                    "name": name,
                    "call": number,
                },
            )
            continue
        now[n] = begin + OWN
        if what == "cudaEventRecord":
            event, stream = arguments
            events[process, event] = (free.get((process, stream), 0), len(result.tables["cuda_events"]) + 1)
            number = result.add("cuda_api", {**call, "end": now[n]})
            result.add(
                "cuda_events",
                {"process": process, "stream": stream, "start": begin, "event": event, "call": number},
            )
            continue
        kind, awaited, about = "Context", 0, {}
        if what == "cudaStreamWaitEvent":
            event, stream = arguments
            kind, about = (
                "Stream wait event",
                {"stream": stream, "event": event, "event_sync": events[process, event][1]},
            )
            free[process, stream] = max(free.get((process, stream), 0), events[process, event][0])
        elif what == "cudaStreamSynchronize":
            kind, awaited, about = "Stream", free.get((process, arguments[0]), 0), {"stream": arguments[0]}
        elif what == "cudaEventSynchronize":
            kind, awaited, about = (
                "Event",
                events[process, arguments[0]][0],
                {"event": arguments[0], "event_sync": events[process, arguments[0]][1]},
            )
        else:
            awaited = max((end for (of, _), end in free.items() if of == process), default=0)
        if awaited:
            now[n] = max(now[n], awaited + RETURN)
        number = result.add("cuda_api", {**call, "end": now[n]})
        result.add(
            "syncs",
            {"process": process, "start": begin, "end": now[n], "kind": kind, "call": number, **about},
        )
    return result


def program(
    rng: random.Random, *, processes: int = 1, threads: int = 1, length: int = 25, collectives: bool = False
) -> list[Thread]:
    """Make a random program. Every thread has streams of its own; it begins with each thing once while nothing else goes on."""
    made = [Thread(process) for process in range(processes) for _ in range(threads)]
    for n, thread in enumerate(made):
        streams = [n * 2, n * 2 + 1]
        todo = thread.instructions
        todo += [
            ("cudaLaunchKernel", streams[0], "warm", 20, 4),
            ("cudaStreamSynchronize", streams[0]),
            ("cpu", 30),
        ]
        todo += [
            ("cudaMemcpyAsync", streams[0], "HtoD", 20, 4),
            ("cudaEventRecord", n, streams[0]),
            ("cudaEventSynchronize", n),
            ("cpu", 30),
        ]
        todo += [("cudaStreamSynchronize", streams[0]), ("cudaEventSynchronize", n)]
        if threads == 1:
            todo += [("cudaDeviceSynchronize",), ("cpu", 10)]
        for number in range(length):
            stream, other = rng.sample(streams, 2)
            size, calling = rng.randrange(2, 60) * 2, rng.randrange(2, 10) * 2
            todo += [("cpu", rng.randrange(1, 30) * 2)] if rng.random() < 0.5 else []
            name = rng.choice(("gemm", "relu", "softmax"))
            choice = rng.random()
            if choice < 0.45:
                todo += [("cudaLaunchKernel", stream, name, size, calling)]
            elif choice < 0.55:
                todo += [("cudaMemcpyAsync", stream, rng.choice(("HtoD", "DtoD")), size, calling)]
            elif choice < 0.62:
                todo += [("cudaMemcpy", stream, "DtoH", size, calling)]
            elif choice < 0.75:
                event = 1000 * (n + 1) + rng.randrange(
                    1, 4
                )  # threads share none: which comes first could change
                todo += [("cudaEventRecord", event, stream), ("cudaStreamWaitEvent", event, other)]
            elif choice < 0.82:
                todo += [("cudaStreamSynchronize", stream)]
            elif choice < 0.88 and threads == 1:
                todo += [("cudaDeviceSynchronize",)]
            elif collectives and threads == 1:
                continue
            else:
                todo += [("cudaEventSynchronize", n)]
            if collectives and number % 6 == 5:
                todo += [("cudaLaunchKernel", streams[0], f"nccl{number}", 40, calling)]
    return made


def write(path: Path, happened: Run, threads: list[Thread], **more: Any) -> Path:
    """Write what happened as a report. Keys of processes and threads are those of a drawn report with `p0/t0`, `p0/t1`."""
    heads = [f"p{thread.process}/t{n} |!" for n, thread in enumerate(threads)]
    per_process, per_thread = 1 << 32, 1 << 20
    numbers = [
        sum(1 for one in threads[:n] if one.process == thread.process) for n, thread in enumerate(threads)
    ]
    keys = [thread.process * per_thread + number for thread, number in zip(threads, numbers, strict=True)]
    ids: dict[str, list[int]] = {}
    tables: dict[str, list[Row]] = {}
    for name, rows in happened.tables.items():
        order = sorted(
            range(len(rows)), key=lambda place: (rows[place]["process"], rows[place]["start"], place)
        )
        counts: dict[int, int] = {}
        ids[name] = [0] * len(rows)
        for place in order:
            process = rows[place]["process"]
            counts[process] = counts.get(process, -1) + 1
            ids[name][place] = process * per_process + counts[process]
        tables[name] = [{**rows[place], "id": ids[name][place], "at": place} for place in order]
    for name, table in tables.items():
        tables[name] = [_row(name, row, ids["cuda_api"], keys) for row in table]
    groups = []
    for name in sorted(happened.begins):
        for row in (row for row in tables["kernels"] if row["name"] == name):
            sequence = int(name.removeprefix("nccl"))
            about = {"name": "all_reduce", "group": "world", "sequence": sequence}
            groups.append(
                {
                    "id": row["id"],
                    "process": row["process"],
                    "start": row["start"],
                    "end": row["end"],
                    "kernel": row["id"],
                    **about,
                }
            )
    tables["collectives"] = sorted(groups, key=lambda row: (row["process"], row["start"]))
    timeline(path, "\n".join(heads), tick_ns=1, origin=ORIGIN, tables=tables, **more)
    return path


def _row(table: str, row: Row, calls: list[int], threads: list[int]) -> Row:
    found = {name: value for name, value in row.items() if name not in ("call", "at")}
    found["start"] += ORIGIN
    if "end" in found:
        found["end"] += ORIGIN
    if "call" in row:
        found["api"] = calls[row["call"]]
    place = {"device": 0, "context": 1}
    if table == "cuda_api":
        return {
            **found,
            "thread": threads[row["thread"]],
            "api": "runtime",
            "result": 0,
            "correlation": row["at"],
        }
    if table == "kernels":
        size = {f"{what}_{axis}": 1 for what in ("grid", "block") for axis in "xyz"}
        return {
            **found,
            **place,
            "demangled": row["name"],
            **size,
            "registers": 32,
            "static_shared": 0,
            "dynamic_shared": 0,
        }
    if table == "memcpys":
        del found["name"]
        kind = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device"}[row["name"]]
        return {**found, **place, "bytes": 8, "kind": kind, "asynchronous": True}
    if table == "cuda_events":
        return {**found, **place, "event_sync": row["at"] + 1}
    return {**found, "context": 1}
