"""Each framework that launches kernels its own way: all of its launches are there, with their calls."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.gpu.recording import broken_numba, launched, record

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "native"), pytest.mark.timeout(300)]

LAUNCHES = 50
PROGRAMS = {
    "torch": """
import torch
x = torch.zeros(1024, device="cuda")
for _ in range(50): x.add_(1)
torch.cuda.synchronize()
""",
    "triton": """
import torch, triton, triton.language as tl
@triton.jit
def add_one(p, n, B: tl.constexpr):
    i = tl.program_id(0) * B + tl.arange(0, B)
    tl.store(p + i, tl.load(p + i, mask=i < n) + 1, mask=i < n)
x = torch.zeros(1024, device="cuda")
for _ in range(50): add_one[(4,)](x, 1024, B=256)
torch.cuda.synchronize()
""",
    "cupy": """
import cupy
add_one = cupy.RawKernel(r'extern "C" __global__ void add_one(float* p) { p[blockDim.x * blockIdx.x + threadIdx.x] += 1; }', "add_one")
x = cupy.zeros(1024, dtype=cupy.float32)
for _ in range(50): add_one((4,), (256,), (x,))
cupy.cuda.Device().synchronize()
""",
    "jax": """
import os; os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax, jax.numpy as jnp
f = jax.jit(lambda x: x + 1)
x = jnp.zeros(1024)
for _ in range(50): x = f(x)
x.block_until_ready()
""",
    "numba": """
from numba import cuda
import numpy as np
@cuda.jit
def add_one(p):
    i = cuda.grid(1)
    if i < p.size: p[i] += 1
x = cuda.to_device(np.zeros(1024, np.float32))
for _ in range(50): add_one[4, 256](x)
cuda.synchronize()
""",
}


@pytest.mark.parametrize("framework", PROGRAMS)
def test_every_launch_is_there(tmp_path: Path, framework: str) -> None:
    if find_spec(framework) is None:
        pytest.skip(f"needs {framework}, which is not installed")
    if framework == "numba" and (reason := broken_numba()):
        pytest.skip(reason)
    recorded = record(PROGRAMS[framework], tmp_path, "-t", "cuda,nvtx")
    pairs = launched(recorded)
    named = [
        kernel for kernel, _ in pairs if framework in ("torch", "jax") or "add_one" in kernel["demangled"]
    ]
    assert len(named) >= LAUNCHES if framework in ("torch", "jax") else len(named) == LAUNCHES
    assert all(call["start"] <= kernel["start"] for kernel, call in pairs)


@pytest.mark.require("torch")
@pytest.mark.parametrize("method", ["spawn", "fork", "forkserver"])
def test_children_are_recorded_too(tmp_path: Path, method: str) -> None:
    program = f"""
import multiprocessing as mp
def work(n):
    import torch
    x = torch.zeros(1024, device="cuda")
    for _ in range(50): x.add_(1)
    torch.cuda.synchronize()
if __name__ == "__main__":
    context = mp.get_context("{method}")
    children = [context.Process(target=work, args=(n,)) for n in range(3)]
    for child in children: child.start()
    for child in children: child.join(); assert child.exitcode == 0
"""
    recorded = record(program, tmp_path, "-t", "cuda,nvtx")
    by_process: dict[int, int] = {}
    for kernel, _ in launched(recorded):
        by_process[kernel["process"]] = by_process.get(kernel["process"], 0) + 1
    assert len(by_process) == 3
    assert min(by_process.values()) >= LAUNCHES
