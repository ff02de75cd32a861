"""What programs say through NVTX about CUDA, in the report: ranges around calls, names of streams. Real agent, look-alike CUDA."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.conftest import Target
from tests.support.programs.cuda_running import TOGGLE, TRACE, CudaPrograms
from tests.unit.convert.cuda.spools import Finished
from warplens.convert.finish import finish

pytestmark = [pytest.mark.require("native", "gcc")]

PROGRAM = """
import ctypes, os, threading, warplens.nvtx as nvtx
cuda = ctypes.CDLL("libcuda.so.1")
context, stream, kernel, other = (ctypes.c_void_p() for _ in range(4))
cuda.cuInit(0); cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0); cuda.cuCtxSetCurrent(context)
cuda.cuStreamCreate(ctypes.byref(stream), 1); cuda.cuStreamCreate(ctypes.byref(other), 1)
nvtx.name_cuda_stream(stream.value, "copies"); nvtx.name_cuda_context(context.value, "training")
cuda.cuModuleGetFunction(ctypes.byref(kernel), None, b"_ZN2ns4gemmIfEEvPT_@2000")
def launch(times=1):
    for _ in range(times):
        assert cuda.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, None, None) == 0
launch()
with nvtx.annotate("step"):
    launch(2)
    cuda.cuProfilerStart()
    with nvtx.annotate("forward"):
        launch(3)
    worker = threading.Thread(target=launch)
    worker.start(); worker.join()
    cuda.cuProfilerStop()
    launch()
cuda.cuCtxSynchronize()
"""


@pytest.fixture
def cuda(tmp_path: Path, target: Target, monkeypatch: pytest.MonkeyPatch) -> CudaPrograms:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3] / "src"))
    return CudaPrograms(tmp_path, target)


def finished(cuda: CudaPrograms, tmp_path: Path, **settings: object) -> Finished:
    """Run the program and finish its recording."""
    capture = cuda.capture(**settings)  # type: ignore[arg-type]
    cuda.run([sys.executable, "-c", PROGRAM], capture=capture)
    finish(capture.spool, tmp_path / "r.warplens")
    return Finished(tmp_path / "r.warplens")


def test_ranges_and_names(cuda: CudaPrograms, tmp_path: Path) -> None:
    found = finished(cuda, tmp_path)
    names = dict(found.columns("nvtx_ranges", "id", "message"))
    calls = {row["id"]: row for row in found["cuda_api"]}
    launches = [row for row in calls.values() if row["name"] == "cuLaunchKernel"]
    main = launches[0]["thread"]
    assert [names.get(row["range"]) for row in launches if row["thread"] == main] == [
        None,
        "step",
        "step",
        "forward",
        "forward",
        "forward",
        "step",
    ]
    assert [names.get(row["range"]) for row in launches if row["thread"] != main] == [None]
    assert {row["thread"] for row in found["nvtx_ranges"]} == {main}
    kernels = found["kernels"]
    assert sorted(row["api"] for row in kernels) == sorted(row["id"] for row in launches)
    assert {(row["name"], row["demangled"], row["end"] - row["start"]) for row in kernels} == {
        ("gemm", "void ns::gemm<float>(float*)", 2_000)
    }
    assert all(calls[row["api"]]["start"] <= row["start"] for row in kernels)
    (stream,) = {row["stream"] for row in kernels}
    assert dict(found.columns("streams", "stream", "name"))[stream] == "copies"
    assert "training" in [row["name"] for row in found["contexts"]]
    assert {row["severity"] for row in found["diagnostics"] if row["source"] == "cuda"} == {"info"}


@pytest.mark.parametrize("toggle", [0, TOGGLE])
def test_a_window_has_the_work_launched_in_it(cuda: CudaPrograms, tmp_path: Path, toggle: int) -> None:
    found = finished(cuda, tmp_path, flags=TRACE | toggle, open=False, trigger=2)
    assert len(found["kernels"]) == 4
    assert all(row["api"] is not None for row in found["kernels"])
    assert [row["name"] for row in found["cuda_api"]].count("cuLaunchKernel") == 4
    (window,) = found["capture_windows"]
    assert all(window["start"] <= row["end"] and row["start"] < window["end"] for row in found["cuda_api"])


def test_threads_that_only_call_cuda_have_the_name_of_the_system(cuda: CudaPrograms, tmp_path: Path) -> None:
    capture = cuda.capture()
    words = "kernel:first:1000:1 sync:1 thread name:loader kernel:second:1000:1 sync:1 thread name:inner kernel:third:1000:1 sync:1 exit:0"
    cuda.run(words, capture=capture)
    finish(capture.spool, tmp_path / "r.warplens")
    found = Finished(tmp_path / "r.warplens")
    names = dict(found.columns("threads", "thread", "name"))
    launches = [
        names[row["thread"]] for row in found["cuda_api"] if row["name"].startswith("cudaLaunchKernel")
    ]
    assert launches == ["cuda_program", "loader", "inner"]
