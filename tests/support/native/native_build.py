"""Builds the agent and its test programs with another compiler or with sanitizers, straight from the sources."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.integration.conftest import nvtx_headers
from tests.support.native.targets import source

ROOT = Path(__file__).resolve().parents[3]
NATIVE = ROOT / "native"
# What was compiled before, in this run or an earlier one, is not compiled again.
ONCE = (sys.executable, "-S", "-E", str(ROOT / "tools" / "compile_once.py"))
_INCLUDE = (f"-I{NATIVE / 'include'}", f"-I{NATIVE}", "-isystem")
# As in the real build: with another TLS model, or its `operator new` exported, it would be another agent.
_COMPILE = (
    "-O1",
    "-std=c++20",
    "-fPIC",
    "-fno-rtti",
    "-ftls-model=initial-exec",
    "-fvisibility=hidden",
    '-DWARPLENS_VERSION="test"',
)
_LINK = ("-shared", f"-Wl,--version-script={NATIVE / 'agent' / 'exports.map'}")


def sources(*folders: str) -> list[Path]:
    """The C++ files below these folders of `native/`."""
    return [path for folder in folders for path in sorted((NATIVE / folder).rglob("*.cpp"))]


def _compile(folder: Path, compiler: str, words: Sequence[str], path: Path) -> Path:
    out = folder / f"{path.parent.parent.name}-{path.parent.name}-{path.stem}.o"
    if not out.exists():
        subprocess.run(
            [*ONCE, compiler, "-c", *_COMPILE, *_INCLUDE, nvtx_headers(), *words, path, "-o", out], check=True
        )
    return out


def objects(
    folder: Path, paths: Iterable[Path], compiler: str = "g++", words: Sequence[str] = ()
) -> list[Path]:
    """Compile into `folder` what is not there yet, on all CPUs."""
    folder.mkdir(exist_ok=True)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(partial(_compile, folder, compiler, words), paths))


AGENT = ("spool", "agent")


def build_agent(
    out: Path, compiler: str = "g++", words: Sequence[str] = (), folder: Path | None = None
) -> Path:
    """Build the agent library; `folder` keeps the objects, for other builds with the same compiler and words."""
    made = objects(folder or out.with_suffix(".objects"), sources(*AGENT), compiler, words)
    subprocess.run([compiler, *_LINK, *words, *made, "-o", out], check=True)
    return out


def build_binding(folder: Path, words: Sequence[str], python: str = sys.executable) -> None:
    """Build the binding for an interpreter as `folder/warplens/nvtx/_binding.*.so`, beside the package's Python files."""
    package = folder / "warplens"
    shutil.copytree(ROOT / "src" / "warplens", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    code = "import sysconfig; print(sysconfig.get_path('include')); print(sysconfig.get_config_var('EXT_SUFFIX'))"
    headers, suffix = subprocess.run(
        [python, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    include = ("-isystem", nvtx_headers(), "-isystem", headers, f"-I{NATIVE / 'include'}", f"-I{NATIVE}")
    flags = ("-std=c++20", "-fPIC", "-fno-exceptions", "-fno-rtti", "-fvisibility=hidden", *words)

    def compile_one(source: Path) -> Path:
        made = folder / f"{source.parent.name}-{source.stem}.o"
        subprocess.run([*ONCE, "g++", *flags, *include, "-c", source, "-o", made], check=True)
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        made = list(pool.map(compile_one, sources("bindings")))
    subprocess.run(
        ["g++", "-shared", *words, *made, "-o", package / "nvtx" / f"_binding{suffix}", "-ldl"], check=True
    )


def build_stub(out: Path, compiler: str = "gcc", words: Sequence[str] = (), *, cpu: bool = False) -> Path:
    """Build the stub that is preloaded; with `cpu`, the one that wraps functions of the operating system as well."""
    folder = NATIVE / "preload"
    exports = folder / ("exports_cpu.map" if cpu else "exports.map")
    compile_words = [
        "-std=c11",
        "-Os",
        "-fPIC",
        "-fexceptions",
        "-fno-delete-null-pointer-checks",
        "-fvisibility=hidden",
    ]
    compile_words += ["-DWARPLENS_OSRT"] if cpu else []
    link_words = ["-shared", "-nostartfiles", "-Wl,--no-undefined", f"-Wl,--version-script={exports}"]
    paths = [path for path in sorted(folder.rglob("*.c")) if cpu or path.parent == folder]
    subprocess.run(
        [
            compiler,
            *compile_words,
            *link_words,
            f"-I{NATIVE / 'include'}",
            f"-I{NATIVE}",
            *words,
            *paths,
            "-o",
            out,
        ],
        check=True,
    )
    return out


def build_spool_test(
    out: Path,
    compiler: str = "g++",
    words: Sequence[str] = (),
    name: str = "spool_test",
    folder: Path | None = None,
    more: Sequence[Path] = (),
) -> Path:
    """Build unit tests of the spool writer, and of what `more` holds: `native/tests/*/<name>.cpp`."""
    (test,) = (NATIVE / "tests").glob(f"*/{name}.cpp")
    paths = [test, *sources("spool"), *more]
    made = objects(folder or out.with_suffix(".objects"), paths, compiler, words)
    subprocess.run([compiler, *words, *made, "-pthread", "-ldl", "-o", out], check=True)
    return out


def build_target(name: str, out: Path, compiler: str = "gcc", words: Sequence[str] = ()) -> Path:
    """Build `tests/targets/*/<name>.c`."""
    subprocess.run(
        [
            compiler,
            "-O1",
            "-isystem",
            nvtx_headers(),
            *words,
            source(f"{name}.c"),
            "-o",
            out,
            "-pthread",
            "-ldl",
        ],
        check=True,
    )
    return out


def sharing_objects() -> dict[str, str]:
    """Return variables with which CMake, in whatever folder and for whatever Python, takes objects that were made before."""
    launcher = ";".join(ONCE)
    return {**os.environ, "CMAKE_C_COMPILER_LAUNCHER": launcher, "CMAKE_CXX_COMPILER_LAUNCHER": launcher}
