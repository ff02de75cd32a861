"""A kernel of CuTe DSL records on a GPU: compiled where the package is, launched by the driver alone.

Where the machine has a GPU but not the package, tools/cubins.py has made them elsewhere.
"""

from __future__ import annotations

import ctypes
import json
import re
from pathlib import Path

import pytest

from tests.dsl.languages import run
from tests.support.optional_dependencies import ROOT, cubins, missing
from warplens.intrakernel import allocate, dsl
from warplens.intrakernel.device.cuda_kernels import GpuKernels
from warplens.intrakernel.driver import driver
from warplens.intrakernel.example import check

pytestmark = [pytest.mark.gpu, pytest.mark.require("gpu", "numpy"), pytest.mark.timeout(600)]


def carried(tmp_path: Path, program: str, file: str) -> Path:
    """The folder that has `file`: what was made elsewhere, or is made here; else the test is skipped."""
    major, minor = driver().capability(0)
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    folder = cubins(Path(program).stem, arch)
    if not (folder / file).exists():
        if reason := missing("cutlass-dsl"):
            pytest.skip(f"{reason}, and {folder} has no cubin of it")
        folder = tmp_path / arch
        folder.mkdir(exist_ok=True)
        run("cutlass-dsl", ROOT / "tests" / "dsl" / "programs" / program, folder, CUTE_DSL_ARCH=arch)
    return folder


def test_a_cubin_that_was_compiled_elsewhere_records(tmp_path: Path) -> None:
    calls = driver()
    folder = carried(tmp_path, "cute_cubin.py", "example.json")
    signature = json.loads((folder / "example.json").read_text())
    assert [size for _, size in signature["parameters"]] == [8, 4, 8]
    # The cubin was compiled for the clock of buffers on the host.
    buffer = allocate(
        grid=dsl.EXAMPLE_GRID, warps=4, slots=32, tags=dsl.EXAMPLE_TAGS, library="cuda", clock="globaltimer"
    )
    library = ctypes.CDLL("libcuda.so.1")
    with calls.using(calls.context_of(buffer.pointer)):
        data = calls.allocate(4 * dsl.EXAMPLE_GRID * dsl.EXAMPLE_TILES * signature["block"])
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        assert library.cuModuleLoadData(ctypes.byref(module), (folder / "example.cubin").read_bytes()) == 0
        assert library.cuModuleGetFunction(ctypes.byref(function), module, signature["entry"].encode()) == 0
        values = (ctypes.c_uint64(data), ctypes.c_int32(dsl.EXAMPLE_TILES), ctypes.c_uint64(buffer.pointer))
        words = (ctypes.c_void_p * 3)(*(ctypes.addressof(value) for value in values))
        with buffer.launch("example"):
            assert (
                library.cuLaunchKernel(
                    function, signature["grid"], 1, 1, signature["block"], 1, 1, 0, None, words, None
                )
                == 0
            )
        found = buffer.decode()
        calls.free(data)
    assert check(buffer, found) == []


def test_the_reference_designs_example_records(tmp_path: Path) -> None:
    """With its import changed: compiled from its source, then launched as its README does, but by the driver alone."""
    from warplens import intrakernel

    folder = carried(tmp_path, "cute_nuggets.py", "example.ptx")
    (entry,) = re.findall(r"\.entry (\w+)\(", (folder / "example.ptx").read_text())
    calls = driver()
    with intrakernel.profile_session(256, ["outer", "inner"], tmp_path / "trace.json", device="cuda") as (
        prof,
        tags,
    ):
        pointer = prof.buffer.pointer
        kernels = GpuKernels((folder / "example.cubin").read_bytes(), pointer)
        with calls.using(calls.context_of(pointer)):
            data = calls.allocate(4 * 512)
        kernels.launch(entry, 4, 128, ctypes.c_uint64(data), ctypes.c_uint64(pointer), 256)
    with calls.using(calls.context_of(pointer)):
        calls.free(data)
    assert (prof.overflow, tags.names) == (0, ["outer", "inner"])
    assert sorted((event.tid, event.tag_name) for event in prof.events) == sorted(
        (block, tag) for block in range(4) for tag in ["inner"] * 4 + ["outer"]
    )
    outer = {event.tid: event for event in prof.events if event.tag_name == "outer"}
    for event in prof.events:
        assert outer[event.tid].start_ns <= event.start_ns
        assert event.start_ns + event.dur_ns <= outer[event.tid].start_ns + outer[event.tid].dur_ns
    shown = [
        event["name"]
        for event in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
        if event["ph"] == "X"
    ]
    assert sorted(shown) == sorted(event.tag_name for event in prof.events)
