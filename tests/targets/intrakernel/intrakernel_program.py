"""Kernels of the look-alike GPU that record regions: `intrakernel_program.py STEP…`. What they would write is written here.

launch:NAME[:NS] into a buffer on the device, four warps record · host:NAME[:realtime] into memory of the host · busy:NAME a launch without
records · fill:NAME with another kernel between the note and the launch · threads:N so many, each with a buffer · many:N launches into one
buffer · drop: more records than slots · graph:NAME[:REPLAYS] two captured launches among others, the last one seen · replay:NAME[:TIMES]
notes around replays of a graph · free: the memory goes before it is read · garbage: something else lies in the buffer · bad: an address
that is none · gone: the context goes · start, stop: of the capture range · stop_elsewhere: by a thread
without a context · fork: the rest in a child · kill: the end
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from warplens.intrakernel import recording
from warplens.intrakernel.buffers import Buffer, allocate
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

EPOCH = 3_000_000_000_000_000  # of the look-alike's GPU: its clock minus CLOCK_MONOTONIC
LEAD, TAIL = 700, 900  # ns from the begin of a kernel to its first unit, from the last one to its end
TAGS = ["load", "mma", "store"]
cuda = ctypes.CDLL("libcuda.so.1")
kept: list[Buffer] = []


def start() -> None:
    """Begin to use CUDA, as a framework does."""
    context = ctypes.c_void_p()
    assert cuda.cuInit(0) == 0
    assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
    assert cuda.cuCtxSetCurrent(context) == 0


def kernel(name: str, ns: int, stream: ctypes.c_void_p | None = None) -> None:
    """Launch a kernel of 4 blocks."""
    function = ctypes.c_void_p()
    assert cuda.cuModuleGetFunction(ctypes.byref(function), None, f"{name}@{ns}".encode()) == 0
    assert cuda.cuLaunchKernel(function, 4, 1, 1, 32, 1, 1, 0, stream, None, None) == 0


def ran(name: str) -> tuple[int, int]:
    """When the last kernel of that name ran, as the GPU sees it."""
    lines = (
        Path(os.environ["FAKE_CUDA_TRUTH"]).read_text(encoding="utf-8").rpartition("\n")[0].splitlines()
    )  # another may be written
    found = [line for line in map(json.loads, lines) if line["what"] == "kernel" and line["name"] == name]
    return found[-1]["start"] + EPOCH, found[-1]["end"] + EPOCH


def write(buffer: Buffer, first: int, last: int, events: int = 3) -> None:
    """Write what four warps record between two times of the GPU."""
    step = (last - first) // (events + 1)
    regions = [
        BufferEvent(number % 3, first + number * step, first + (number + 1) * step, payload=number)
        for number in range(events)
    ]
    units = [BufferUnit(regions, cta=cta, sm=cta, begin=first, end=last) for cta in range(4)]
    data = bytes(buffer_bytes(units, slots=buffer.slots, generation=buffer.generation))
    ctypes.memmove(buffer.pointer + 256, data[256:], len(data) - 256)


def launch(buffer: Buffer, name: str, ns: int = 2_000_000, events: int = 3, before: str = "") -> None:
    """One launch, and what it records."""
    with buffer.launch(name):
        if before:
            kernel(before, 20_000)
        kernel(f"{name}_kernel", ns)
    assert cuda.cuCtxSynchronize() == 0
    first, last = ran(f"{name}_kernel")
    write(buffer, first + LEAD, last - TAIL, events)


def on_device(name: str = "device buffer") -> Buffer:
    """A buffer that nobody closes."""
    kept.append(allocate(4, 1, slots=8, tags=TAGS, device="cuda", library="cuda", name=name))
    return kept[-1]


def on_host(name: str, clock: int = time.CLOCK_MONOTONIC) -> None:
    """A launch of something on the CPU."""
    buffer = allocate(4, 1, slots=8, tags=TAGS, device="cpu", name="host buffer")
    with buffer.launch(name):
        first = time.clock_gettime_ns(clock)
        time.sleep(0.002)
        write(buffer, first, time.clock_gettime_ns(clock))


def threads(count: int) -> None:
    """Threads that launch at the same time, each kernel under a name of its own."""

    def work(number: int) -> None:
        context = ctypes.c_void_p()
        assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0
        assert cuda.cuCtxSetCurrent(context) == 0
        buffer = on_device(f"buffer {number}")
        for turn in range(3):
            launch(buffer, f"t{number}_{turn}", 200_000)

    running = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()


class Graph:
    """Kernels that are captured in a block, then run as one."""

    def __init__(self) -> None:
        self.stream, self._made, self._run = (ctypes.c_void_p() for _ in range(3))
        assert cuda.cuStreamCreate(ctypes.byref(self.stream), 1) == 0

    def __enter__(self) -> ctypes.c_void_p:
        assert cuda.cuStreamBeginCapture_v2(self.stream, 0) == 0
        return self.stream

    def __exit__(self, *_: object) -> None:
        assert cuda.cuStreamEndCapture(self.stream, ctypes.byref(self._made)) == 0
        assert cuda.cuGraphInstantiateWithFlags(ctypes.byref(self._run), self._made, ctypes.c_uint64(0)) == 0

    def replay(self) -> None:
        assert cuda.cuGraphLaunch(self._run, self.stream) == 0

    def wait(self) -> None:
        assert cuda.cuCtxSynchronize() == 0


def graph(name: str, replays: int = 1) -> None:
    """Two launches that are captured, then run: nothing that the agent does may spoil the capture."""
    made, buffer = Graph(), on_device()
    with made as stream:
        kernel("before", 150_000, stream)
        for turn in range(2):
            with buffer.launch(name, stream=stream.value):
                kernel(f"{name}{turn}_kernel", 200_000 + 90_000 * turn, stream)
        kernel("after", 100_000, stream)
    for _ in range(replays):
        made.replay()
    kernel("other", 295_000)  # as if it were that: the same thread, blocks and length
    made.wait()
    first, last = ran(f"{name}1_kernel")
    write(buffer, first + LEAD, last - TAIL)


def replay(name: str, times: int = 1) -> None:
    """Notes around replays of a graph that was captured without any."""
    made, buffer = Graph(), on_device()
    with made as stream:
        kernel("before", 50_000, stream)
        kernel(f"{name}_kernel", 200_000, stream)
        kernel("after", 90_000, stream)
    for _ in range(times):
        with buffer.launch(name, stream=stream.value):
            made.replay()
        made.wait()
        first, last = ran(f"{name}_kernel")
        write(buffer, first + LEAD, last - TAIL)


def spoil(how: str) -> None:
    """A launch whose buffer cannot be read afterwards."""
    if how == "bad":
        number = recording.register(4096, 1 << 20, on_device=False, name="nowhere")
        assert recording.launched(number, 1, "bad")
        recording.store(number)
        return
    buffer = on_device()
    launch(buffer, how)
    if how == "garbage":
        ctypes.memset(buffer.pointer, 0x5A, 256)
    elif how == "free":
        assert cuda.cuMemFree_v2(ctypes.c_uint64(buffer.pointer)) == 0
        buffer._place._owned = False  # type: ignore[attr-defined]
    else:
        for other in kept[:-1]:
            other.close()
        assert cuda.cuDevicePrimaryCtxReset_v2(0) == 0
    buffer.close()


def play(words: list[str]) -> None:
    """Play all steps."""
    for at, word in enumerate(words):
        what, _, rest = word.partition(":")
        parts = rest.split(":") if rest else []
        if what == "launch":
            launch(on_device(), parts[0], int(parts[1]) if len(parts) > 1 else 2_000_000)
        elif what == "host":
            on_host(parts[0], time.CLOCK_REALTIME if len(parts) > 1 else time.CLOCK_MONOTONIC)
        elif what == "busy":
            kernel(parts[0], 100_000)
        elif what == "fill":
            launch(on_device(), parts[0], before="fill")
        elif what == "many":
            buffer = on_device()
            for number in range(int(parts[0])):
                launch(buffer, f"step{number}", 300_000)
        elif what in ("graph", "replay"):
            {"graph": graph, "replay": replay}[what](parts[0], *map(int, parts[1:]))
        elif what == "drop":
            launch(on_device(), "drop", events=20)
        elif what == "threads":
            threads(int(parts[0]))
        elif what in ("free", "garbage", "bad", "gone"):
            spoil(what)
        elif what in ("start", "stop"):
            assert getattr(cuda, f"cuProfiler{what.title()}")() == 0
        elif what == "stop_elsewhere":
            other = threading.Thread(target=cuda.cuProfilerStop)
            other.start()
            other.join()
        elif what == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "fork":
            child = os.fork()
            if child == 0:
                play(words[at + 1 :])
                return
            os.waitpid(child, 0)
            return
        else:
            raise SystemExit(f"intrakernel_program: what is {word}?")


if __name__ == "__main__":
    start()
    play(sys.argv[1:])
