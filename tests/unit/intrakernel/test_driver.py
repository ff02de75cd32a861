"""Buffers on a device, by the driver alone: against a libcuda whose device memory is the host's."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.programs.launching import environment

ROOT = Path(__file__).resolve().parents[3]

_PROGRAM = """
import ctypes, gc, json
from warplens import intrakernel as ik
from warplens.errors import CaptureError
from warplens.testing.kernel_buffers import BufferEvent, BufferUnit, buffer_bytes

fake = ctypes.CDLL("libcuda.so.1")
fake.host_cuda_stream.restype = ctypes.c_void_p
said = {}
buffer = ik.allocate(2, slots=8, mode="claim", tags=["a"])
said["clock"], said["device"] = buffer.clock, buffer.device
said["address"] = int(buffer.memory) == buffer.pointer == buffer.memory.__cuda_array_interface__["data"][0]


def kernel(units):
    data = buffer_bytes(units, slots=8, generation=buffer.generation, mode="claim")
    ctypes.memmove(buffer.pointer + 256, bytes(data[256:]), len(data) - 256)
    claimed = ctypes.c_uint32.from_address(buffer.pointer + 128)
    claimed.value += len(units)


said["events"] = []
for stream, count in ((None, 2), (77, 1), (78, 2)):
    with buffer.launch("k", stream=stream):
        kernel([BufferUnit([BufferEvent(0, 1_000_010, 1_000_020)])] * count)
    found = buffer.decode()
    said["events"].append([len(found.events), found.units_lost, buffer.generation])
said["stream"] = fake.host_cuda_stream()
other = ik.allocate(2, device="cuda:1")
said["other"] = [other.clock, other.device]


class Array:
    __cuda_array_interface__ = {"shape": (4096,), "typestr": "<i8", "data": (other.pointer, False), "version": 3}


adopted = ik.allocate(1, slots=8, memory=Array())
said["adopted"] = [adopted.device, adopted.pointer == other.pointer, len(adopted.decode().units)]
adopted.resize(slots=16)
said["resized"] = [adopted.device, adopted.slots, adopted.pointer != other.pointer]
try:
    ik.allocate(1 << 20, slots=1500)
except CaptureError as error:
    said["refused"] = str(error)
said["depth"] = fake.host_cuda_depth()
said["allocations"] = fake.host_cuda_allocations()
del buffer, other, adopted
gc.collect()
said["left"] = fake.host_cuda_allocations()
print(json.dumps(said))
"""


@pytest.fixture(scope="module")
def libcuda(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("host-cuda")
    source = ROOT / "tests" / "targets" / "intrakernel" / "host_cuda.c"
    subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", folder / "libcuda.so.1", source], check=True)
    return folder


@pytest.mark.slow
@pytest.mark.require("gcc", "numpy")
def test_buffers_live_on_devices_and_leave_contexts_as_they_were(libcuda: Path) -> None:
    import json

    env = environment(LD_LIBRARY_PATH=str(libcuda))
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "clock": "globaltimer",
        "device": 0,
        "address": True,
        "events": [[2, 0, 1], [1, 0, 2], [2, 0, 3]],
        "stream": 78,
        "other": ["clock", 1],
        "adopted": [1, True, 0],
        "resized": [1, 16, True],
        "refused": "the CUDA driver says CUDA_ERROR_OUT_OF_MEMORY to cuMemAlloc_v2",
        "depth": 0,
        "allocations": 3,
        "left": 0,
    }
