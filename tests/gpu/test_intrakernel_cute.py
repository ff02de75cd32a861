"""A kernel of CuTe DSL records on a GPU: compiled where the package is, launched by the driver alone. Not yet run on a GPU.

Where the machine has a GPU but not the package, name a folder in WARPLINE_CUBINS and put into it what was made elsewhere:
`CUTE_DSL_ARCH=sm_90a python tests/dsl/cute_cubin.py FOLDER/sm_90a`.
"""

from __future__ import annotations

import ctypes
import json
import os
from pathlib import Path

import pytest

from tests.dsl.languages import run
from tests.pieces import ROOT, missing
from warpline.intrakernel import allocate, dsl
from warpline.intrakernel.driver import driver
from warpline.intrakernel.example import check

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "numpy"), pytest.mark.timeout(600)]


def test_a_cubin_that_was_compiled_elsewhere_records(tmp_path: Path) -> None:
    calls = driver()
    major, minor = calls.capability(0)
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    folder = Path(os.environ.get("WARPLINE_CUBINS", tmp_path)) / arch
    if not (folder / "example.json").exists():
        if reason := missing("cutlass-dsl"):
            pytest.skip(f"{reason}, and {folder} has no cubin of it")
        folder.mkdir(exist_ok=True)
        run("cutlass-dsl", ROOT / "tests" / "dsl" / "cute_cubin.py", folder, CUTE_DSL_ARCH=arch)
    signature = json.loads((folder / "example.json").read_text())
    assert [size for _, size in signature["parameters"]] == [8, 4, 8]
    # The cubin was compiled for the clock of buffers on the host.
    buffer = allocate(grid=dsl.EXAMPLE_GRID, warps=4, slots=32, tags=dsl.EXAMPLE_TAGS, library="cuda", clock="globaltimer")
    library = ctypes.CDLL("libcuda.so.1")
    with calls.using(calls.context_of(buffer.pointer)):
        data = calls.allocate(4 * dsl.EXAMPLE_GRID * dsl.EXAMPLE_TILES * signature["block"])
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.cuModuleLoadData(ctypes.byref(module), (folder / "example.cubin").read_bytes()) == 0
        assert library.cuModuleGetFunction(ctypes.byref(function), module, signature["entry"].encode()) == 0
        values = (ctypes.c_uint64(data), ctypes.c_int32(dsl.EXAMPLE_TILES), ctypes.c_uint64(buffer.pointer))
        words = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        with buffer.launch("example"):
            assert library.cuLaunchKernel(function, signature["grid"], 1, 1, signature["block"], 1, 1, 0, None, words, None) == 0
        found = buffer.decode()
        calls.free(data)
    assert check(buffer, found) == []
