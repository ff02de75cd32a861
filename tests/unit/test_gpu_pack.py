"""`make gpu-pack`: what it takes along, what it says of what it cannot make, and that it is no larger than may be."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.optional_dependencies import ROOT


@pytest.fixture(name="tool")
def _tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool with a small native half, and nothing that runs for long."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    module = importlib.import_module("gpu_pack")
    package = tmp_path / "src" / "warplens"
    for file in (
        "_lib/libwarplens_agent.so",
        "_lib/include/warplens.cuh",
        "nvtx/_binding.some.so",
        "nvtx/__init__.py",
    ):
        (package / file).parent.mkdir(parents=True, exist_ok=True)
        (package / file).write_text(file)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "PACKAGE", package)
    monkeypatch.setattr(module, "PACK", tmp_path / "build" / "gpu")
    monkeypatch.setattr(sys, "argv", ["gpu_pack.py"])
    return module


def test_a_failed_part_is_named_and_the_others_are_packed(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked: list[list[str]] = []

    def refuse(command: list[str], **words: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 1, "", "nothing works")

    monkeypatch.setattr(tool.subprocess, "run", refuse)
    monkeypatch.setattr(tool.python_headers, "of_interpreters", dict)
    assert tool.main() == 0
    said = capsys.readouterr().out
    assert "no binding for Python 3.12: no such CPython was found here (--headers 3.12=FOLDER)" in said
    assert "no wheels of duckdb==" in said
    assert "no kernels of CuTe DSL: nothing works" in said
    (download,) = [command for command in asked if "download" in command]
    assert download[download.index("--python-version") + 1] == "3.12"
    files = {path.relative_to(tool.PACK).as_posix() for path in tool.PACK.rglob("*") if path.is_file()}
    assert files == {
        "native/_lib/libwarplens_agent.so",
        "native/_lib/include/warplens.cuh",
        "native/nvtx/_binding.some.so",
        "pack.json",
        "run.sh",
    }
    assert json.loads((tool.PACK / "pack.json").read_text())["native"] == importlib.import_module(
        "gpu_build"
    ).digest(tool.MADE_OF)


def test_a_pack_that_is_too_large_fails_and_names_what_is(
    tool: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tool, "binding", lambda pack, wanted, own: "")
    monkeypatch.setattr(tool, "wheels", lambda folder, names, python: "")
    monkeypatch.setattr(tool, "cubins", lambda architectures: "")
    assert tool.main() == 0
    (tool.PACKAGE / "_lib" / "large.so").write_bytes(bytes(3000))
    monkeypatch.setattr(tool, "LIMIT", 3000)
    assert tool.main() == 1
    assert "too large; the largest are\n  native/_lib/large.so" in capsys.readouterr().out
    (tool.PACKAGE / "_lib" / "large.so").unlink()
    assert tool.main() == 0, "what an earlier pack had is still there"
