"""Each compiler of the machine builds the native half, with warnings as errors; tools/compilers.py finds them."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


def _tool() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("compilers")
    finally:
        sys.path.pop(0)


@pytest.fixture
def tool() -> ModuleType:
    return _tool()


@pytest.mark.exhaustive
@pytest.mark.require("native", "g++")
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [compiler.name for compiler in _tool().compilers()])
def test_a_compiler_builds_everything_without_a_warning(tool: ModuleType, name: str) -> None:
    (compiler,) = (one for one in tool.compilers() if one.name == name)
    tool.FOLDER.mkdir(parents=True, exist_ok=True)
    assert tool.build(compiler, werror=True) == ""


def _pretend(folder: Path, name: str, version: str, libraries: tuple[str, ...] = ("",)) -> None:
    """A compiler that knows its version and works with these libraries alone."""
    works = " ".join(f"*-stdlib={library}\\ *) exit 0;;" for library in libraries if library)
    refused = "" if "" in libraries else "exit 1"
    script = f'#!/bin/sh\ncase "$*" in -dump*) echo {version}; exit 0;; esac\n/bin/cat >/dev/null\n'
    script += f'case "$* " in {works} *-stdlib=*) exit 1;; esac\n{refused}\n'
    for path in (folder / name, folder / name.replace("clang++", "clang").replace("g++", "gcc")):
        path.write_text(script)
        path.chmod(0o755)


def test_each_new_enough_compiler_is_listed_once_for_each_library(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _pretend(tmp_path, "g++-14", "14.2.0")
    _pretend(tmp_path, "g++", "14.2.0")  # the same under another name
    _pretend(tmp_path, "clang++-15", "15.0.7")
    _pretend(tmp_path, "clang++-19", "19.1.7", ("", "libc++"))
    _pretend(tmp_path, "clang++", "21.1.0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/nowhere")
    found = [(compiler.name, compiler.version) for compiler in tool.compilers()]
    assert found == [("g++-14", "14.2.0"), ("clang++-19", "19.1.7"), ("clang++-19-libc++", "19.1.7"), ("clang++", "21.1.0")]
