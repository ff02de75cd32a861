"""Reports of schedules: what was called when and what ran when, written down one by one; and schedules whose idle causes are known."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplens.storage.writer import THREADS_PER_PROCESS, Facts, write_part

Row = dict[str, Any]
Truth = tuple[int, int, str]  # start, end, cause
_PER_PROCESS = 1 << 32
_KERNEL = {name: 1 for axis in "xyz" for name in (f"grid_{axis}", f"block_{axis}")}


@dataclass
class Schedule:
    """Rows of the tables of CUDA; a call is known by its row until it is written, when ids are given in the order of starts."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    ranks: dict[int, int] = field(default_factory=dict)
    end: int = 0

    def call(
        self, thread: int, start: int, end: int, name: str = "cudaLaunchKernel", process: int = 0
    ) -> Row:
        """Add an API call; `thread` counts from 0 in its process."""
        key = process * THREADS_PER_PROCESS + thread
        return self._add("cuda_api", process, start, end, thread=key, api="runtime", name=name, result=0)

    def kernel(
        self,
        api: Row | None,
        start: int,
        end: int,
        device: int = 0,
        stream: int = 7,
        name: str = "gemm",
        process: int = 0,
        **more: Any,
    ) -> Row:
        """Add a kernel."""
        known = {
            **_KERNEL,
            "registers": 1,
            "static_shared": 0,
            "dynamic_shared": 0,
            "name": name,
            "demangled": name,
        }
        return self._ran("kernels", api, start, end, device, stream, process, **{**known, **more})

    def copy(
        self,
        api: Row | None,
        start: int,
        end: int,
        device: int = 0,
        stream: int = 7,
        process: int = 0,
        kind: str = "HtoD",
        **more: Any,
    ) -> Row:
        """Add a copy."""
        kinds = {"HtoD": "Host-to-Device", "DtoH": "Device-to-Host", "DtoD": "Device-to-Device"}
        return self._ran(
            "memcpys", api, start, end, device, stream, process, kind=kinds[kind], **{"bytes": 4096, **more}
        )

    def memset(
        self, api: Row | None, start: int, end: int, device: int = 0, stream: int = 7, process: int = 0
    ) -> Row:
        """Add a memset."""
        return self._ran("memsets", api, start, end, device, stream, process, bytes=512, value=0)

    def graph(
        self, api: Row | None, start: int, end: int, device: int = 0, stream: int = 7, process: int = 0
    ) -> Row:
        """Add a graph that was recorded as a whole."""
        return self._ran("graphs", api, start, end, device, stream, process, graph=1)

    def record(self, api: Row, stream: int, event: int, device: int = 0, process: int = 0) -> None:
        """Add an event that is recorded into a stream."""
        self._add(
            "cuda_events",
            process,
            api["start"],
            None,
            device=device,
            context=device + 1,
            stream=stream,
            event=event,
            api=api,
        )

    def wait(self, api: Row, stream: int, event: int, device: int = 0, process: int = 0) -> None:
        """Add a stream's wait for an event."""
        about = {
            "kind": "Stream wait event",
            "context": device + 1,
            "stream": stream,
            "event": event,
            "api": api,
        }
        self._add("syncs", process, api["start"], api["end"], **about)

    def write(self, path: Path, **more: Any) -> Path:
        """Write the report; `more`: columns of all devices."""
        processes = sorted({row["process"] for rows in self.rows.values() for row in rows} | {0})
        numbers: Counter[tuple[str, int]] = Counter()
        for table, rows in self.rows.items():
            rows.sort(key=lambda row: (row["process"], row["start"], row.get("end") or 0))
            for row in rows:
                row["id"] = row["process"] * _PER_PROCESS + numbers[table, row["process"]]
                numbers[table, row["process"]] += 1
        for table, rows in self.rows.items():
            for row in rows:
                if isinstance(row.get("api"), dict):
                    row["api"] = row["api"]["id"]
                if table != "cuda_api":
                    row["correlation"] = row.get("api")
                else:
                    row["correlation"] = row["id"]
        threads = sorted({(row["process"], row["thread"]) for row in self.rows.get("cuda_api", [])})
        found = sorted(
            {
                (row["process"], row["device"])
                for rows in self.rows.values()
                for row in rows
                if row.get("device") is not None
            }
        )
        facts = Facts(
            "host-100-1",
            "host",
            "boot",
            command=["run"],
            origin=0,
            end=self.end,
            sources={"cuda": {"on": True}},
        )
        shared = {
            "host": "host",
            "start": 0,
            "end": self.end,
            "parent_pid": 1,
            "executable": "run",
            "command": "run",
            "exited": True,
        }
        tables = {
            "processes": [
                {"process": key, "pid": 100 + key, "rank": self.ranks.get(key), "primary": key == 0, **shared}
                for key in processes
            ],
            "threads": [
                {"thread": key, "process": p, "tid": 1000 + key % 1000, "name": f"t{key}", "start": 0}
                for p, key in threads
            ],
            "devices": [{"process": p, "device": d, "name": f"GPU {d}", **more} for p, d in found],
            "contexts": [{"process": p, "device": d, "context": d + 1} for p, d in found],
            **self.rows,
        }
        write_part(path, facts, tables)
        return path

    def _ran(
        self,
        table: str,
        api: Row | None,
        start: int,
        end: int,
        device: int,
        stream: int,
        process: int,
        **more: Any,
    ) -> Row:
        return self._add(
            table, process, start, end, device=device, context=device + 1, stream=stream, api=api, **more
        )

    def _add(self, table: str, process: int, start: int, end: int | None, **more: Any) -> Row:
        row: Row = {"process": process, "start": start, **({} if end is None else {"end": end}), **more}
        self.rows.setdefault(table, []).append(row)
        self.end = max(self.end, start, end or 0)
        return row


class Scenes:
    """A GPU of its own whose gaps are made one after the other, each by a scene that knows why it is there.

    The stream is 7, what it waits for is on the streams from 20 on; `truth` are the pieces of the idle time of stream 7.
    """

    def __init__(
        self, schedule: Schedule, rng: random.Random, device: int, process: int = 0, thread: int = 0
    ) -> None:
        self._schedule, self._rng = schedule, rng
        self._place: dict[str, Any] = {"device": device, "process": process}
        self._process, self._thread, self._device = process, thread, device
        self._others = 20
        self.truth: list[Truth] = []
        self._elsewhere: list[tuple[int, int]] = []
        self.host = 100 + rng.randrange(50)  # when the host is free for the next call
        self.first = self.host + 1_000
        self.now = (
            self.first + 200_000 + self._some(50_000)
        )  # when the stream gets idle: the host has long been ready by then
        self._work: Callable[[int, int], Row] = self._kernel
        self._api: Row | None = self._call()
        self._running = self._kernel(self.first, self.now)

    def act(self, scene: str) -> None:
        """Play one scene: it ends with the stream busy again, and the host long ready."""
        begin = getattr(self, f"_{scene}")()
        self.now = begin + 200_000 + self._some(50_000)
        self._running = self._work(begin, self.now)
        self._work, self.host = self._kernel, begin + 40_000

    @property
    def alone(self) -> list[Truth]:
        """The pieces in which the GPU did nothing on other streams either."""
        found = []
        for start, end, cause in self.truth:
            for began, ended in self._elsewhere:
                if began <= start < ended:
                    start = min(ended, end)
            found += [(start, end, cause)] if end > start else []
        return found

    def _host_late(self) -> int:
        """The host does something else, then launches."""
        called = self.now + self._some(3_000_000)
        return self._launch(self.now, "host-bound", called)

    def _synchronized(self) -> int:
        """The host waits in a call that began before the gap, then needs some time, which counts up to what it had waited, and 1 ms."""
        waited = self._rng.choice([self._some(2_000), self._some(90_000)])
        returns = self.now + self._some(8_000)
        name = self._rng.choice(
            ["cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaMemcpy", "cudaFree", "cuCtxSynchronize"]
        )
        self._schedule.call(self._thread, self.now - waited, returns, name, self._process)
        called = returns + self._some(200_000)
        counted = min(called, returns + min(waited, 1_000_000))
        self._piece(self.now, counted, "sync-bound")
        return self._launch(counted, "host-bound", called)

    def _synchronized_for_long(self) -> int:
        """More than 1 ms after a long wait is the host's own."""
        self.now += 4_000_000
        self._running["end"] = self.now
        returns = self.now + 1_000
        self._schedule.call(
            self._thread, self.now - 3_500_000, returns, "cudaDeviceSynchronize", self._process
        )
        called = returns + 1_000_000 + self._some(900_000)
        self._piece(self.now, returns + 1_000_000, "sync-bound")
        return self._launch(returns + 1_000_000, "host-bound", called)

    def _waits_within(self) -> int:
        """The host waits twice for something else while the stream is idle."""
        cuts = [self.now]
        for _ in range(4):
            cuts.append(cuts[-1] + self._some(40_000))
        for begin, end in ((cuts[1], cuts[2]), (cuts[3], cuts[4])):
            self._schedule.call(self._thread, begin, end, "cudaEventSynchronize", self._process)
            self._piece(begin, end, "sync-bound")
        self._piece(cuts[0], cuts[1], "host-bound")
        self._piece(cuts[2], cuts[3], "host-bound")
        return self._launch(cuts[4], "host-bound", cuts[4] + self._some(100_000))

    def _in_time(self) -> int:
        """The call was made long before; from one operation to the next."""
        begin = self.now + self._some(40_000)
        self._api = self._call()
        self._piece(self.now, begin, "launch-bound")
        return begin

    def _calling(self) -> int:
        """The gap begins while the host is in the launch call."""
        called = self.now - 500
        begin = self.now + self._some(60_000)
        self._api = self._schedule.call(self._thread, called, begin - 1, process=self._process)
        self._piece(self.now, begin, "launch-bound")
        return begin

    def _held_by_nothing(self) -> int:
        """Launched before, and still not begun after more than 50 us."""
        self._api = self._call()
        begin = self.now + 50_001 + self._some(90_000)
        self._piece(self.now, begin, "unknown")
        return begin

    def _without_call(self) -> int:
        self._api = None
        begin = self.now + self._some(70_000)
        self._piece(self.now, begin, "unknown")
        return begin

    def _staged(self) -> int:
        """The call copies pageable memory: late first, then staging."""
        called = self.now + self._some(20_000)
        begin = called + self._some(500_000)
        self._piece(self.now, called, "host-bound")
        self._piece(called, begin, "copy-bound")
        api = self._schedule.call(self._thread, called, begin + 2_000, "cudaMemcpyAsync", self._process)
        memory: dict[str, Any] = {"source_kind": "Pageable", "destination_kind": "Device"}
        self._work = lambda start, end: self._schedule.copy(api, start, end, **self._place, **memory)
        return begin

    def _after_a_copy(self) -> int:
        return self._after("copy-bound", "copy")

    def _after_a_collective(self) -> int:
        return self._after("collective wait", "ncclDevKernel_AllReduce")

    def _after_work(self) -> int:
        return self._after("dependency", "relu")

    def _after(self, cause: str, what: str) -> int:
        """Launched in time, it waits for an event of another stream, or begins just after something there."""
        rng, stream = self._rng, self._others
        self._others += 1
        recorded = rng.random() < 0.5
        other = self._call()
        ended = self.now + 10_001 + self._some(300_000)
        began = self.now - 30_000
        if what == "copy":
            self._schedule.copy(other, began, ended, stream=stream, **self._place)
        else:
            self._schedule.kernel(other, began, ended, stream=stream, name=what, **self._place)
        self._elsewhere.append((began, ended))
        if recorded:
            event = 1000 * (self._device + 1) + stream
            self._schedule.record(self._call("cudaEventRecord"), stream, event, **self._place)
            self._schedule.wait(self._call("cudaStreamWaitEvent"), 7, event, **self._place)
        self._api = self._call()
        begin = ended + (self._some(30_000) if recorded else self._some(9_000))
        self._piece(self.now, ended, cause)
        self._piece(ended, begin, "launch-bound")
        return begin

    def _graph_nodes(self) -> int:
        """Several kernels of one call: those after the first were launched in time."""
        begin = self._host_late()
        for _ in range(3):
            end = begin + self._some(3_000)
            self._kernel(begin, end)
            begin = end + self._some(2_000)
            self._piece(end, begin, "launch-bound")
        return begin

    def _launch(self, since: int, cause: str, called: int) -> int:
        """The host calls, and the work begins some time after that; the call may last longer."""
        begin = called + self._some(20_000)
        self._api = self._schedule.call(
            self._thread, called, called + self._some(30_000), process=self._process
        )
        self._piece(since, called, cause)
        self._piece(called, begin, "launch-bound")
        return begin

    def _call(self, name: str = "cudaLaunchKernel") -> Row:
        """A call while the GPU is busy: in time. Calls of a thread follow one another."""
        start = self.host
        self.host += self._rng.randrange(2, 30)
        return self._schedule.call(self._thread, start, self.host - 1, name, self._process)

    def _kernel(self, start: int, end: int) -> Row:
        return self._schedule.kernel(self._api, start, end, **self._place)

    def _some(self, most: int) -> int:
        return self._rng.randrange(1, most)

    def _piece(self, start: int, end: int, cause: str) -> None:
        if end > start:
            self.truth.append((start, end, cause))


SCENES = [
    *(
        "host_late",
        "synchronized",
        "synchronized_for_long",
        "waits_within",
        "in_time",
        "calling",
        "held_by_nothing",
        "without_call",
    ),
    *("staged", "after_a_copy", "after_a_collective", "after_work", "graph_nodes"),
]


def chaos(seed: int) -> Schedule:
    """Calls, waits and work at random: nothing fits anything."""
    rng = random.Random(seed)
    schedule = Schedule()
    for process in range(2):
        calls = []
        for thread in range(2):
            now = rng.randrange(40)
            for _ in range(40):
                end = now + rng.randrange(1, 30)
                name = rng.choice(
                    ["cudaLaunchKernel"] * 3
                    + ["cudaDeviceSynchronize", "cudaMemcpy", "cudaMalloc", "cudaMemcpyAsync"]
                )
                calls.append(schedule.call(thread, now, end, name, process))
                if rng.random() < 0.2:  # the driver within the runtime
                    schedule.call(thread, now, end - rng.randrange(2), "cuCtxSynchronize", process)
                now = end + rng.randrange(30)
        for device in range(2):
            for stream in (7, 13):
                now = rng.randrange(60)
                for _ in range(25):
                    end = now + rng.randrange(60)
                    api = rng.choice([None, *rng.sample(calls, 4)])
                    kind = rng.random()
                    place: dict[str, Any] = {"device": device, "stream": stream, "process": process}
                    if kind < 0.6:
                        schedule.kernel(
                            api, now, end, name=rng.choice(["gemm", "ncclDevKernel_AllReduce"]), **place
                        )
                    elif kind < 0.8:
                        schedule.copy(
                            api, now, end, **place, source_kind=rng.choice(["Pageable", "Pinned", None])
                        )
                    else:
                        schedule.memset(api, now, end, **place)
                    now = end + rng.choice([0, 0, rng.randrange(80), -rng.randrange(1, 20)])
    return schedule
