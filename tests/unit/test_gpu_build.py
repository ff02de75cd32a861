"""What `make gpu` puts in place: wheels of this Python alone, and the libraries of the pack, told where they are of other sources."""

from __future__ import annotations

import importlib
import json
import sys
import zipfile
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.optional_dependencies import ROOT


@pytest.fixture(name="tool")
def _tool(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    """The tool in a checkout of its own, with a pack, where nothing compiles."""
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    module = importlib.import_module("gpu_build")
    for name, place in (
        ("ROOT", "."),
        ("PACK", "build/gpu"),
        ("WORK", "build/gpu-run"),
        ("PACKAGE", "src/warplens"),
    ):
        monkeypatch.setattr(module, name, tmp_path / place)
        (tmp_path / place).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(module, "digest", lambda names: "these")
    monkeypatch.setattr(module, "_compile", lambda log, bindings: False)
    (tmp_path / "build" / "gpu" / "native" / "_lib").mkdir(parents=True)
    (tmp_path / "build" / "gpu" / "native" / "_lib" / "libwarplens_agent.so").write_text("packed")
    (tmp_path / "build" / "gpu" / "pack.json").write_text(json.dumps({"native": "these"}))
    return module


def _agent(tool: ModuleType) -> str:
    return str((tool.PACKAGE / "_lib" / "libwarplens_agent.so").read_text())


def test_a_failed_build_installs_the_pack(tool: ModuleType, tmp_path: Path) -> None:
    (tool.PACKAGE / "_lib").mkdir()
    (tool.PACKAGE / "_lib" / "libwarplens_agent.so").write_text("old")
    assert (
        tool.install(tmp_path) == "the build failed (see build.log): the libraries of build/gpu are in place"
    )
    assert _agent(tool) == "packed"


def test_libraries_of_other_sources_are_named_so(tool: ModuleType, tmp_path: Path) -> None:
    for text in (json.dumps({"native": "others"}), "", "[]"):
        (tool.PACK / "pack.json").write_text(text)
        assert "OF OTHER SOURCES" in tool.install(tmp_path, build=False)


def test_unchanged_sources_are_not_built_again(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool.sysconfig, "get_path", lambda name: str(tmp_path))
    (tmp_path / "Python.h").touch()
    (tool.PACKAGE / "_lib").mkdir()
    (tool.PACKAGE / "_lib" / "libwarplens_agent.so").touch()
    monkeypatch.setattr(tool, "_compile", lambda log, bindings: True)
    assert tool.install(tmp_path) == "built"
    assert tool.install(tmp_path) == "built before, of the same sources"
    monkeypatch.setattr(tool, "digest", lambda names: "others")
    assert tool.install(tmp_path) == "built"
    (tool.PACKAGE / "_lib" / "libwarplens_agent.so").unlink()
    assert tool.install(tmp_path) == "built"


def test_without_headers_the_binding_of_the_pack_is_taken(
    tool: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool.sysconfig, "get_path", lambda name: str(tmp_path))
    monkeypatch.setattr(tool, "_compile", lambda log, bindings: not bindings)
    assert tool.install(tmp_path) == "built without the binding of warplens.nvtx, for Python.h is missing"
    name = f"_binding{tool.sysconfig.get_config_var('EXT_SUFFIX')}"
    for folder in (tool.PACK / "native" / "nvtx", tool.PACKAGE / "nvtx"):
        folder.mkdir()
    (tool.PACK / "native" / "nvtx" / name).touch()
    assert tool.install(tmp_path).endswith("for Python.h is missing; that of build/gpu is in place")
    assert (tool.PACKAGE / "nvtx" / name).exists()


def test_wheels_of_another_python_are_refused(tool: ModuleType, tmp_path: Path) -> None:
    major, minor = sys.version_info[:2]
    wheels = [
        tmp_path / f"{name}-1.0-{tag}.whl"
        for name, tag in (
            ("pure", "py3-none-any"),
            ("own", f"cp{major}{minor}-cp{major}{minor}-manylinux_2_28_x86_64"),
            ("stable", "cp310-abi3-manylinux_2_17_x86_64.manylinux2014_x86_64"),
            ("newer", f"cp{major}{minor + 1}-abi3-manylinux_2_28_x86_64"),
            ("other", f"cp{major}{minor + 1}-cp{major}{minor + 1}-manylinux_2_28_x86_64"),
        )
    ]
    for wheel in wheels:
        with zipfile.ZipFile(wheel, "w") as packed:
            packed.writestr(f"{wheel.name.partition('-')[0]}.py", "")
    site = tmp_path / "site"
    site.mkdir()
    refused = tool.unpack(wheels, site)
    assert [line.partition("-")[0] for line in refused] == ["newer", "other"]
    assert {path.name for path in site.glob("*.py")} == {"pure.py", "own.py", "stable.py"}


def test_only_sources_count_for_what_was_built_of_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    digest = importlib.import_module("gpu_build").digest
    (tmp_path / "src" / "_lib").mkdir(parents=True)
    (tmp_path / "src" / "a.py").write_text("1")
    first = digest(["src"], tmp_path)
    (tmp_path / "src" / "_lib" / "library.so").write_text("1")
    (tmp_path / "src" / "a.pyc").write_text("1")
    assert digest(["src"], tmp_path) == first
    (tmp_path / "src" / "a.py").rename(tmp_path / "src" / "b.py")
    assert digest(["src"], tmp_path) != first
