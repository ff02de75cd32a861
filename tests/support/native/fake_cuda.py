"""The look-alike libcuda, libcudart and libcupti of native/tests/fakes: built once, one folder for each version of CUDA."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.support.native.native_build import ONCE
from tests.support.optional_dependencies import ROOT

SOURCES = ROOT / "native" / "tests" / "fakes"
# Of each version: what FAKE_TOOLKIT is, and the names that CUPTI and the runtime have there.
VERSIONS = {
    "11.8": (1108, "libcupti.so.11.8", "libcudart.so.11.0"),
    "12.4": (1204, "libcupti.so.12", "libcudart.so.12"),
    "13.0": (1300, "libcupti.so.13", "libcudart.so.13"),
    "13.4": (1304, "libcupti.so.13", "libcudart.so.13"),
}
DEFAULT = "13.0"


def build(words: Sequence[str] = (), compiler: str = "g++") -> Path:
    """Build every version, with more words for the compiler; return the folder that holds a folder for each.

    It lies below `build/fakes` and is kept until the sources or the words change.
    """
    files = sorted(path for path in SOURCES.iterdir() if path.suffix in {".h", ".cpp", ".map"})
    digest = hashlib.sha256("\0".join([compiler, *words]).encode())
    for path in files:
        digest.update(path.name.encode() + path.read_bytes())
    base = ROOT / "build" / "fakes"
    base.mkdir(parents=True, exist_ok=True)
    folder = base / digest.hexdigest()[:16]
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.exists():
            made = Path(tempfile.mkdtemp(prefix="new-", dir=base))
            made.chmod(0o755)
            _compile(made, compiler, words)
            made.rename(folder)
            for old in base.iterdir():
                if (
                    old.is_dir()
                    and old != folder
                    and not words
                    and old.stat().st_mtime < folder.stat().st_mtime - 86400
                ):
                    shutil.rmtree(old, ignore_errors=True)
    return folder


def _compile(folder: Path, compiler: str, words: Sequence[str]) -> None:
    common: list[str | Path] = [
        compiler,
        "-std=c++20",
        "-O1",
        "-g1",
        "-fPIC",
        "-fvisibility=hidden",
        "-Wall",
        "-Wextra",
        "-Werror",
        *words,
    ]
    sources = [path for path in sorted(SOURCES.glob("*.cpp")) if path.name != "version.cpp"]

    def compile_one(path: Path) -> int:
        return subprocess.run(
            [*ONCE, *common, "-c", path.name, "-o", folder / f"{path.stem}.o"], cwd=SOURCES, check=False
        ).returncode

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        if any(pool.map(compile_one, sources)):
            raise RuntimeError("the look-alike libcuda does not compile")
    objects = [folder / f"{path.stem}.o" for path in sources]
    for version, (toolkit, cupti, cudart) in VERSIONS.items():
        (folder / version).mkdir()
        library = folder / version / "libcuda.so.1"
        link = [
            "-shared",
            f"-DFAKE_TOOLKIT={toolkit}",
            f"-Wl,--version-script=exports-{toolkit}.map",
            "-Wl,-soname,libcuda.so.1",
        ]
        command: list[str | Path] = [
            *common,
            *link,
            "-Wl,-Bsymbolic",
            "version.cpp",
            *objects,
            "-o",
            library,
            "-pthread",
            "-ldl",
        ]
        subprocess.run(command, cwd=SOURCES, check=True)
        # One file under all three names: they are one loaded library, and share what they know.
        for name in (cupti, cudart, "libcuda.so", "libcudart.so"):
            (folder / version / name).symlink_to(library.name)


class FakeCuda:
    """The look-alike of one version, and the environment that makes programs use it."""

    def __init__(self, version: str = DEFAULT, words: Sequence[str] = (), compiler: str = "g++") -> None:
        self.version = version
        self.folder = build(words, compiler) / version
        self.cupti = self.folder / VERSIONS[version][1]
        self.cudart = self.folder / VERSIONS[version][2]

    def environment(
        self,
        *,
        traps: str = "",
        log: Path | None = None,
        truth: Path | None = None,
        agent: Path | None = None,
        **more: str,
    ) -> dict[str, str]:
        """Variables for a program: where the libraries are; which traps are set (README.md of the fakes); where to write what."""
        before = os.environ.get("LD_LIBRARY_PATH")
        found = {
            "LD_LIBRARY_PATH": f"{self.folder}:{before}" if before else str(self.folder),
            "FAKE_CUPTI_TRAPS": traps,
        }
        for name, path in (
            ("FAKE_CUDA_LOG", log),
            ("FAKE_CUDA_TRUTH", truth),
            ("CUDA_INJECTION64_PATH", agent),
        ):
            if path is not None:
                found[name] = str(path)
        return {**found, **more}

    def words(self) -> list[str]:
        """Words for the compiler of a C program that calls it."""
        return [f"-I{SOURCES}", str(self.folder / "libcuda.so.1")]


def log(path: Path) -> list[str]:
    """The lines of FAKE_CUDA_LOG; none where it was not written."""
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def violations(path: Path) -> list[str]:
    """What the program's tool did against CUPTI's rules."""
    return [line for line in log(path) if line.startswith("violation")]


def truth(path: Path) -> list[dict[str, Any]]:
    """What the GPUs did: the lines of FAKE_CUDA_TRUTH, times in ns of CLOCK_MONOTONIC."""
    return (
        [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()] if path.exists() else []
    )
