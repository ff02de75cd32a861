"""Compiles each header of native/ alone, so that no header depends on an earlier one.

`check_headers.py [COMPILER]`.

A header is compiled again when it, or one of ours that it includes, has changed, or the compiler (build/headers keeps what passed).
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from check_includes import INCLUDE, ROOT, folder_of, resolve

KEPT = ROOT.parent / "build" / "headers"
PLAIN_C = ("preload/",)  # headers of C files alone
BOTH = tuple(
    f"include/warplens/{name}.h" for name in ("leave", "registry", "tap", "warplens")
)  # C and C++ programs read them
OF_KERNELS = ("device/warplens_ptx.h",)  # and warplens.cuh: for CUDA's own compilers, which tests/dsl runs
# As in the build: a warning in a header is one in each file that includes it.
WORDS = ("-fsyntax-only", "-Wall", "-Wextra", "-Werror")
STANDARD = {
    "c": ("-std=c11", "-D_GNU_SOURCE"),
    "c++": ("-std=c++20",),
}  # each C file of ours begins with that definition


def headers() -> list[tuple[Path, str]]:
    """Each header below native/, with the languages that it is for."""
    found = []
    for path in sorted(ROOT.rglob("*.h")):
        name = path.relative_to(ROOT).as_posix()
        if name in OF_KERNELS:
            continue
        languages = (
            ("c",) if name.startswith(PLAIN_C) else ("c", "c++") if name.startswith(BOTH) else ("c++",)
        )
        found += [(path, language) for language in languages]
    return found


@cache
def reads(path: Path) -> frozenset[Path]:
    """The files of ours that a header includes, and those that these include."""
    seen: set[Path] = set()
    left = [path]
    while left:
        file = left.pop()
        for quote, name in INCLUDE.findall(file.read_text(encoding="utf-8")):
            found = resolve(file, quote, name)
            if found is not None and (ROOT / found) not in seen:
                seen.add(ROOT / found)
                left.append(ROOT / found)
    return frozenset(seen)


def places() -> Iterator[str]:
    """Where headers of others are: NVTX's, and Python's."""
    files = importlib.metadata.files("nvidia-nvtx") or []
    yield from (
        f"-isystem{Path(str(file.locate())).parent.parent}" for file in files if file.name == "nvToolsExt.h"
    )
    yield f"-isystem{sysconfig.get_path('include')}"


def command(compiler: str, path: Path, language: str) -> list[str]:
    """What compiles one header alone."""
    own = ROOT / folder_of(path.relative_to(ROOT))
    look = [f"-I{ROOT / 'include'}", f"-I{ROOT}", f"-I{own}", *places()]
    return [compiler, f"-x{language}", *STANDARD[language], *WORDS, *look, "-include", str(path), os.devnull]


def key(compiler: str, path: Path, language: str) -> str:
    """What its result depends on."""
    whole = hashlib.sha256(f"{_version(compiler)} {sys.version} {STANDARD[language]} {WORDS}".encode())
    for file in (path, *sorted(reads(path))):
        whole.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return whole.hexdigest()


@cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], stdout=subprocess.PIPE, text=True, check=True).stdout


def complaints(compiler: str = "g++", *, most: int | None = None) -> list[str]:
    """Return what the compiler says of headers that do not compile alone.

    With `most`, it compiles only as many of those that have not passed yet; the next calls compile the others.
    """
    file = KEPT / f"{Path(compiler).name}.json"
    try:
        passed = set(json.loads(file.read_text(encoding="utf-8")))
    except (OSError, ValueError):
        passed = set()
    wanted = {(path, language): key(compiler, path, language) for path, language in headers()}

    def check(one: tuple[Path, str]) -> str:
        done = subprocess.run(command(compiler, *one), capture_output=True, text=True, check=False)
        return (
            ""
            if done.returncode == 0
            else f"{one[0].relative_to(ROOT)} does not compile alone:\n{done.stderr[:1500]}"
        )

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        todo = [one for one in wanted if wanted[one] not in passed]
        if most is not None:
            todo = todo[:: -(-len(todo) // most) or 1]
        said = dict(zip(todo, pool.map(check, todo), strict=True))
    KEPT.mkdir(parents=True, exist_ok=True)
    passed |= {wanted[one] for one, text in said.items() if not text}
    file.write_text(json.dumps(sorted(passed & set(wanted.values()))), encoding="utf-8")
    return [text for text in said.values() if text]


def main() -> int:
    """Print what is wrong."""
    found = complaints(*sys.argv[1:2])
    print(*found, sep="\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
