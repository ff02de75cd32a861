"""A host with one thread and a GPU with streams, in time of their own: programs with a mistake and without it take exactly so long."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.reports.gpu_schedule import Row, Schedule

LATENCY = 3_000  # ns from the end of a call to the begin of what it launched, at the soonest
PROCESSORS = 132
WAKE = 2_000  # ns from the end of what was waited for to the return of the call
Memory = dict[str, Any]
PAGEABLE: Memory = {"source_kind": "Pageable", "destination_kind": "Device"}
PINNED: Memory = {"source_kind": "Pinned", "destination_kind": "Device"}


class Machine:
    """Plays a program, call by call; times in ns."""

    def __init__(self) -> None:
        self.schedule = Schedule()
        self.now = 0
        self._free: dict[int, int] = {}

    @property
    def end(self) -> int:
        """When host and GPU are done."""
        return max(self.now, *self._free.values())

    def work(self, ns: int) -> None:
        """The host does something else."""
        self.now += ns

    def launch(self, ns: int, call: int = 5_000, stream: int = 7, after: int = 0, **columns: Any) -> int:
        """Launch a kernel that begins after a time; return its end. Its grid fills the GPU, unless `columns` say something else."""
        return self._run(ns, self._call("cudaLaunchKernel", call), stream, after, **columns)

    def graph(self, kernels: int, ns: int, call: int = 10_000) -> None:
        """Launch a graph of kernels, one after the other."""
        api = self._call("cudaGraphLaunch", call)
        for _ in range(kernels):
            self._run(ns, api, 7, 0)

    def copy(
        self,
        ns: int,
        size: int,
        memory: Memory,
        *,
        waits: bool,
        stream: int = 7,
        name: str = "cudaMemcpyAsync",
    ) -> int:
        """Copy to the GPU; return when it is done."""
        start = self.now
        begin = max(start + LATENCY, self._free.get(stream, 0))
        self._free[stream] = end = begin + ns
        self.now = end + WAKE if waits else start + 5_000
        api = self.schedule.call(0, start, self.now, name)
        self.schedule.copy(api, begin, end, stream=stream, bytes=size, **memory)
        return end

    def wait(self, name: str = "cudaDeviceSynchronize", call: int = 1_000) -> None:
        """Wait for everything."""
        start = self.now
        self.now = max(start + call, max(self._free.values(), default=0) + WAKE)
        self.schedule.call(0, start, self.now, name)

    def call(self, name: str, ns: int) -> None:
        """Be in a call that has nothing to do with the GPU."""
        self._call(name, ns)

    def write(self, path: Path) -> Path:
        """Write what happened as a report."""
        return self.schedule.write(path, multiprocessors=PROCESSORS)

    def _call(self, name: str, ns: int) -> Row:
        start = self.now
        self.now += ns
        return self.schedule.call(0, start, self.now, name)

    def _run(self, ns: int, api: Row, stream: int, after: int, **columns: Any) -> int:
        begin = max(self.now + LATENCY, self._free.get(stream, 0), after)
        self._free[stream] = begin + ns
        self.schedule.kernel(api, begin, begin + ns, stream=stream, **{"grid_x": PROCESSORS, **columns})
        return begin + ns
