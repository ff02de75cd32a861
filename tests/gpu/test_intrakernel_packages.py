"""CUDA C++ regions in kernels of CuPy and of PyTorch's inline extensions, in memory of theirs."""

from __future__ import annotations

from typing import Any

import pytest

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "numpy"), pytest.mark.timeout(900)]
GRID, THREADS, COUNT = 64, 128, 8
SOURCE = """
#include "warplens.cuh"
WARPLENS_TAGS(Tag, body, rest)

extern "C" __global__ void scale(float *x, int n, void *profile) {
  warplens::Profiler prof(profile);
  for (int i = 0; i < n; ++i) {
    WARPLENS_REGION(prof, Tag::body, i);
    x[blockIdx.x * blockDim.x + threadIdx.x] *= 2;
  }
  prof.mark(Tag::rest);
}
"""


def _buffer(library: str, mode: str = "slices") -> Any:
    from warplens import intrakernel
    from warplens.intrakernel.dsl import cuda

    return intrakernel.allocate(
        GRID, warps=THREADS // 32, slots=COUNT + 1, tags=cuda.tags(SOURCE), library=library, mode=mode
    )


def _check(buffer: Any, values: list[float]) -> None:
    """Every warp has its regions, and the kernel computed what it does without them."""
    found = buffer.decode()
    units = GRID * THREADS // 32
    assert found.losses() == []
    assert len(found.units) == units
    assert found.units["ended"].all()
    assert (found.units["sm_begin"] >= 0).all()
    assert found.events["tag"].reshape(units, COUNT + 1).tolist() == [[0] * COUNT + [1]] * units
    assert (
        found.events["payload"].reshape(units, COUNT + 1)[:, :COUNT].tolist() == [list(range(COUNT))] * units
    )
    assert (found.events["start"] <= found.events["end"]).all()
    assert set(values) == {2.0**COUNT}


@pytest.mark.parametrize("mode", ["slices", "claim"])
def test_a_raw_kernel_of_cupy_records_into_memory_of_cupy(mode: str) -> None:
    cupy = pytest.importorskip("cupy")
    from warplens.intrakernel.dsl import cuda

    buffer = _buffer("cupy", mode)
    assert isinstance(buffer.memory, cupy.ndarray)
    kernel = cupy.RawKernel(SOURCE, "scale", options=cuda.bind(buffer).options)
    x = cupy.ones(GRID * THREADS, dtype=cupy.float32)
    with buffer.launch("scale"):
        kernel((GRID,), (THREADS,), (x, cupy.int32(COUNT), buffer.memory))
    _check(buffer, x.get().tolist())


@pytest.mark.require("nvcc")
def test_an_inline_extension_of_torch_records_into_memory_of_torch(tmp_path: Any) -> None:
    torch = pytest.importorskip("torch")
    pytest.importorskip("ninja")
    from torch.utils.cpp_extension import load_inline

    from warplens.intrakernel.dsl import cuda

    buffer = _buffer("torch")
    assert buffer.memory.dtype == torch.int64
    go = f"""
#include <c10/cuda/CUDAStream.h>
void go(torch::Tensor x, torch::Tensor profile) {{
  scale<<<{GRID}, {THREADS}, 0, c10::cuda::getCurrentCUDAStream()>>>(x.data_ptr<float>(), {COUNT}, profile.data_ptr());
}}
"""
    module = load_inline(
        "warplens_scale",
        cpp_sources="void go(torch::Tensor x, torch::Tensor profile);",
        cuda_sources=SOURCE + go,
        functions=["go"],
        extra_cuda_cflags=list(cuda.bind(buffer).options),
        build_directory=str(tmp_path),
    )
    x = torch.ones(GRID * THREADS, device="cuda")
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream), buffer.launch("scale"):
        module.go(x, buffer.memory)
    torch.cuda.synchronize()
    _check(buffer, x.tolist())


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_memory_of_others_is_adopted(device: str) -> None:
    """By __cuda_array_interface__ and by DLPack, which says the same."""
    torch = pytest.importorskip("torch")
    from warplens.intrakernel.memory import adopt

    tensor = torch.zeros(4096, dtype=torch.int64, device=device)
    seen = [adopt(tensor, 4096)]

    class OnlyDlpack:
        def __dlpack__(self) -> Any:
            return tensor.__dlpack__()

    seen.append(adopt(OnlyDlpack(), 4096))
    for memory in seen:
        assert (memory.pointer, memory.nbytes, memory.device) == (
            tensor.data_ptr(),
            8 * 4096,
            tensor.device.index or 0,
        )
    seen[0].write(8, (7).to_bytes(8, "little"))
    assert tensor[1].item() == 7
