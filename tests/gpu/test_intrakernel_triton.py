"""Kernels in Triton record on a GPU what they record in the interpreter, and their own clocks agree."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gpu.kernel_checks import KernelChecks

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "torch", "numpy"), pytest.mark.timeout(600)]


@pytest.fixture(name="run")
def _run() -> Any:
    pytest.importorskip("triton", minversion="3.5")
    torch = pytest.importorskip("torch")
    from tests.dsl.programs import triton_kernels
    from warplens.intrakernel.dsl import triton as ik

    out = torch.zeros(1 << 20, dtype=torch.int32, device="cuda")

    def run(
        kernel: str, programs: int, count: int, buffer: Any, *, num_warps: int = 4, **options: Any
    ) -> Any:
        with buffer.launch("test"):
            getattr(triton_kernels, kernel)[(programs,)](
                out.data_ptr(), count, ik.bind(buffer, **options), num_warps=num_warps
            )
        torch.cuda.synchronize()
        return buffer.decode()

    return run


class TestTriton(KernelChecks):
    last_payload = 416
