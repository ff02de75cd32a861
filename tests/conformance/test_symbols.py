"""What the shared libraries show to the program they live in, and what they need from it."""

from __future__ import annotations

import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "src" / "warpline"
LIBRARIES = sorted([*(PACKAGE / "_lib").glob("*.so"), *(PACKAGE / "nvtx").glob("_binding*.so")])
VENDOR = {"InitializeInjectionNvtx", "InitializeInjectionNvtx2", "InitializeInjectionNvtxExtension"}
OLDEST_GLIBC = (2, 28)  # manylinux_2_28

pytestmark = [
    pytest.mark.require("native", "binutils"),
    pytest.mark.skipif(sys.platform != "linux" or platform.libc_ver()[0] != "glibc", reason="ELF and glibc"),
]
every_library = pytest.mark.parametrize("library", LIBRARIES, ids=lambda path: path.name)


def _symbols(library: Path, which: str) -> Iterator[str]:
    listed = subprocess.run(["nm", "-D", which, str(library)], capture_output=True, text=True, check=True).stdout
    for line in listed.splitlines():
        yield line.split()[-1]


def test_the_libraries_are_here() -> None:
    assert {path.name.partition(".")[0] for path in LIBRARIES} == {"libwarpline_agent", "libwarpline_desk", "_binding"}


@every_library
def test_it_exports_our_interface_and_the_vendors_entry_points_only(library: Path) -> None:
    exported = set(_symbols(library, "--defined-only"))
    own = {name for name in exported if name.startswith("warpline_")}
    entry = {"PyInit__binding"} if library.name.startswith("_binding") else VENDOR if "agent" in library.name else set()
    assert exported - own == entry
    assert own or library.name.startswith("_binding")


@every_library
def test_it_runs_on_glibc_2_28(library: Path) -> None:
    newer = {}
    for name in _symbols(library, "--undefined-only"):
        version = re.search(r"@GLIBC_(\d+)\.(\d+)", name)
        if version and (int(version[1]), int(version[2])) > OLDEST_GLIBC:
            newer[name.partition("@")[0]] = version[0][1:]
    assert not newer, f"give these an older definition in native/compat/glibc.c: {newer}"


@every_library
def test_it_brings_its_own_cpp_runtime(library: Path) -> None:
    listed = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True, check=True).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", listed))
    allowed = r"lib(c|m|dl|pthread|rt)\.so\.\d|ld-linux.*"
    assert all(re.fullmatch(allowed, name) for name in needed), needed
