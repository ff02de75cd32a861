"""Builds the agent and its test programs with another compiler or with sanitizers, straight from the sources."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from tests.integration.conftest import SOURCES, nvtx_headers

NATIVE = Path(__file__).resolve().parents[1] / "native"
_INCLUDE = (f"-I{NATIVE / 'include'}", f"-I{NATIVE}", "-isystem")
_AGENT = ("-fPIC", "-shared", "-fno-rtti", "-fvisibility=hidden", '-DWARPLINE_VERSION="test"')


def sources(*folders: str) -> list[Path]:
    """The C++ files directly in these folders of `native/`."""
    return [path for folder in folders for path in sorted((NATIVE / folder).glob("*.cpp"))]


def build_agent(out: Path, compiler: str = "g++", words: Sequence[str] = ()) -> Path:
    """Build the agent library."""
    files = sources("spool", "agent", "agent/sources")
    subprocess.run([compiler, "-O1", "-std=c++20", *_INCLUDE, nvtx_headers(), *_AGENT, *words, *files, "-o", out], check=True)
    return out


def build_spool_test(out: Path, compiler: str = "g++", words: Sequence[str] = (), name: str = "spool_test") -> Path:
    """Build unit tests of the spool writer: `native/tests/<name>.cpp`."""
    files = [NATIVE / "tests" / f"{name}.cpp", *sources("spool")]
    subprocess.run([compiler, "-O1", "-std=c++20", *_INCLUDE, nvtx_headers(), *words, *files, "-pthread", "-o", out], check=True)
    return out


def build_target(name: str, out: Path, compiler: str = "gcc", words: Sequence[str] = ()) -> Path:
    """Build `tests/targets/<name>.c`."""
    subprocess.run([compiler, "-O1", "-isystem", nvtx_headers(), *words, SOURCES / f"{name}.c", "-o", out, "-pthread", "-ldl"], check=True)
    return out
