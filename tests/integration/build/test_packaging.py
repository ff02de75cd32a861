"""What is shipped: the sdist holds its sources, the wheel its parts, and both work in an empty environment."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.support.programs import launching
from tests.support.programs.launching import COMMAND
from tests.support.native.native_build import sharing_objects

ROOT = Path(__file__).resolve().parents[3]
COMPAT = ROOT / "native" / "compat" / "glibc.c"

_PROGRAM = """
import warplens.nvtx as nvtx

for _ in range(3):
    with nvtx.annotate("step"):
        pass
print("done")
"""

pytestmark = [pytest.mark.require("gcc"), pytest.mark.timeout(600)]


def _run(*command: object, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = subprocess.run([str(part) for part in command], cwd=cwd, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sdist of this checkout."""
    folder = tmp_path_factory.mktemp("sdist")
    _run(sys.executable, "-m", "build", "--sdist", "--no-isolation", "--outdir", folder, ROOT)
    (path,) = folder.glob("*.tar.gz")
    return path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty environment's `bin` folder."""
    folder = tmp_path_factory.mktemp("environment")
    _run(sys.executable, "-m", "venv", folder)
    return folder / "bin"


@pytest.fixture(scope="module")
def wheel(sdist: Path, environment: Path) -> Path:
    """The wheel that pip builds from the sdist with nothing but what the sdist asks for."""
    folder = sdist.parent / "wheel"
    _run(environment / "python", "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, sdist, env=sharing_objects())
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def installed(wheel: Path, environment: Path) -> Path:
    """The empty environment with the wheel and none of its dependencies."""
    _run(environment / "python", "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", wheel)
    assert len(_run(environment / "python", "-m", "pip", "list", "--format=freeze", "--exclude=pip", "--exclude=setuptools").split()) == 1
    return environment


@pytest.fixture(scope="module")
def full(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`bin` of another environment, with the wheel and its dependencies."""
    folder = tmp_path_factory.mktemp("full")
    _run(sys.executable, "-m", "venv", folder)
    _run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-compile", wheel)
    return folder / "bin"


def test_the_sdist_holds_the_sources_and_nothing_built(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"CMakeLists.txt", "LICENSE", "pyproject.toml", "native/include/warplens/format.h", "src/warplens/py.typed"} <= names
    assert "native/device/warplens.cuh" in names
    unwanted = {name for name in names if re.match(r"(\.venv|\.ci|build|dist|shared)/|.*\.(so|pyc|o)$", name)}
    assert not unwanted


def test_the_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name.partition("/")[0] for name in names} <= {"warplens", f"warplens-{wheel.name.split('-')[1]}.dist-info"}
    package = {name.partition("/")[2] for name in names if name.startswith("warplens/")}
    libraries = {f"_lib/libwarplens_{name}.so" for name in ("agent", "reader", "preload")}
    headers = {f"_lib/include/{path.name}" for path in (ROOT / "native" / "device").iterdir() if path.suffix in (".cuh", ".h")}
    assert "_lib/include/warplens.cuh" in headers
    assert {"py.typed", "nvtx/_binding.pyi", "intrakernel/examples/tiles.cu", *libraries, *headers} <= package
    assert any(re.fullmatch(r"nvtx/_binding\..*\.so", name) for name in package)
    assert {name.rpartition("/")[2] for name in names if "/licenses/" in name} == {"LICENSE", "LICENSE-THIRD-PARTY"}
    assert not {name for name in package - headers if re.search(r"(^|/)tests?(/|_)|\.(cpp|h|a|o)$", name)}


def test_an_installation_without_dependencies_annotates(installed: Path, tmp_path: Path) -> None:
    program = "import warplens, warplens.nvtx as n\nwith n.annotate('a'): pass\nprint(warplens.__version__, n.annotate.__module__)"
    version, _ = _run(installed / "python", "-c", program, cwd=tmp_path).split()
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", version)


def test_include_path_returns_the_folder_of_the_kernel_header(installed: Path, tmp_path: Path) -> None:
    program = "from warplens.intrakernel import include_path; print(include_path())"
    path = Path(_run(installed / "python", "-c", program, cwd=tmp_path).strip())
    assert path.is_relative_to(installed.parent)
    assert (path / "warplens.cuh").exists()


def test_its_agent_loads_without_dependencies(installed: Path, tmp_path: Path) -> None:
    program = "from warplens.recording.agent.library import load_agent; agent = load_agent(); print(agent.path)"
    path = _run(installed / "python", "-c", program, cwd=tmp_path).strip()
    assert Path(path).is_relative_to(installed.parent)


@pytest.mark.exhaustive
def test_the_command_works_with_dependencies(full: Path, tmp_path: Path) -> None:
    """Everything that the metadata names is enough: stats over a recording made and read in this environment."""
    assert _run(full / "warplens", "--version", cwd=tmp_path).startswith("warplens ")
    _run(full / "warplens", "doctor", cwd=tmp_path)
    _run(full / "warplens", "profile", "--light", "-o", "run", full / "python", "-c", _PROGRAM, cwd=tmp_path)
    table = _run(full / "warplens", "stats", "-r", "nvtx_sum", "-f", "csv", "run.warplens", cwd=tmp_path)
    assert re.search(r",3,.*step", table)


def test_an_installation_without_dependencies_records_for_another_to_finish(installed: Path, tmp_path: Path) -> None:
    printed = _run(installed / "warplens", "profile", "--light", "-o", "run", installed / "python", "-c", _PROGRAM, cwd=tmp_path)
    assert printed == "done\n"
    table = _run(*COMMAND, "stats", "-r", "nvtx_sum", "-f", "csv", "run.warplens", cwd=tmp_path, env=launching.environment())
    assert re.search(r",3,.*step", table)


def test_exceptions_unwind_through_our_own_lookup(tmp_path: Path) -> None:
    """native/compat replaces the function with which libgcc finds unwind tables; a throw proves that it is found."""
    (tmp_path / "throw.cpp").write_text(
        "#include <stdexcept>\n#include <vector>\n"
        'extern "C" __attribute__((visibility("default"))) int thrown(int n) {\n'
        "  try { return std::vector<int>(3).at(n); } catch (const std::out_of_range &) { return -1; }\n}\n"
    )
    library = tmp_path / "throw.so"
    _run("gcc", "-std=gnu11", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-c", COMPAT, "-o", tmp_path / "glibc.o")
    _run("g++", "-O2", "-shared", "-fPIC", "-fvisibility=hidden", "-static-libstdc++", "-static-libgcc", "-Wl,--exclude-libs,ALL",
         tmp_path / "throw.cpp", tmp_path / "glibc.o", "-o", library)  # fmt: skip
    program = f"import ctypes\nlibrary = ctypes.CDLL({str(library)!r})\nprint(library.thrown(1), library.thrown(9))"
    assert _run(sys.executable, "-c", program).split() == ["0", "-1"]
    assert "_dl_find_object" not in _run("nm", "-D", library)
