"""Memory of real packages on the host as buffers: python host_packages.py PACKAGE; prints what was recorded, as JSON.

A C++ kernel records into the memory, on the CPU; nothing of it is ours.
"""

from __future__ import annotations

import ctypes
import json
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.dsl.decoded import told
from warplens import intrakernel as ik
from warplens.errors import UsageError
from warplens.intrakernel.device.cuda_kernels import HostKernels
from warplens.intrakernel.dsl import cuda

SOURCE = """
#include "warplens.cuh"
WARPLENS_TAGS(Tag, outer, inner)
extern "C" __global__ void scale(float *x, void *profile) {
  warplens::Profiler prof(profile);
  WARPLENS_REGION(prof, Tag::outer, blockIdx.x);
  for (int i = 0; i < 4; ++i) {
    WARPLENS_REGION(prof, Tag::inner, blockIdx.x);
    x[blockIdx.x * blockDim.x + threadIdx.x] *= 2.0f;
  }
}
"""
GRID, BLOCK = 3, 64
TAGS = cuda.tags(SOURCE)
SIZE = ik.Shape(GRID * 2, 8, 2).nbytes


def record(buffer: Any, numbers: Any) -> None:
    """Run the kernel on numbers and a buffer of anybody's."""
    options = cuda.bind(buffer).options
    with buffer.launch("scale"):
        HostKernels(SOURCE, ["scale"], options).launch("scale", GRID, BLOCK, ctypes.c_void_p(numbers), buffer)


def recorded(memory: Any, numbers: Any) -> dict[str, Any]:
    """Record into `memory`, and tell."""
    buffer = ik.allocate(GRID, warps=2, slots=8, tags=TAGS, device="cpu", memory=memory)
    record(buffer, numbers)
    return {**told(buffer), "same": buffer.memory is memory}


def refused(memory: Any) -> str:
    """Why a memory cannot be a buffer."""
    try:
        ik.allocate(GRID, warps=2, slots=8, tags=TAGS, device="cpu", memory=memory)
    except UsageError as error:
        return str(error)
    return "taken"


def numpy() -> Any:
    """Arrays, and what they must not be."""
    import numpy as np

    x = np.ones(GRID * BLOCK, np.float32)
    frozen = np.zeros(SIZE, np.uint8)
    frozen.flags.writeable = False
    found = recorded(np.zeros(SIZE // 8, np.int64), x.ctypes.data)
    return {
        "into": found,
        "x": x.tolist(),
        "frozen": refused(frozen),
        "steps": refused(np.zeros((SIZE, 2), np.uint8)[:, 0]),
    }


def torch() -> Any:
    """Tensors that are given, and those that `allocate` makes; sliced and with a gradient."""
    import torch as package

    x = package.ones(GRID * BLOCK)
    found = recorded(package.zeros(SIZE // 8, dtype=package.int64), x.data_ptr())
    buffer = ik.allocate(GRID, warps=2, slots=2, tags=TAGS, device="cpu", library="torch")
    made = [str(buffer.memory.dtype), str(buffer.memory.device), buffer.memory.data_ptr() == buffer.pointer]
    grown = buffer.run(lambda larger: record_again(larger, x))
    return {
        "into": found,
        "x": x.tolist(),
        "made": made,
        "grown": [buffer.slots, len(grown.events), grown.dropped, type(buffer.memory).__name__],
        "gradient": refused(package.zeros(SIZE, requires_grad=True)),
        "steps": refused(package.zeros((SIZE, 2), dtype=package.uint8)[:, 0]),
        "small": refused(package.zeros(8, dtype=package.int64)),
    }


def record_again(buffer: Any, x: Any) -> None:
    """Launch only: `run` has the rest."""
    HostKernels(SOURCE, ["scale"], cuda.bind(buffer).options).launch(
        "scale", GRID, BLOCK, ctypes.c_void_p(x.data_ptr()), buffer
    )


def jax() -> Any:
    """Arrays that nobody may write into."""
    from jax import numpy as jnp  # type: ignore[import-not-found, unused-ignore]

    return {"refused": refused(jnp.zeros(SIZE // 4, jnp.int32))}


def streams() -> Any:
    """Handles of streams, of those packages that are here; none needs a device."""
    from warplens.intrakernel.memory import handle_of

    found = {}
    if find_spec("cupy"):
        import cupy  # type: ignore[import-not-found, unused-ignore]

        found["cupy"] = handle_of(cupy.cuda.ExternalStream(1234))
    if find_spec("cuda"):
        from cuda.bindings import driver  # type: ignore[import-not-found, unused-ignore]
        from cuda.core import Stream  # type: ignore[import-not-found, unused-ignore]

        found |= {"bindings": handle_of(driver.CUstream(1234)), "core": handle_of(Stream.from_handle(1234))}
    return found


def nuggets() -> Any:
    """The host's half of the reference design's example, on the CPU: what `prof.tensor` is, decoding and the trace."""
    import torch as package

    tag_table = ik.TagTable(["outer", "inner"])
    prof = ik.allocate_profile_buffer(256, device=package.device("cpu"))
    output = package.ones(GRID * BLOCK)
    record(prof.buffer, output.data_ptr())  # in place of kernel.interface(output, prof.tensor, 256)
    events, overflow = ik.decode_events(prof, tag_table)
    by_tensor, _ = ik.decode_events(prof.tensor, tag_table)
    with tempfile.TemporaryDirectory() as folder:
        ik.events_to_perfetto(events, Path(folder) / "trace.json")
        trace = json.loads((Path(folder) / "trace.json").read_text())
    old = package.tensor([2, 1_000, 500, 0, 7, 1_600, 300, 1, 7])  # the reference's own layout
    return {
        "tensor": [type(prof.tensor).__name__, str(prof.tensor.dtype)],
        "events": [[event.tag_name, event.tid] for event in events],
        "same": events == by_tensor,
        "overflow": overflow,
        "shown": sorted(event["name"] for event in trace["traceEvents"] if event["ph"] == "X"),
        "old": [
            [event.tag_name, event.start_ns, event.dur_ns, event.tid]
            for event in ik.decode_events(old, tag_table)[0]
        ],
        "output": output.tolist(),
    }


def attention() -> Any:
    """The Triton benchmark of attention with real tensors, in the interpreter: it checks itself against torch's."""
    import torch as package

    if find_spec("triton") is None:
        return None
    sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "benchmarks"))
    import intrakernel_triton as benchmark

    package.cuda.synchronize = lambda: None
    (row,) = benchmark.attention(1, heads=1, length=128, device="cpu")
    return {"what": row.what, "note": row.note}


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]]()))
