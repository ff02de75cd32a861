"""The Python binding under the sanitizers: every function with any argument, alone and from many threads."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.conftest import SOURCES
from tests.support.native.native_build import NATIVE, build_binding
from tests.support.native.sanitizing import MEMORY, THREADS

ROOT = NATIVE.parent
PROGRAM = SOURCES / "nvtx" / "nvtx_anything.py"
# An instrumented build for each sanitizer, on a busy machine.
pytestmark = [pytest.mark.exhaustive, pytest.mark.require("gcc", "native"), pytest.mark.timeout(600)]

RUNTIMES: dict[tuple[str, ...], str] = {MEMORY: "libasan.so", THREADS: "libtsan.so"}
# CPython keeps what it allocates until the very end, and its own allocator would hide what is used after it was freed.
OPTIONS = {"ASAN_OPTIONS": "detect_leaks=0", "PYTHONMALLOC": "malloc"}

Package = Callable[[tuple[str, ...]], Path]


@pytest.fixture(scope="module")
def instrumented(tmp_path_factory: pytest.TempPathFactory) -> Package:
    """The folder of a package whose binding is instrumented, built once for each sanitizer."""
    made: dict[tuple[str, ...], Path] = {}

    def folder(words: tuple[str, ...]) -> Path:
        if words not in made:
            made[words] = tmp_path_factory.mktemp("instrumented")
            build_binding(made[words], ("-O1", *words))
        return made[words]

    return folder


@pytest.mark.parametrize(
    ("words", "arguments"),
    [(MEMORY, ["1", "2500", "0"]), (THREADS, ["3", "150", "3"])],
    ids=["memory", "threads"],
)
def test_random_calls_raise_no_sanitizer_error(words: tuple[str, ...], arguments: list[str], instrumented: Package, tmp_path: Path) -> None:
    runtime = subprocess.run(["gcc", f"-print-file-name={RUNTIMES[words]}"], capture_output=True, text=True, check=True).stdout.strip()
    environment = os.environ | OPTIONS | {"LD_PRELOAD": runtime, "PYTHONPATH": str(instrumented(words)), "WARPLENS_SPOOL": str(tmp_path)}
    environment["NVTX_INJECTION64_PATH"] = str(ROOT / "src" / "warplens" / "_lib" / "libwarplens_agent.so")
    done = subprocess.run([sys.executable, PROGRAM, *arguments], env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert "Sanitizer" not in done.stderr, done.stderr[:6000]
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("done ")
    assert list(tmp_path.glob("*.spool"))
