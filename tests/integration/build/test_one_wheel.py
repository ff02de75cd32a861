"""One wheel for several Pythons: each loads its own binding, and a Python without one records all the same."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.programs import launching
from tests.support.programs.launching import COMMAND
from tests.support.native.native_build import sharing_objects
from tests.support.optional_dependencies import LIB

ROOT = Path(__file__).resolve().parents[3]
# Bindings alone, without optimising: the other libraries are those of this checkout.
_LESS = ("cmake.define.WARPLENS_PARTS=bindings", "cmake.build-type=Plain", "wheel.tags=py3-none-linux_x86_64", "build-dir=build/one-wheel")
_PROGRAM = "import warplens.nvtx as n\nwith n.annotate('step'): pass\nprint(n.enabled())"

pytestmark = [pytest.mark.require("other-python", "gcc", "native"), pytest.mark.timeout(600)]


def _run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def other() -> tuple[tuple[int, int], Path, Path]:
    """Version, interpreter and headers of a Python that is not this one."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        headers, pythons = importlib.import_module("python_headers"), importlib.import_module("pythons")
    finally:
        sys.path.pop(0)
    machine = os.uname().machine
    known, _ = headers.find(machine, machine, {}, headers.of_interpreters())
    for one in known:
        if one.version != sys.version_info[:2]:
            return one.version, pythons.pythons()[one.version], one.folders[0]
    pytest.skip("no other CPython has its headers here")


@pytest.fixture(scope="module")
def wheel(other: tuple[tuple[int, int], Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel with bindings for the other Python and for one that nobody has, and none for this one."""
    folder = tmp_path_factory.mktemp("wheel")
    pythons = f"cpython-3{other[0][1]}-x86_64-linux-gnu={other[2]};cpython-399-x86_64-linux-gnu={other[2]}"
    words = [f"--config-setting={word}" for word in (*_LESS, f"cmake.define.WARPLENS_PYTHONS={pythons}")]
    _run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", folder, *words, ROOT, env=sharing_objects())
    (path,) = folder.glob("*.whl")
    return path


def _installed(python: str | Path, wheel: Path, folder: Path) -> Path:
    _run(python, "-m", "venv", folder)
    _run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile", wheel)
    (site,) = folder.glob("lib/python*/site-packages")
    shutil.copytree(LIB, site / "warplens" / "_lib")
    return folder / "bin"


def test_the_wheel_holds_the_bindings_that_were_asked_for(wheel: Path, other: tuple[tuple[int, int], Path, Path]) -> None:
    with zipfile.ZipFile(wheel) as packed:
        bindings = {name for name in packed.namelist() if name.endswith(".so")}
    assert bindings == {f"warplens/nvtx/_binding.cpython-3{minor}-x86_64-linux-gnu.so" for minor in (other[0][1], 99)}


def test_a_python_of_the_wheel_loads_its_binding(wheel: Path, other: tuple[tuple[int, int], Path, Path], tmp_path: Path) -> None:
    programs = _installed(other[1], wheel, tmp_path / "environment")
    assert _run(programs / "python", "-c", _PROGRAM, cwd=tmp_path) == "True\n"


def test_a_python_without_a_binding_records_without_ranges(wheel: Path, tmp_path: Path) -> None:
    programs = _installed(sys.executable, wheel, tmp_path / "environment")
    printed = _run(programs / "warplens", "profile", "--light", "-o", "run", programs / "python", "-c", _PROGRAM, cwd=tmp_path)
    assert printed == "False\n"
    finished = _run(*COMMAND, "info", "-f", "json", "run.warplens", cwd=tmp_path, env=launching.environment())
    assert json.loads(finished)["parts"]
    table = _run(
        *COMMAND, "query", "-f", "csv", "run.warplens", "SELECT count(*) FROM nvtx_ranges", cwd=tmp_path, env=launching.environment()
    )
    assert table.split()[-1] == "0"


@pytest.mark.require("aarch64")
def test_a_cross_compiler_builds_a_binding_named_after_its_machine(other: tuple[tuple[int, int], Path, Path], tmp_path: Path) -> None:
    cross = {"CMAKE_SYSTEM_NAME": "Linux", "CMAKE_SYSTEM_PROCESSOR": "aarch64"}
    cross |= {"CMAKE_C_COMPILER": "aarch64-linux-gnu-gcc", "CMAKE_CXX_COMPILER": "aarch64-linux-gnu-g++", "CMAKE_BUILD_TYPE": "Plain"}
    cross |= {"WARPLENS_PARTS": "bindings", "WARPLENS_PYTHONS": f"cpython-312-aarch64-linux-gnu={other[2]}"}
    cmake, python = Path(sys.executable).with_name("cmake"), f"-DPython_EXECUTABLE={sys.executable}"
    words = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={Path(sys.executable).with_name('ninja')}", python]
    _run(cmake, "-S", ROOT, "-B", tmp_path, *words, *(f"-D{name}={value}" for name, value in cross.items()), env=sharing_objects())
    _run(cmake, "--build", tmp_path, env=sharing_objects())
    (binding,) = tmp_path.rglob("_binding.*.so")
    assert binding.name == "_binding.cpython-312-aarch64-linux-gnu.so"
    assert int.from_bytes(binding.read_bytes()[18:20], "little") == 183  # e_machine of ELF


def test_a_wrong_list_of_pythons_is_refused(tmp_path: Path) -> None:
    words = [
        "-S",
        str(ROOT),
        "-B",
        str(tmp_path),
        "-DWARPLENS_PYTHONS=3.12",
        "-DWARPLENS_PARTS=bindings",
        f"-DPython_EXECUTABLE={sys.executable}",
    ]
    done = subprocess.run([str(Path(sys.executable).with_name("cmake")), *words], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is not SOABI=FOLDER" in " ".join(done.stderr.split())
