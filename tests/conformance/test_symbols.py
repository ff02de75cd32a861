"""What the shared libraries show to the program they live in, and what they need from it."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "warplens"
LIBRARIES = sorted([*(PACKAGE / "_lib").glob("*.so"), *(PACKAGE / "nvtx").glob("_binding*.so")])
VENDOR = {
    "InitializeInjection",
    "InitializeInjectionNvtx",
    "InitializeInjectionNvtx2",
    "InitializeInjectionNvtxExtension",
}
# What the stub wraps, so that every process of the tree is known (native/preload).
WRAPPED = {
    *(
        "execl",
        "execle",
        "execlp",
        "execv",
        "execve",
        "execveat",
        "execvp",
        "execvpe",
        "fexecve",
        "posix_spawn",
        "posix_spawnp",
    ),
    *("cudaProfilerStart", "cudaProfilerStop", "cuProfilerStart", "cuProfilerStop"),
    *(
        "_Exit",
        "_exit",
        "quick_exit",
        "wait",
        "wait3",
        "wait4",
        "waitid",
        "waitpid",
        "prctl",
        "system",
        "popen",
    ),
}
# What only lets a wrapper look whether it must wait: it is called, and not wrapped.
ASKED_FIRST = {
    *(
        "pthread_mutex_trylock",
        "pthread_rwlock_tryrdlock",
        "pthread_rwlock_trywrlock",
        "pthread_spin_trylock",
    ),
    *("sem_trywait", "pthread_testcancel"),
}
OLDEST_GLIBC = (2, 28)  # manylinux_2_28

pytestmark = [
    pytest.mark.require("native", "binutils"),
    pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="ELF and glibc"),
]
TABLES = Path(__file__).resolve().parents[2] / "native" / "preload" / "osrt"
every_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)


def _symbols(library: Path, which: str) -> Iterator[str]:
    listed = subprocess.run(
        ["nm", "-D", which, str(library)], capture_output=True, text=True, check=True
    ).stdout
    for line in listed.splitlines():
        yield line.split()[-1]


def _os_calls() -> set[str]:
    """The functions that the larger stub wraps beside, from its tables."""
    tables = "".join(path.read_text(encoding="utf-8") for path in TABLES.glob("*.h"))
    named = re.findall(r"\bX\(\s*[\w *]+,\s*(\w+),", tables) + re.findall(
        r"OSRT_OLD_STAT\(X, (\w+), stat", tables
    )
    return set(named) - {"name"} - ASKED_FIRST


def test_the_libraries_are_here() -> None:
    parts = {path.name.partition(".")[0].removeprefix("libwarplens_") for path in LIBRARIES}
    assert parts == {"agent", "reader", "preload", "preload_cpu", "_binding"}


@every_library
def test_a_library_exports_our_interface_and_the_vendors_entry_points_only(library: Path) -> None:
    exported = set(_symbols(library, "--defined-only"))
    own = {name for name in exported if name.startswith("warplens_")}
    entries = {
        "_binding": {"PyInit__binding"},
        "libwarplens_agent": VENDOR,
        "libwarplens_preload": WRAPPED,
        "libwarplens_preload_cpu": WRAPPED | _os_calls(),
    }
    part = library.name.partition(".")[0]
    assert exported - own == entries.get(part, set())
    if part in ("libwarplens_agent", "libwarplens_reader"):
        assert own
    else:
        assert own == (
            {"warplens_leave"} if part.startswith("libwarplens_preload") else set()
        )  # what the agent writes there


@every_library
def test_a_library_runs_on_glibc_2_28(library: Path) -> None:
    newer = {}
    for name in _symbols(library, "--undefined-only"):
        version = re.search(r"@GLIBC_(\d+)\.(\d+)", name)
        if version and (int(version[1]), int(version[2])) > OLDEST_GLIBC:
            newer[name.partition("@")[0]] = version[0][1:]
    assert not newer, f"give these an older definition in native/compat/glibc.c: {newer}"


@every_library
def test_a_library_contains_its_cpp_runtime(library: Path) -> None:
    listed = subprocess.run(
        ["readelf", "-d", str(library)], capture_output=True, text=True, check=True
    ).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", listed))
    allowed = r"lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux.*"
    assert all(re.fullmatch(allowed, name) for name in needed), needed


def test_the_stub_is_light() -> None:
    """It is in every process of the tree: no further library, two mappings, no thread-local memory, and any glibc will do."""
    stub = PACKAGE / "_lib" / "libwarplens_preload.so"
    listed = subprocess.run(["readelf", "-dlW", str(stub)], capture_output=True, text=True, check=True).stdout
    assert re.findall(r"\(NEEDED\).*\[(.+?)\]", listed) == ["libc.so.6"]
    assert len(re.findall(r"^ +LOAD ", listed, re.MULTILINE)) == 2
    assert not re.search(r"^ +TLS ", listed, re.MULTILINE)
    versions = [
        tuple(map(int, found))
        for name in _symbols(stub, "--undefined-only")
        for found in re.findall(r"@GLIBC_(\d+)\.(\d+)", name)
    ]
    assert max(versions) <= (2, 17)
