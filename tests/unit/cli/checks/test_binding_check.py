"""What doctor says about the binding: there, missing for this Python, broken, or switched off."""

from __future__ import annotations

import importlib.machinery
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import warplens
from tests.support.programs.launching import environment
from warplens.cli.checks.binding import binding_finding, bound_pythons

HERE = "{}.{}".format(*sys.version_info)
PACKAGE = Path(warplens.__file__).parent
PROGRAM = (
    "from warplens.cli.checks.binding import binding_finding; print(*binding_finding()); from warplens "
    "import nvtx; print(nvtx.enabled())"
)


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """The folder of `warplens.nvtx` in a copy of the package, which has no binding."""
    shutil.copytree(
        PACKAGE,
        tmp_path / "warplens",
        ignore=shutil.ignore_patterns("_binding.*.so", "_lib", "_bundle", "__pycache__"),
    )
    return tmp_path / "warplens" / "nvtx"


def _said(copied: Path) -> list[str]:
    words = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(
        words,
        cwd=copied.parents[1],
        env=environment(PYTHONPATH=str(copied.parents[1])),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.require("native")
def test_a_binding_that_loads_is_ok(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NVTX_DISABLE", raising=False)
    assert binding_finding() == ("ok", f"`warplens.nvtx` records the ranges of CPython {HERE}")
    monkeypatch.setenv("NVTX_DISABLE", "1")
    assert binding_finding()[0] == "note"


def test_a_python_without_a_binding_is_told_in_one_line(copied: Path) -> None:
    for tag in ("cpython-39", "cpython-314t", "cpython-310"):
        (copied / f"_binding.{tag}-x86_64-linux-gnu.so").touch()
    line, enabled = _said(copied)
    assert line.startswith(
        f"note CPython {HERE} has no binding here (only CPython 3.9, CPython 3.10, CPython 3.14t):"
    )
    assert "records nothing, other sources still record" in line
    assert enabled == "False"


def test_a_binding_that_does_not_load_is_named(copied: Path) -> None:
    (copied / f"_binding{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_text("no library")
    line, enabled = _said(copied)
    assert line.startswith(f"note the binding for CPython {HERE} does not load (")
    assert enabled == "False"


def test_other_files_are_no_bindings(tmp_path: Path) -> None:
    for name in (
        "_binding.pyi",
        "_binding.abi3.so",
        "_binding.cpython-312-aarch64-linux-gnu.so",
        "other.cpython-311-x86_64.so",
    ):
        (tmp_path / name).touch()
    assert bound_pythons(tmp_path) == ["CPython 3.12"]
