"""Kernels in Numba-CUDA record on a GPU what they record in the simulator, and their own clocks agree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.kernel_checks import KernelChecks
from tests.gpu.recording import broken_numba

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "numpy"), pytest.mark.timeout(600)]


@pytest.fixture(name="run")
def _run() -> Any:
    pytest.importorskip("numba_cuda")
    if reason := broken_numba():
        pytest.skip(reason)
    from numba import cuda

    from tests.dsl.programs import numba_kernels
    from warplens.intrakernel.dsl import numba as ik

    out = cuda.device_array(1 << 20, "int32")
    compiled = {
        name: cuda.jit(getattr(numba_kernels, name)) for name in ("many", "many_bare", "everything", "leaves")
    }

    def run(kernel: str, blocks: int, count: int, buffer: Any, *, num_warps: int = 4, **options: Any) -> Any:
        with buffer.launch("test"):
            compiled[kernel][blocks, 32 * num_warps](out, count, ik.bind(buffer, **options))
        cuda.synchronize()
        return buffer.decode()

    return run


class TestNumba(KernelChecks):
    library = "numba"
    last_payload = 406
