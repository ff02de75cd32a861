"""Where tests of the in-kernel languages find an interpreter that has one, and how they run a program in it.

The languages live in environments of their own (`make test-dsl` makes them below build/dsl), so a test writes a small
program, runs it there with this checkout's `src` and `tests` importable, and looks at what it printed or wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.support.optional_dependencies import LANGUAGES, ROOT, find_libraries, find_library

PATIENCE = (
    1100  # seconds: compilers on a slow machine that others use, too; tests that compile have `PATIENT`
)
PATIENT = pytest.mark.timeout(PATIENCE + 100)


def interpreter(piece: str) -> str:
    """The interpreter whose environment has `piece` (a key of LANGUAGES); the test requires the piece."""
    found = find_library(LANGUAGES[piece])
    assert found is not None, f"no environment has {piece}"
    return found[0]


def releases(piece: str) -> dict[str, str]:
    """Every release of `piece` that is there, by its version, with its interpreter; empty where none is."""
    found = {
        file.parent.name.removesuffix(".dist-info").rpartition("-")[2]: python
        for python, file in find_libraries(LANGUAGES[piece])
    }
    return dict(sorted(found.items()))


def run(
    piece: str,
    program: str | Path,
    *words: str | Path,
    python: str | None = None,
    ok: bool = True,
    **environment: str,
) -> subprocess.CompletedProcess[str]:
    """Run `program` (its source, or a file) where `piece` is; with `ok`, a failure fails the test with what it said.

    A program given as source is run from a file: languages that read their kernels' source need one.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("TRITON_", "NUMBA_", "CUTE_DSL_", "PYTHON"))
    }
    path = os.pathsep.join((str(ROOT / "src"), str(ROOT)))
    command = [python or interpreter(piece), *map(str, (program, *words))]
    # In a folder of its own: compilers put what they keep where they run.
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**kept, "PYTHONPATH": path, **environment},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=False,
        )
    assert done.returncode == 0 or not ok, f"{' '.join(command)}\n{done.stdout}\n{done.stderr}"
    return done


def answer(piece: str, program: str | Path, *words: str | Path, **options: Any) -> Any:
    """Run a program as `run` does, and read the last line that it printed as JSON."""
    return json.loads(run(piece, program, *words, **options).stdout.splitlines()[-1])


def here() -> str:
    """This test's own interpreter, for programs that need nothing but warplens."""
    return sys.executable
