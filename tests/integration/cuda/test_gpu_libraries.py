"""NVTX of the libraries that GPU programs are made of, unmodified and without a GPU: optional, `make peers` brings them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.optional_dependencies import LIBRARIES, find_library
from tests.support.programs.launching import environment, warplens
from tests.support.reports.querying import rows

pytestmark = [pytest.mark.require("native"), pytest.mark.timeout(300)]

RANGES = "SELECT message, domain, style, depth FROM nvtx_ranges ORDER BY start, id"
MARKS = "SELECT message, domain FROM nvtx_marks ORDER BY start"


def record(folder: Path, name: str, program: str, *words: str, **variables: str) -> tuple[str, Path]:
    """Run `program` under `warplens profile`, in the environment that has the library; return its output and the report."""
    found = find_library(LIBRARIES[name])
    assert found is not None
    python, library = found
    (folder / "program.py").write_text(program, encoding="utf-8")
    report = folder / "run.warplens"
    alone = ["env", "-u", "PYTHONPATH", python, "program.py", str(library), *words]
    done = warplens("profile", "-q", "-f", "-o", report, *alone, cwd=folder, env=environment(**variables))
    assert done.returncode == 0, done.stderr
    return done.stdout, report


def complaints(report: Path) -> list[tuple[Any, ...]]:
    """What the report complains about."""
    return rows(report, "SELECT code, message FROM diagnostics WHERE severity <> 'info'")


# Libraries of one CUDA release lie side by side, or each in a folder of its own.
LOADING = """
import ctypes, pathlib, sys
library = pathlib.Path(sys.argv[1])
nvidia = next(folder for folder in library.parents if folder.name == "nvidia")
def load(pattern):
    for path in sorted(nvidia.glob(pattern)):
        return ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
    sys.exit(f"no {pattern} in {nvidia}")
load("*/lib/libcudart.so.*")
"""

NCCL = (
    LOADING
    + """
nccl = ctypes.CDLL(str(library))
assert nccl.ncclGroupStart() == 0
assert nccl.ncclGroupEnd() == 0
comm = ctypes.c_void_p()
nccl.ncclCommInitAll.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p]
print(nccl.ncclCommInitAll(ctypes.byref(comm), 1, None) != 0)
"""
)


@pytest.mark.require("nccl")
def test_nccl_says_what_it_does_unasked(tmp_path: Path) -> None:
    _, report = record(tmp_path, "nccl", NCCL)
    said = rows(report, RANGES)
    assert said[:2] == [("ncclGroupStart", "NCCL", "PushPop", 0), ("ncclGroupEnd", "NCCL", "PushPop", 0)]
    assert ("ncclCommInitAll", "NCCL", "PushPop", 0) in said
    assert complaints(report) == []


@pytest.mark.require("nccl")
def test_nccl_can_be_silenced(tmp_path: Path) -> None:
    _, report = record(tmp_path, "nccl", NCCL, NCCL_NVTX_DISABLE="1")
    assert rows(report, RANGES) == []


CUBLAS = (
    LOADING
    + """
load("*/lib/libcublasLt.so.*")
cublas = ctypes.CDLL(str(library))
handle = ctypes.c_void_p()
print(cublas.cublasCreate_v2(ctypes.byref(handle)) >= 0)
"""
)


@pytest.mark.require("cublas")
@pytest.mark.parametrize(("level", "said"), [("0", []), ("1", [("cublasCreate_v2", "cuBLAS", "PushPop", 0)])])
def test_cublas_speaks_when_asked(level: str, said: list[Any], tmp_path: Path) -> None:
    _, report = record(tmp_path, "cublas", CUBLAS, CUBLAS_NVTX_LEVEL=level)
    assert rows(report, RANGES) == said


OTHERS = """
import ctypes, pathlib, sys
import torch  # loads what the others need
nvidia = pathlib.Path(sys.argv[1]).parents[2] / "nvidia"
for library, call in (("libcudnn.so.*", "cudnnCreate"), ("libcublasLt.so.*", "cublasLtCreate")):
    path = next(nvidia.glob(f"*/lib/{library}"))
    handle = ctypes.c_void_p()
    getattr(ctypes.CDLL(str(path)), call)(ctypes.byref(handle))
"""


@pytest.mark.require("torch-cuda")
def test_cudnn_and_cublaslt_speak_when_asked(tmp_path: Path) -> None:
    _, report = record(tmp_path, "torch-cuda", OTHERS, CUDNN_NVTX_LEVEL="1", CUBLASLT_NVTX_LEVEL="1")
    said = {(message, domain) for message, domain, _, _ in rows(report, RANGES)}
    assert {("cudnnCreate", "cuDNN"), ("cublasLtCreate", "cuBLAS")} <= said


CUPY = """
from cupy.cuda import nvtx
from cupyx.profiler import time_range

nvtx.RangePush("numbered colour", 1)
nvtx.RangePushC("own colour", 0xFF00FF00)
nvtx.RangePop()
nvtx.RangePop()
nvtx.Mark("mark")
nvtx.MarkC("coloured mark", 0xFF123456)
with time_range("with block", color_id=2):
    pass
@time_range()
def decorated():
    pass
decorated()
"""


@pytest.mark.require("cupy")
def test_cupy(tmp_path: Path) -> None:
    _, report = record(tmp_path, "cupy", CUPY)
    assert rows(report, RANGES) == [
        ("numbered colour", None, "PushPop", 0),
        ("own colour", None, "PushPop", 1),
        ("with block", None, "PushPop", 0),
        ("decorated", None, "PushPop", 0),
    ]
    assert rows(report, "SELECT color FROM nvtx_ranges WHERE message = 'own colour'") == [(0xFF00FF00,)]
    assert rows(report, "SELECT message, color FROM nvtx_marks WHERE message = 'coloured mark'") == [
        ("coloured mark", 0xFF123456)
    ]
    assert complaints(report) == []


TORCH = """
import torch
nvtx = torch.cuda.nvtx
print(nvtx.range_push("outer"), nvtx.range_push("inner"), nvtx.range_pop(), nvtx.range_pop())
nvtx.mark("mark")
with nvtx.range("step {}", 3):
    pass
nvtx.range_end(nvtx.range_start("started"))
@nvtx.range("decorated")
def decorated():
    pass
decorated()
"""


@pytest.mark.require("torch-cuda")
def test_torch_built_for_cuda(tmp_path: Path) -> None:
    out, report = record(tmp_path, "torch-cuda", TORCH)
    assert out == "0 1 1 0\n"
    assert rows(report, RANGES) == [
        ("outer", None, "PushPop", 0),
        ("inner", None, "PushPop", 1),
        ("step 3", None, "PushPop", 0),
        ("started", None, "StartEnd", 0),
        ("decorated", None, "PushPop", 0),
    ]
    assert rows(report, MARKS) == [("mark", None)]
    assert complaints(report) == []


# As RAPIDS does it: a partial with a domain; and a decorator that names the function with its class, in a colour made from it.
RAPIDS = """
import functools, hashlib, sys
import {library} as nvtx

mine = functools.partial(nvtx.annotate, domain="cudf_polars")

def annotated(function):
    number = int(hashlib.sha256(function.__qualname__.encode()).hexdigest()[:6], 16)
    return nvtx.annotate(message=function.__qualname__, color=number, domain="cudf_python")(function)

class Frame:
    @annotated
    def sort(self):
        with mine(message="evaluate", color="purple"):
            pass
    @mine(message="merge", category="plan")
    def merge(self, other):
        return self.sort()
    @functools.cached_property
    @mine("columns", color=0x76B900)
    def columns(self):
        return 3
    @staticmethod
    @mine()
    def static():
        pass
    @classmethod
    @mine()
    def build(cls):
        pass

frame = Frame()
frame.merge(frame)
assert frame.columns == frame.columns == 3
Frame.static()
Frame.build()
print(Frame.merge.__name__, Frame.sort.__qualname__)
"""


@pytest.mark.parametrize(
    "library", [pytest.param("nvtx", marks=pytest.mark.require("nvtx")), "warplens.nvtx"]
)
def test_the_way_rapids_annotates(library: str, tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(RAPIDS.format(library=library), encoding="utf-8")
    report = tmp_path / "run.warplens"
    done = warplens(
        "profile",
        "-q",
        "-f",
        "-o",
        report,
        "python",
        "program.py",
        cwd=tmp_path,
        env=environment(PATH=_path()),
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "merge Frame.sort\n"
    assert rows(report, RANGES) == [
        ("merge", "cudf_polars", "PushPop", 0),
        ("Frame.sort", "cudf_python", "PushPop", 1),
        ("evaluate", "cudf_polars", "PushPop", 2),
        ("columns", "cudf_polars", "PushPop", 0),
        ("static", "cudf_polars", "PushPop", 0),
        ("build", "cudf_polars", "PushPop", 0),
    ]
    assert rows(report, "SELECT category FROM nvtx_ranges WHERE message = 'merge'") == [("plan",)]
    assert complaints(report) == []


def _path() -> str:
    """PATH with our interpreter first."""
    import os
    import sys

    return f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"


@pytest.mark.require("jax")
def test_jax_on_the_cpu_says_nothing_and_is_left_alone(tmp_path: Path) -> None:
    program = (
        "import jax\nwith jax.profiler.TraceAnnotation('step'):\n    print(int(jax.numpy.arange(4).sum()))\n"
    )
    out, report = record(tmp_path, "jax", program)
    assert out == "6\n"
    assert rows(report, RANGES) == []
