"""Launches in several streams and in CUDA graphs are told apart; one small recording may be kept."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.optional_dependencies import ROOT

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "numpy"), pytest.mark.timeout(600)]
SOURCE = (ROOT / "tests" / "dsl" / "programs" / "cuda_recording.cu").read_text(encoding="utf-8")
NON_BLOCKING, THREAD_LOCAL = 1, 1


class Device:
    """Kernels of cuda_recording.cu on the first device, and the driver's calls for streams and graphs."""

    def __init__(self) -> None:
        from warplens.intrakernel.device.cuda_kernels import gpu_compiler
        from warplens.intrakernel.driver import driver

        if gpu_compiler() is None:
            pytest.skip("neither nvcc nor cuda-bindings is installed")
        self.driver = driver()
        self.context = self.driver.context_of_device()
        self._library = ctypes.CDLL("libcuda.so.1")

    def do(self, call: str, *words: Any) -> None:
        with self.driver.using(self.context):
            assert getattr(self._library, call)(*words) == 0, call

    def stream(self) -> int:
        made = ctypes.c_void_p()
        self.do("cuStreamCreate", ctypes.byref(made), NON_BLOCKING)
        return made.value or 0

    def buffer(self, **named: Any) -> Any:
        from warplens.intrakernel import allocate
        from warplens.intrakernel.dsl import cuda

        return allocate(tags=cuda.tags(SOURCE), device="cuda", library="cuda", **named)

    def kernels(self, buffer: Any, **wishes: bool) -> Any:
        from warplens.intrakernel.device.cuda_kernels import GpuKernels, compile_gpu
        from warplens.intrakernel.dsl import cuda

        major, minor = self.driver.capability(0)
        return GpuKernels(
            compile_gpu(SOURCE, f"sm_{major}{minor}", cuda.bind(buffer, **wishes).options), buffer.pointer
        )


@pytest.fixture(name="device")
def _device() -> Device:
    return Device()


def test_streams_do_not_meet(device: Device) -> None:
    """Each has a buffer of its own, and launches of both run at the same time."""
    buffers = [device.buffer(grid=32, warps=2, slots=64, name=name) for name in ("one", "other")]
    streams = [device.stream() for _ in buffers]
    kernels = [device.kernels(buffer, generation=True) for buffer in buffers]
    for launch in range(20):
        for number, (buffer, stream) in enumerate(zip(buffers, streams, strict=True)):
            with buffer.launch("regions", stream=stream):
                kernels[number].launch("regions", 32, 64, 1 + launch + number, buffer, stream=stream)
    for number, buffer in enumerate(buffers):
        found = buffer.decode()
        assert found.losses() == []
        assert found.generation == 20
        assert found.units["events"].tolist() == [2 * (20 + number)] * 64


@pytest.mark.parametrize("mode", ["slices", "claim"])
def test_a_graph_shows_its_latest_replay(device: Device, mode: str) -> None:
    shape = {"grid": 16, "warps": 2} if mode == "slices" else {"units": 32, "warps": 2}
    buffer, stream = device.buffer(slots=16, mode=mode, **shape), device.stream()
    kernels = device.kernels(buffer)
    # Before the capture: a second launch is what writes generation and counter, and so makes nodes of the graph for them.
    with buffer.launch("regions", stream=stream):
        kernels.launch("regions", 16, 64, 1, buffer, stream=stream)
    graph, executable = ctypes.c_void_p(), ctypes.c_void_p()
    device.do("cuStreamBeginCapture_v2", ctypes.c_void_p(stream), THREAD_LOCAL)
    with buffer.launch("replayed", stream=stream):
        kernels.launch("regions", 16, 64, 3, buffer, stream=stream)
    device.do("cuStreamEndCapture", ctypes.c_void_p(stream), ctypes.byref(graph))
    device.do("cuGraphInstantiateWithFlags", ctypes.byref(executable), graph, ctypes.c_ulonglong(0))
    starts = []
    for _ in range(3):
        device.do("cuGraphLaunch", executable, ctypes.c_void_p(stream))
        found = buffer.decode()
        assert found.losses() == []
        assert found.units["events"].tolist() == [6] * 32
        starts.append(found.start)
    assert starts == sorted(set(starts)), "each replay is later than the one before"


def test_a_small_recording_can_be_kept(device: Device, tmp_path: Path) -> None:
    """WARPLENS_GOLDEN names the folder that it is kept in: a recording of a device to decode where there is none."""
    from warplens.intrakernel import decode

    folder = Path(os.environ.get("WARPLENS_GOLDEN", tmp_path))
    for clock in ("globaltimer", "clock"):
        buffer = device.buffer(grid=(4, 2), warps=2, slots=8, clock=clock)
        with buffer.launch("regions"):
            device.kernels(buffer, generation=True).launch("regions", (4, 2), 64, 5, buffer)
        kept = folder / f"regions-{clock}.bin"
        kept.write_bytes(buffer.read())
        found = decode(kept.read_bytes())
        assert (len(found.units), len(found.events), found.dropped) == (16, 16 * 8, 16 * 2)
