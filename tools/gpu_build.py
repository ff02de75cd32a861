"""Installs the native half and missing packages on a GPU machine: compiled there, or from `build/gpu`.

`tools/gpu_pack.py` writes that folder elsewhere. Nothing here needs a network, and nothing that was done before is done again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACK = ROOT / "build" / "gpu"  # what was prepared elsewhere
WORK = ROOT / "build" / "gpu-run"  # what is made here
PACKAGE = ROOT / "src" / "warplens"
PARTS = ("spool", "agent", "reader", "device")
MADE_OF = ("CMakeLists.txt", "native", "src/warplens/_version.py")
TREE = (*MADE_OF, "benchmarks", "pyproject.toml", "src", "tests", "tools")
BUILT = {"_lib", "_bundle", "__pycache__"}


def digest(names: Iterable[str] = TREE, root: Path = ROOT) -> str:
    """A number of these files and folders, the same for the same sources on every machine.

    What was built does not count.
    """
    found = hashlib.sha256()
    for path in _files(names, root):
        found.update(f"{path.relative_to(root)}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:16]


def _files(names: Iterable[str], root: Path) -> Iterator[Path]:
    for name in names:
        path = root / name
        for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if (
                file.is_file()
                and not BUILT & set(file.relative_to(root).parts)
                and file.suffix not in {".so", ".pyc"}
            ):
                yield file


def unpack(wheels: Iterable[Path], site: Path) -> list[str]:
    """Unpack wheels into a folder that only we see, and say which are not for this Python.

    That is much quicker than pip.
    """
    refused = []
    for wheel in wheels:
        python, abi = wheel.stem.split("-")[-3:-1]
        if not any(_runs(tag, abi) for tag in python.split(".")):
            refused.append(f"{wheel.name} is not for Python {sysconfig.get_python_version()}")
        elif not (done := site / f"{wheel.name}.unpacked").exists():
            with zipfile.ZipFile(wheel) as packed:
                packed.extractall(site)
            done.touch()
    return refused


def _runs(python: str, abi: str) -> bool:
    if python == "py3":
        return True
    own = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return python == own or (
        abi == "abi3" and python.startswith("cp3") and int(python[3:]) <= sys.version_info[1]
    )


def install(out: Path, build: bool = True) -> str:
    """Compile the native half, or take the libraries of the pack where that fails or is not wanted.

    Say in a line what is there now.

    Without Python's headers the binding is left out. What the compiler said is kept in `build.log`.
    """
    log = out / "build.log"
    if build:
        headers = (Path(sysconfig.get_path("include")) / "Python.h").exists()
        if _is_built(headers):
            return "built before, of the same sources"
        for bindings in (True, False) if headers else (False,):
            if _compile(log, bindings):
                _note(bindings)
                return (
                    "built"
                    if bindings
                    else f"built without the binding of warplens.nvtx, {_binding(headers)}"
                )
    how = f"the build failed (see {log.name})" if build else "nothing was compiled"
    if not (PACK / "native").is_dir():
        return f"{how}, and {PACK.relative_to(ROOT)} has no libraries: only what needs none of them works"
    (WORK / "built.json").unlink(missing_ok=True)
    shutil.copytree(PACK / "native", PACKAGE, dirs_exist_ok=True)
    return f"{how}: the libraries of {PACK.relative_to(ROOT)} are in place{_doubts()}"


def _binding(headers: bool) -> str:
    """Take the binding of the pack where none could be built; say whether there was one."""
    why = "which does not compile (see build.log)" if headers else "for Python.h is missing"
    name = f"nvtx/_binding{sysconfig.get_config_var('EXT_SUFFIX')}"
    if not (PACK / "native" / name).exists():
        return why
    shutil.copy2(PACK / "native" / name, PACKAGE / name)
    return f"{why}; that of {PACK.relative_to(ROOT)} is in place{_doubts()}"


def _doubts() -> str:
    """Say it where the pack was made of other sources than lie here."""
    try:
        made_of = json.loads((PACK / "pack.json").read_text(encoding="utf-8"))["native"]
    except (OSError, ValueError, KeyError, TypeError):
        made_of = None
    return "" if made_of == digest(MADE_OF) else ", BUT THEY ARE OF OTHER SOURCES: make the pack again"


def _state(bindings: bool) -> dict[str, object]:
    return {"native": digest(MADE_OF), "python": [sys.executable, sys.version], "bindings": bindings}


def _note(bindings: bool) -> None:
    (WORK / "built.json").write_text(json.dumps(_state(bindings)), encoding="utf-8")


def _is_built(bindings: bool) -> bool:
    try:
        noted = json.loads((WORK / "built.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return noted == _state(bindings) and (PACKAGE / "_lib" / "libwarplens_agent.so").exists()


def _program(name: str) -> str | None:
    """A program of this Python's own packages, else of PATH."""
    return shutil.which(name, path=str(Path(sys.executable).parent)) or shutil.which(name)


def _compile(log: Path, bindings: bool) -> bool:
    """Configure, build and install with all processors.

    After an error the rest is compiled too, so that one log tells all errors.
    """
    found, ninja, made = _program("cmake"), _program("ninja"), WORK / "native"
    cmake = [found] if found else [sys.executable, "-m", "cmake"]
    generator = ["-G", "Ninja", f"-DCMAKE_MAKE_PROGRAM={ninja}"] if ninja else ["-G", "Unix Makefiles"]
    parts = ";".join([*PARTS, "bindings"] if bindings else PARTS)
    commands = (
        [
            "-S",
            ".",
            "-B",
            str(made),
            *generator,
            f"-DPython_EXECUTABLE={sys.executable}",
            f"-DWARPLENS_PARTS={parts}",
        ],
        ["--build", str(made), "--parallel", str(os.cpu_count() or 1), "--", "-k", *(["0"] if ninja else [])],
        ["--install", str(made), "--prefix", "src"],
    )
    made.mkdir(parents=True, exist_ok=True)
    environment = {
        name: value for name, value in os.environ.items() if name != "MAKEFLAGS"
    }  # of a make that started us
    with log.open("ab") as file:
        file.write(f"--- {parts}\n".encode())
        file.flush()
        for words in commands:
            if (
                subprocess.run(
                    [*cmake, *words], cwd=ROOT, env=environment, stdout=file, stderr=file, check=False
                ).returncode
                != 0
            ):
                return False
    return True
