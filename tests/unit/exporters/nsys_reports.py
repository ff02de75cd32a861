"""Random reports with something in every table that an export of nsys has a place for, and nothing that it cannot hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from warplens.convert.cpu import os_words
from warplens.storage.writer import Facts, write_part

ORIGIN, INTERVAL = 5_000, 1_000
HOST = "box"
Row = dict[str, Any]
COPIES = ("Host-to-Device", "Device-to-Host", "Device-to-Device", "Peer-to-Peer")
MEMORY = ("Pageable", "Pinned", "Device", "Managed")


@dataclass
class Maker:
    """One report while it is made."""

    chance: Random
    tables: dict[str, list[Row]] = field(default_factory=dict)
    threads: dict[int, list[int]] = field(default_factory=dict)  # of each process
    calls: dict[int, list[Row]] = field(default_factory=dict)
    stacks: dict[int, list[int]] = field(default_factory=dict)

    def one_of(self, *values: Any) -> Any:
        """Return one of some values."""
        return self.chance.choice(values)

    def some(self, most: int = 4) -> range:
        """Return a range of a few numbers; there may be none."""
        return range(self.chance.randint(0, most))

    def maybe(self, value: Any) -> Any:
        """Return the value, or None."""
        return self.chance.choice((value, None))

    def times(self, count: int, least: int = ORIGIN + 1) -> list[int]:
        """Return different times in order."""
        return sorted(self.chance.sample(range(least, least + 100 * count + 400), count)) if count else []

    def spans(self, count: int) -> list[Row]:
        """Return begins, all different, with an end for each."""
        return [{"start": start, "end": start + self.chance.randint(0, 300)} for start in self.times(count)]

    def add(self, table: str, process: int, rows: list[Row]) -> list[Row]:
        """Add the rows of a process in order of their begin, with their ids."""
        rows = sorted(rows, key=lambda row: row["start"])
        made = [
            {"id": process * 2**32 + number, "process": process, **row} for number, row in enumerate(rows)
        ]
        self.tables.setdefault(table, []).extend(made)
        return made


def make(chance: Random, folder: Path) -> Path:
    """Write a random report."""
    maker = Maker(chance)
    for process in range(chance.randint(1, 2)):
        _process(maker, process)
        for step in (
            _frames,
            _ranges,
            _calls,
            _work,
            _waits,
            _memory,
            _unified,
            _library,
            _samples,
            _states,
            _parallel,
        ):
            step(maker, process)
    metrics = [
        {"gpu": maker.one_of(0, 1), "metric": maker.one_of("SM Active", "Power"), "start": start}
        for start in maker.times(len(maker.some(6)))
    ]
    units = {"SM Active": "%", "Power": "W"}
    maker.tables["gpu_metrics"] = [
        {
            "host": HOST,
            "uuid": f"GPU-card{row['gpu']}",
            "unit": units[row["metric"]],
            "value": chance.choice((1.0, 97.5, 1e9)),
            **row,
        }
        for row in metrics
    ]
    facts = {"os": "Debian", "kernel": "6.1", "machine": "x86_64", "cpu": "Some CPU", "cpus": 4}
    maker.tables["targets"] = [{"host": HOST, "boot_id": "b", "memory": 0, **facts}]
    message = {
        "severity": maker.one_of("info", "warning", "error"),
        "code": "x",
        "source": "nvtx",
        "message": "It's lost.",
    }
    maker.tables["diagnostics"] = [{**message, "process": maker.maybe(0), "time": maker.maybe(ORIGIN + 7)}]
    path = folder / "random.warplens"
    write_part(
        path,
        Facts(
            "r", HOST, "b", command=["/bin/p0", "a b"], origin=ORIGIN, end=ORIGIN + 9_000, realtime_offset=77
        ),
        maker.tables,
    )
    return path


def _process(maker: Maker, process: int) -> None:
    pid, path = 1000 + process, f"/bin/p{process}"
    command = "/bin/p0 'a b'" if process == 0 else path
    row = {
        "process": process,
        "pid": pid,
        "parent_pid": 0,
        "host": HOST,
        "rank": process + 3,
        "executable": path,
        "command": command,
    }
    more = {
        "start": ORIGIN,
        "end": ORIGIN + 9_000,
        "primary": process == 0,
        "exited": True,
        "name": f"p{process}",
        "recorded": True,
    }
    maker.tables.setdefault("processes", []).append({**row, **more})
    maker.threads[process] = [process * 2**24 + number for number in range(maker.chance.randint(1, 3))]
    for number, thread in enumerate(maker.threads[process]):
        named = maker.maybe(f"worker {number}")
        row = {"thread": thread, "process": process, "tid": pid + 10 * number, "name": named, "start": ORIGIN}
        maker.tables.setdefault("threads", []).append(row)
    card = {
        "name": "GPU X",
        "bus": "0000:01:00.0",
        "compute_major": 9,
        "compute_minor": 0,
        "multiprocessors": 132,
        "memory": 80 << 30,
    }
    rates = {"memory_bandwidth": 3_000_000_000_000, "clock": 1_980_000_000, "l2_size": 50 << 20}
    for device in (0, 1):
        maker.tables.setdefault("devices", []).append(
            {"process": process, "device": device, "uuid": f"GPU-card{device}", **card, **rates}
        )
        context = {
            "process": process,
            "context": device + 1,
            "device": device,
            "null_stream": maker.maybe(7),
            "name": maker.maybe("ctx"),
        }
        maker.tables.setdefault("contexts", []).append(context)
        for stream in (7, 8):
            place = {"process": process, "context": device + 1, "stream": 10 * device + stream}
            about = {
                "priority": maker.one_of(0, -5),
                "kind": maker.one_of("default", "non-blocking", "null"),
                "name": maker.maybe("s"),
            }
            maker.tables.setdefault("streams", []).append({**place, **about})


def _frames(maker: Maker, process: int) -> None:
    made: list[Row] = []
    for number in range(maker.chance.randint(1, 12)):
        parent = maker.maybe(maker.chance.choice(made)["frame"]) if made else None
        depth = next(row["depth"] for row in made if row["frame"] == parent) + 1 if parent is not None else 0
        kind = maker.one_of("python", "native", "kernel")
        row: Row = {
            "frame": process * 2**32 + number,
            "process": process,
            "parent": parent,
            "depth": depth,
            "kind": kind,
        }
        row["function"] = maker.one_of("main", "do::it(int)", "[libx.so]+0x12", "größe") + str(
            number
        )  # no two alike below one caller
        if kind == "python":
            row |= {
                "file": maker.one_of("/a/train.py", "<string>", "script"),
                "line": maker.chance.randint(1, 99),
            }
        elif kind == "native":
            row |= {
                "module": "libx.so",
                "path": maker.maybe("/usr/lib/libx.so"),
                "address": maker.maybe(0xFFFF_FFFF_8000_0000 + number),
            }
        else:
            row |= {"module": "[kernel.kallsyms]", "address": 4096 + number}
        made.append(row)
    maker.tables.setdefault("frames", []).extend(made)
    maker.stacks[process] = [row["frame"] for row in made]


def _stack(maker: Maker, process: int) -> int | None:
    stack: int | None = maker.maybe(maker.chance.choice(maker.stacks[process]))
    return stack


def _labels(maker: Maker) -> Row:
    category = maker.maybe(maker.chance.randint(1, 3))
    domain = maker.one_of(None, "io", "it's")
    number = maker.one_of({"payload_int": -(2**63)}, {"payload_int": 5}, {"payload_float": 2.5}, {})
    named = f"category {category}" if category else None
    return {
        "domain": domain,
        "category_id": category,
        "category": named,
        "message": maker.maybe("step ü"),
        "color": maker.maybe(0xFF00FF00),
        **number,
    }


def _ranges(maker: Maker, process: int) -> None:
    rows: list[Row] = []
    for thread in maker.threads[process]:
        time, open_ranges = ORIGIN + 1, list[Row]()
        for _ in range(maker.chance.randint(0, 12)):
            time += maker.chance.randint(1, 90)
            if open_ranges and maker.chance.random() < 0.5:
                open_ranges.pop()["end"] = time
                continue
            row = {
                "start": time,
                "depth": len(open_ranges),
                "above": open_ranges[-1] if open_ranges else None,
                "style": "PushPop",
            }
            open_ranges.append({**row, "thread": thread, "unfinished": False, **_labels(maker)})
            rows.append(open_ranges[-1])
        while open_ranges:
            time += 1
            open_ranges.pop()["end"] = time
    for span in maker.spans(len(maker.some())):
        thread, other = (
            maker.chance.choice(maker.threads[process]),
            maker.chance.choice(maker.threads[process]),
        )
        ended = {
            "end_thread": other if other != thread else None,
            "style": "StartEnd",
            "depth": 0,
            "above": None,
        }
        rows.append(
            {**span, "thread": thread, "unfinished": maker.maybe(True) or False, **ended, **_labels(maker)}
        )
    rows.sort(key=lambda row: (row["start"], -row["end"]))
    for number, row in enumerate(rows):
        row["id"] = process * 2**32 + number
    always = {"process": process, "inherited": False, "clipped": False}
    found = [{**row, **always, "parent": row["above"]["id"] if row["above"] else None} for row in rows]
    maker.tables.setdefault("nvtx_ranges", []).extend(found)
    marks = [
        {"start": time, "thread": maker.chance.choice(maker.threads[process]), **_labels(maker)}
        for time in maker.times(len(maker.some()))
    ]
    maker.add("nvtx_marks", process, marks)
    about = {"process": process, "event_type": "range", "type": "json", "at_end": False, "cut": False}
    told = [
        {**about, "event": row["id"], "json": '{"x": "ü"}'} for row in rows if maker.chance.random() < 0.3
    ]
    maker.tables.setdefault("payloads", []).extend(told)


def _around(maker: Maker, thread: int, time: int) -> int | None:
    """The innermost push/pop range of a thread that is open at a time."""
    rows = maker.tables["nvtx_ranges"]
    mine = [
        row
        for row in rows
        if row["thread"] == thread and row["style"] == "PushPop" and row["start"] <= time < row["end"]
    ]
    return max(mine, key=lambda row: int(row["depth"]))["id"] if mine else None


def _of_threads(
    maker: Maker, process: int, spans: list[Row], more: Callable[[], Row], *, ranges: bool = True
) -> list[Row]:
    rows = []
    for span in spans:
        thread = maker.chance.choice(maker.threads[process])
        rows.append(
            {
                **span,
                "thread": thread,
                **({"range": _around(maker, thread, span["start"])} if ranges else {}),
                **more(),
            }
        )
    return rows


def _calls(maker: Maker, process: int) -> None:
    def call() -> Row:
        api = maker.one_of("runtime", "driver")
        name = maker.one_of("cudaLaunchKernel", "cudaMemcpyAsync", "cuMemAlloc_v2")
        return {"api": api, "name": name, "result": maker.one_of(0, 2, -1), "stack": _stack(maker, process)}

    rows = _of_threads(maker, process, maker.spans(len(maker.some(8))), call)
    for number, row in enumerate(rows):
        row["correlation"] = number + 1
    maker.calls[process] = maker.add("cuda_api", process, rows)
    about = [
        {
            **span,
            "thread": maker.maybe(maker.threads[process][0]),
            "kind": maker.one_of("Buffer flush", "Module loading", "JIT compile", "JIT cache load"),
            "name": maker.maybe("why"),
            "correlation": maker.maybe(3),
        }
        for span in maker.spans(len(maker.some()))
    ]
    maker.add("overhead", process, about)


def _called(maker: Maker, process: int) -> Row:
    call = maker.maybe(maker.chance.choice(maker.calls[process])) if maker.calls[process] else None
    return (
        {"correlation": call["correlation"], "api": call["id"]} if call else {"correlation": maker.maybe(999)}
    )


def _placed(maker: Maker, process: int) -> Row:
    device = maker.one_of(0, 1)
    return {
        "device": device,
        "context": device + 1,
        "stream": 10 * device + maker.one_of(7, 8),
        **_called(maker, process),
    }


def _work(maker: Maker, process: int) -> None:
    def spans() -> list[Row]:
        return maker.spans(len(maker.some()))

    def node() -> Row:
        return {"graph_node": maker.maybe(4)}

    for span in (rows := spans()):
        sizes = {
            f"{what}_{axis}": maker.chance.randint(1, 64) for what in ("grid", "block") for axis in "xyz"
        }
        cluster = dict.fromkeys(("cluster_x", "cluster_y", "cluster_z"), maker.one_of(None, 2))
        names = {"name": "gemm", "demangled": "void gemm<int>(int)", "mangled": maker.maybe("_Z4gemm")}
        memory = {
            "static_shared": 64,
            "dynamic_shared": 2**40,
            "shared_executed": maker.maybe(1024),
            "local_per_thread": 0,
            "local_total": 9,
        }
        more = {
            "registers": 255,
            "launch_type": maker.one_of(None, "regular", "cooperative"),
            "graph": maker.maybe(5),
        }
        span |= {**_placed(maker, process), **sizes, **cluster, **names, **memory, **more, **node()}
    maker.add("kernels", process, rows)
    for span in (rows := spans()):
        kinds = {
            "kind": maker.one_of(*COPIES),
            "source_kind": maker.one_of(*MEMORY, None),
            "destination_kind": maker.one_of(*MEMORY, None),
        }
        ends = {
            "source_device": maker.maybe(0),
            "destination_device": maker.maybe(1),
            "copies": maker.maybe(3),
        }
        span |= {
            **_placed(maker, process),
            "bytes": maker.chance.randint(0, 2**40),
            **kinds,
            **ends,
            **node(),
        }
    maker.add("memcpys", process, rows)
    for span in (rows := spans()):
        span |= {
            **_placed(maker, process),
            "bytes": 128,
            "value": 255,
            "memory_kind": maker.one_of(*MEMORY, None),
            **node(),
        }
    maker.add("memsets", process, rows)
    maker.add(
        "graphs",
        process,
        [{**span, **_placed(maker, process), "graph": 4, "graph_exec": 5} for span in spans()],
    )


def _waits(maker: Maker, process: int) -> None:
    rows = []
    for span in maker.spans(len(maker.some())):
        event = maker.maybe(3)
        about = {
            "event": event,
            "event_sync": maker.maybe(1) if event is not None else None,
            "stream": maker.maybe(7),
            "context": 1,
        }
        rows.append(
            {
                **span,
                "kind": maker.one_of("Event", "Stream wait event", "Stream", "Context"),
                **about,
                **_called(maker, process),
            }
        )
    maker.add("syncs", process, rows)
    events = [
        {"start": time, **_placed(maker, process), "event": 3, "event_sync": maker.maybe(1)}
        for time in maker.times(len(maker.some()))
    ]
    maker.add("cuda_events", process, events)


def _memory(maker: Maker, process: int) -> None:
    rows, held, totals = [], dict[int, tuple[str, int]](), dict[str, int]()
    for number, time in enumerate(maker.times(len(maker.some(8)))):
        place = {
            "start": time,
            "device": 0,
            "context": 1,
            "stream": maker.maybe(7),
            **_called(maker, process),
        }
        pool = {"pool_size": maker.maybe(1 << 30), "pool_used": maker.maybe(1 << 20)}
        if maker.chance.random() < 0.2:
            about = {
                "operation": maker.one_of("pool create", "pool destroy", "pool trim"),
                "address": 0x5000,
                "pool": 0x5000,
                "bytes": 0,
            }
            rows.append({**place, **about, **pool, "context": None, "stream": None})
            continue
        if held and maker.chance.random() < 0.5:
            address = maker.chance.choice(list(held))
            kind, size = held.pop(address)
            operation, change = "free", -size
        else:
            address, kind, size = (
                0x7F00_0000_0000 + number,
                maker.one_of("Device", "Pinned"),
                maker.chance.randint(1, 2**34),
            )
            held[address] = kind, size
            operation, change = "allocate", size
        totals[kind] = totals.get(kind, 0) + change
        about = {
            "operation": operation,
            "kind": kind,
            "address": address,
            "bytes": size,
            "total": totals[kind],
            "name": maker.maybe("who"),
        }
        rows.append({**place, **about, **pool, "pool": maker.maybe(0x6000)})
    maker.add("gpu_memory", process, rows)


def _unified(maker: Maker, process: int) -> None:
    rows = []
    for span in maker.spans(len(maker.some(6))):
        kind = maker.one_of("HtoD", "DtoH", "DtoD", "CPU page fault", "GPU page fault")
        row: Row = {**span, "kind": kind, "address": 2**63 + 4096}
        if kind == "CPU page fault":
            row |= {"end": span["start"], "faults": 1, "instruction": maker.maybe("touch()")}
        elif kind == "GPU page fault":
            row |= {"device": 1, "faults": 4, "cause": maker.one_of(None, "read", "atomic")}
        else:
            row |= {"device": 1, "bytes": 65536, "cause": maker.one_of(None, "coherence", "prefetch")}
            row |= {"source": None if kind == "HtoD" else 1, "destination": None if kind == "DtoH" else 1}
        rows.append(row)
    maker.add("um_events", process, rows)


def _library(maker: Maker, process: int) -> None:
    def call() -> Row:
        name = maker.one_of("read", "poll", "pthread_mutex_lock", "fork")
        return {
            "name": name,
            "group": os_words.group(name),
            "result": maker.one_of(0, -1, 4096),
            "stack": _stack(maker, process),
        }

    rows = _of_threads(maker, process, maker.spans(len(maker.some(5))), call)
    for thread in maker.threads[process]:  # each did something
        rows.append({"start": ORIGIN, "end": ORIGIN + 1, "thread": thread, "range": None, **call()})
    maker.add("osrt", process, rows)

    def access() -> Row:
        name = maker.one_of("read", "write", "close", "open")
        moved = maker.chance.randint(0, 9) if name in ("read", "write") else None
        return {"name": name, "operation": name, "path": maker.one_of("/a", "/b c", None), "bytes": moved}

    maker.add(
        "file_access",
        process,
        _of_threads(maker, process, maker.spans(len(maker.some(5))), access, ranges=False),
    )
    system = _of_threads(
        maker,
        process,
        maker.spans(len(maker.some(3))),
        lambda: {"name": "futex", "stack": _stack(maker, process)},
        ranges=False,
    )
    maker.add("syscalls", process, system)


def _samples(maker: Maker, process: int) -> None:
    rows = list[Row]()
    for thread in maker.threads[process]:
        time, before = ORIGIN + 10, object()
        for _ in maker.some(6):
            stack, count = _stack(maker, process), maker.chance.randint(1, 5)
            if stack == before:
                continue
            end = time + (count - 1) * maker.chance.randint(1, 50)
            about = {
                "kind": "native",
                "count": count,
                "weight": count * INTERVAL,
                "on_cpu": True,
                "cpu": 1,
                "stack": stack,
            }
            rows.append(
                {"start": time, "end": end, "thread": thread, "range": _around(maker, thread, time), **about}
            )
            time, before = end + maker.chance.randint(1, 200), stack
    rows.sort(key=lambda row: (int(row["start"]), -int(row["end"])))
    maker.add("samples", process, rows)


def _states(maker: Maker, process: int) -> None:
    rows = list[Row]()
    for thread in maker.threads[process]:
        time = ORIGIN + 5
        for _ in maker.some(8):
            time += maker.one_of(0, 0, 70)  # there may be a gap
            state = maker.one_of("running", "runnable", "blocked")
            end = time + maker.chance.randint(1, 90)
            about = {
                "cpu": maker.one_of(0, 3) if state == "running" else None,
                "reason": maker.one_of(None, "poll", "it's"),
            }
            rows.append({"start": time, "end": end, "thread": thread, "state": state, "exact": True, **about})
            if state != "blocked":
                rows[-1]["reason"] = None
            time = end
    rows.sort(key=lambda row: (row["start"], -row["end"]))
    maker.add("thread_states", process, rows)


def _parallel(maker: Maker, process: int) -> None:
    def message() -> Row:
        kind = maker.one_of("p2p", "collective", "wait", "other")
        row: Row = {"name": f"MPI_{kind}", "kind": kind, "rank": process + 3}
        if kind == "p2p":
            row |= {"communicator": maker.maybe(5), "peer": 1, "tag": maker.maybe(8), "bytes": 1024}
        elif kind == "collective":
            row |= {"communicator": 5, "root": maker.maybe(0), "sent": 64, "received": maker.maybe(2**40)}
        return row

    maker.add("mpi_events", process, _of_threads(maker, process, maker.spans(len(maker.some(6))), message))
    kinds = ("parallel", "sync region wait", "task create", "lock init")
    regions = _of_threads(
        maker,
        process,
        maker.spans(len(maker.some())),
        lambda: {"kind": maker.one_of(*kinds), "name": "region"},
        ranges=False,
    )
    maker.add("openmp_events", process, regions)
    acc = _of_threads(
        maker,
        process,
        maker.spans(len(maker.some())),
        lambda: {"kind": maker.one_of("data", "launch", "other"), "name": "Enter"},
        ranges=False,
    )
    maker.add("openacc_events", process, acc)
