"""A recording as nsys would have exported it, of programs that do everything at random: threads nest ranges, launch, copy, allocate."""

from __future__ import annotations

import random

from tests.support.reports.nsys_export import Export, Version, call, global_id, kernel, nvtx, work

PUSH_POP, START_END, DOMAIN = 59, 60, 75
PIDS, DEVICES, STREAMS = (100, 101), 2, 3
_CALLS = {
    "KERNEL": "cudaLaunchKernel_v7000",
    "MEMCPY": "cudaMemcpyAsync_v3020",
    "MEMSET": "cudaMemsetAsync_v3020",
}


def tell(era: Version, seed: int = 1) -> Export:
    """Make the file of one version."""
    export, rng = Export(era), random.Random(seed)
    for number, pid in enumerate(PIDS):
        export.add("PROCESSES", globalPid=global_id(pid), pid=pid, name=f"rank {number}")
        nvtx(export, DOMAIN, 1, tid=(pid, pid), text="io", domainId=3)
        _Program(export, rng, pid).run()
    _unified(export, rng)
    _memory(export, rng)
    for time in range(1000, 9000, 40):
        for device in range(DEVICES):
            export.add(
                "GPU_METRICS",
                rawTimestamp=time,
                timestamp=time,
                typeId=0x100 | device,
                metricId=1,
                value=rng.randrange(101),
            )
    for device in range(DEVICES):
        export.add(
            "TARGET_INFO_GPU_METRICS",
            typeId=0x100 | device,
            sourceId=1,
            typeName="GPU",
            metricId=1,
            metricName="SMs Active [Throughput %]",
        )
        export.add(
            "TARGET_INFO_GPU", vmId=1 << 48, id=device, name="NVIDIA H100", uuid=f"u{device}", cuDevice=device
        )
        for pid in PIDS:
            export.add("TARGET_INFO_CUDA_DEVICE", gpuId=device, cudaId=device, pid=pid)
    return export


class _Program:
    """One process with two threads that take steps in turn; every event has a time of its own."""

    def __init__(self, export: Export, rng: random.Random, pid: int) -> None:
        self._export, self._rng, self._pid = export, rng, pid
        self._threads = [(pid, pid), (pid, pid + 5)]
        self._open: dict[tuple[int, int], list[tuple[int, str, int]]] = {
            thread: [] for thread in self._threads
        }
        self._started: list[tuple[int, str, tuple[int, int]]] = []
        self._free = {(device, stream): 0 for device in range(DEVICES) for stream in range(STREAMS)}
        self._correlation = pid * 7

    def run(self) -> None:
        rng, times = self._rng, dict.fromkeys(self._threads, 100)
        for _ in range(420):
            thread = rng.choice(self._threads)
            now = times[thread] + rng.randrange(1, 20) * 2 + self._threads.index(thread)
            step = rng.choices((self._push, self._pop, self._start, self._end, self._call), (4, 4, 1, 1, 6))[
                0
            ]
            times[thread] = step(now, thread)
        for thread in self._threads:
            for _ in range(len(self._open[thread])):
                times[thread] = self._pop(times[thread] + 2, thread)

    def _push(self, now: int, thread: tuple[int, int]) -> int:
        self._open[thread].append(
            (now, self._rng.choice(("epoch", "step", "load")), self._rng.choice((0, 0, 3)))
        )
        return now

    def _pop(self, now: int, thread: tuple[int, int]) -> int:
        if self._open[thread]:
            start, name, domain = self._open[thread].pop()
            nvtx(self._export, PUSH_POP, start, now, tid=thread, text=name, domainId=domain)
        return now

    def _start(self, now: int, thread: tuple[int, int]) -> int:
        self._started.append((now, self._rng.choice(("request", "batch")), thread))
        return now

    def _end(self, now: int, thread: tuple[int, int]) -> int:
        if self._started:
            start, name, began = self._started.pop(self._rng.randrange(len(self._started)))
            if start < now:
                other = {"endGlobalTid": global_id(*thread)} if thread != began else {}
                nvtx(self._export, START_END, start, now, tid=began, text=name, **other)
        return now

    def _call(self, now: int, thread: tuple[int, int]) -> int:
        """Call something; what it launches runs on its stream when that is free, a graph's two kernels at once."""
        rng = self._rng
        end = now + rng.randrange(1, 30) * 2
        kind = rng.choice(("KERNEL", "KERNEL", "KERNEL", "MEMCPY", "MEMSET", "GRAPH_TRACE", "nodes", "wait"))
        self._correlation += 1
        name = _CALLS.get(kind, "cudaDeviceSynchronize_v3020" if kind == "wait" else "cudaGraphLaunch_v10000")
        if rng.random() < 0.9:  # the others began before the recording
            call(
                self._export,
                name,
                now,
                end,
                self._correlation,
                thread,
                returnValue=0 if rng.random() < 0.95 else 700,
            )
        place = {"pid": self._pid, "deviceId": rng.randrange(DEVICES), "streamId": rng.randrange(STREAMS)}
        if kind == "nodes":
            self._kernel(now, place, graphNodeId=1)
            self._kernel(now, place, graphNodeId=2)
        elif kind == "KERNEL":
            self._kernel(now, place)
        elif kind == "GRAPH_TRACE":
            self._work(kind, *self._when(now, place), place, graphId=rng.randrange(2) + 1, graphExecId=9)
        elif kind == "MEMSET":
            self._work(
                kind,
                *self._when(now, place),
                place,
                bytes=rng.randrange(1, 1 << 20),
                value=0,
                memKind=rng.choice((1, 2, 4)),
            )
        elif kind == "MEMCPY":
            kinds = {
                "copyKind": rng.choice((1, 2, 8)),
                "srcKind": rng.choice((0, 1, 2)),
                "dstKind": rng.choice((0, 1, 2)),
            }
            self._work(kind, *self._when(now, place), place, bytes=rng.randrange(1, 1 << 24), **kinds)
        return end

    def _when(self, now: int, place: dict[str, int]) -> tuple[int, int]:
        start = max(now + self._rng.randrange(1, 40), self._free[place["deviceId"], place["streamId"]])
        end = self._free[place["deviceId"], place["streamId"]] = start + self._rng.randrange(1, 60)
        return start, end

    def _kernel(self, now: int, place: dict[str, int], **more: int) -> None:
        start, end = self._when(now, place)
        name = self._rng.choice(("gemm", "relu", "softmax"))
        kernel(
            self._export,
            name,
            start,
            end,
            self._correlation,
            gridX=self._rng.choice((8, 8, 4096)),
            **place,
            **more,
        )

    def _work(self, kind: str, start: int, end: int, place: dict[str, int], **more: int) -> None:
        work(kind, self._export, start, end, self._correlation, **place, **more)


def _unified(export: Export, rng: random.Random) -> None:
    for _ in range(60):
        start, address = rng.randrange(1000, 9000), rng.randrange(12) * 0x10000
        row = {
            "bytes": rng.randrange(1, 64) * 4096,
            "copyKind": rng.choice((11, 11, 12, 13)),
            "srcKind": 4,
            "dstKind": 4,
        }
        work(
            "MEMCPY",
            export,
            start,
            start + rng.randrange(1, 90),
            0,
            rng.choice(PIDS),
            virtualAddress=address,
            **row,
        )
        place = {"globalPid": global_id(rng.choice(PIDS)), "address": rng.randrange(14) * 0x10000}
        export.add("CUDA_UM_CPU_PAGE_FAULT_EVENTS", start=start, CpuInstruction=0, module=0, **place)
        fault = {"deviceId": 0, "numberOfPageFaults": rng.randrange(1, 9), "faultAccessType": 1}
        export.add("CUDA_UM_GPU_PAGE_FAULT_EVENTS", start=start, end=start + 5, **place, **fault)


def _memory(export: Export, rng: random.Random) -> None:
    for pid in PIDS:
        held: list[tuple[int, int, int, int]] = []
        for step in range(80):
            about = {
                "globalPid": global_id(pid),
                "contextId": 1,
                "pc": 0,
                "correlationId": 0,
                "start": 500 + step * 100 + pid % 2,
            }
            if held and rng.random() < 0.4:
                device, kind, address, size = held.pop(rng.randrange(len(held)))
                operation = 1
            else:
                device, kind, address, size = (
                    rng.randrange(DEVICES),
                    rng.choice((2, 2, 4)),
                    (step + 1) << 24,
                    rng.randrange(1, 1 << 22),
                )
                held.append((device, kind, address, size))
                operation = 0
            place = {
                "deviceId": device,
                "memKind": kind,
                "address": address,
                "bytes": size,
                "memoryOperationType": operation,
            }
            export.add("CUDA_GPU_MEMORY_USAGE_EVENTS", **about, **place)
