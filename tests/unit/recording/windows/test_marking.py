"""`warplens.capture()` and `warplens.CudaProfiler`: what they tell the run and CUDA, and that they are nothing elsewhere."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

import warplens
from tests.support.programs.launching import environment
from warplens.recording.windows import marking
from warplens.recording.windows.marking import Capture


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    heard: list[str] = []
    monkeypatch.setattr(marking, "tell_run", heard.append)
    return heard


def test_capture_is_a_function_of_the_facade() -> None:
    assert isinstance(warplens.capture(), Capture)
    assert warplens.capture is importlib.import_module("warplens.recording.windows.marking").capture


def test_blocks_nest_and_end_with_the_outermost(told: list[str]) -> None:
    block = warplens.capture()
    with block:
        assert told == ["start"]
        with warplens.capture(), block:
            pass
        assert told == ["start"]
    assert told == ["start", "stop"]
    with pytest.raises(ZeroDivisionError), block:
        raise ZeroDivisionError
    assert told == ["start", "stop"] * 2


def test_the_last_of_several_threads_ends_it(told: list[str]) -> None:
    inside, go = threading.Barrier(3), threading.Event()

    def work() -> None:
        with warplens.capture():
            inside.wait(20)
            go.wait(20)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    inside.wait(20)
    assert told == ["start"]
    go.set()
    for thread in threads:
        thread.join()
    assert told == ["start", "stop"]


def test_decorated_functions(told: list[str]) -> None:
    @warplens.capture
    def plain(value: int) -> int:
        """What it does."""
        told.append("in")
        return value + 1

    @warplens.capture()
    async def coroutine(value: int) -> int:
        await asyncio.sleep(0)
        told.append("in")
        return value + 2

    @warplens.capture
    def generator() -> Iterator[int]:
        told.append("in")
        yield 3

    assert (plain(1), plain.__name__, plain.__doc__) == (2, "plain", "What it does.")
    assert told == ["start", "in", "stop"]
    assert asyncio.run(coroutine(1)) == 3
    assert told == ["start", "in", "stop"] * 2
    assert list(generator()) == [3]
    assert told == ["start", "in", "stop"] * 3


def test_an_asynchronous_generator_is_refused() -> None:
    async def numbers() -> object:
        yield 1

    with pytest.raises(TypeError, match="asynchronous generator"):
        warplens.capture(numbers)


def test_capture_outside_of_a_recording_loads_no_slow_module() -> None:
    text = """
import sys, warplens
before = set(sys.modules)
with warplens.capture():
    pass
print(sorted({"ctypes", "dataclasses", "functools", "inspect", "threading", "typing"} & (set(sys.modules) - before)))
"""
    done = subprocess.run(
        [sys.executable, "-c", text],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout == "[]\n"


_CUDA = """
#include <stdio.h>
{functions}
"""
_PROGRAM = """
import ctypes, sys, warplens
for path in sys.argv[1:]:
    ctypes.CDLL(path)
with warplens.CudaProfiler():
    print("in", flush=True)
"""


def _library(folder: Path, name: str, *functions: str) -> Path:
    lines = []
    for function in functions:
        if function.startswith("cuCtxGetCurrent"):
            value = function.partition("=")[2]
            lines.append(f"int cuCtxGetCurrent(void **c) {{ *c = (void *){value}; return 0; }}")
        else:
            lines.append(f'int {function}(void) {{ puts("{function}"); fflush(stdout); return 1; }}')
    source = folder / "cuda.c"
    source.write_text(_CUDA.format(functions="\n".join(lines)))
    path = folder / name
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
    return path


def _run(*libraries: Path) -> list[str]:
    command = [sys.executable, "-c", _PROGRAM, *map(str, libraries)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=60, check=True)
    assert done.stderr == ""
    return done.stdout.split()


@pytest.mark.slow
@pytest.mark.require("gcc")
def test_cuda_is_told_where_it_is_loaded(tmp_path: Path) -> None:
    runtime = _library(tmp_path, "libcudart-0123abcd.so.12", "cudaProfilerStart", "cudaProfilerStop")
    driver = _library(tmp_path, "libcuda.so.1", "cuCtxGetCurrent=1", "cuProfilerStart", "cuProfilerStop")
    assert _run() == ["in"]
    assert _run(runtime) == ["in"]  # without a driver there is nobody to tell
    assert _run(driver) == ["cuProfilerStart", "in", "cuProfilerStop"]
    assert _run(runtime, driver) == ["cudaProfilerStart", "in", "cudaProfilerStop"]


@pytest.mark.slow
@pytest.mark.require("gcc")
def test_no_context_is_made_for_it(tmp_path: Path) -> None:
    runtime = _library(tmp_path, "libcudart.so.13", "cudaProfilerStart", "cudaProfilerStop")
    driver = _library(tmp_path, "libcuda.so.1", "cuCtxGetCurrent=0", "cuProfilerStart", "cuProfilerStop")
    assert _run(runtime, driver) == ["cuProfilerStart", "in", "cuProfilerStop"]


@pytest.mark.require("gcc")
def test_a_library_that_lacks_the_functions_does_no_harm(tmp_path: Path) -> None:
    assert _run(_library(tmp_path, "libcuda.so.1", "nothing")) == ["in"]
