"""Builds the free-threaded CPythons 3.14t and 3.15t into build/pythons.

Debian has their source, and no package.

usage: PYTHON tools/free_threaded.py

The source is the newest of each minor version that the archive of this machine's apt still has; apt fetches it. No signature covers
an old source, so it is worth as much as the connection. A build takes five to twenty minutes. The tool says what it lacks, and exits
with 3. Only the standard library.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import unstable
from pythons import FREE_THREADED, named

ROOT = Path(__file__).resolve().parent.parent
KEPT = ROOT / "build" / "pythons"
FOLDER = ROOT / "build" / "free-threaded"  # sources, logs; the sources go when the build is done
HELPER = "/usr/lib/apt/apt-helper"
LAST_PATCH = 30  # no minor version had more patch releases than that
LONGEST = 3600  # seconds that one step may take
# pip needs ssl and zlib; the tests need the others. `configure` leaves a module out where its header is not there.
HEADERS = {
    "openssl/ssl.h": "libssl-dev",
    "ffi.h": "libffi-dev",
    "zlib.h": "zlib1g-dev",
    "sqlite3.h": "libsqlite3-dev",
}
_WHOLE = (
    "import ctypes, pip, sqlite3, ssl, sysconfig, zlib; assert sysconfig.get_config_var('Py_GIL_DISABLED')"
)


def check() -> None:
    """Lacking where nothing can be fetched or built here."""
    compiler = os.environ.get("CC", "gcc")
    for program, package in (
        (HELPER, "apt"),
        ("apt-get", "apt"),
        (compiler, "gcc"),
        ("make", "make"),
        ("xz", "xz-utils"),
    ):
        if shutil.which(program) is None:
            raise unstable.Lacking(f"there is no {program} (Debian: apt-get install {package})")
    words = [compiler, "-E", "-x", "c", "-"]
    tried = {
        package: subprocess.run(
            words, input=f"#include <{header}>\n".encode(), capture_output=True, check=False
        )
        for header, package in HEADERS.items()
    }
    if absent := [package for package, done in tried.items() if done.returncode]:
        raise unstable.Lacking(f"headers are not there (Debian: apt-get install {' '.join(absent)})")


def releases(minor: str) -> Iterator[str]:
    """The releases that a minor version may have, newest first, as Debian writes them."""
    yield from (f"{minor}.{patch}" for patch in range(LAST_PATCH, -1, -1))
    yield from (f"{minor}.0~rc{candidate}" for candidate in (3, 2, 1))


def fetch(minor: str) -> Path:
    """The newest source of a minor version that the archive has; Lacking where it has none."""
    pool = f"{unstable.mirror().rstrip('/')}/pool/main/p/python{minor}"
    pool = pool.replace("file:", "copy:", 1) if pool.startswith("file:") else pool
    FOLDER.mkdir(parents=True, exist_ok=True)
    for release in releases(minor):
        archive = FOLDER / f"python{minor}_{release}.orig.tar.xz"
        words = [HELPER, "-qq", "download-file", f"{pool}/{archive.name}", str(archive)]
        done = subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False, timeout=LONGEST
        )
        if done.returncode == 0 and archive.exists():
            return archive
    raise unstable.Lacking(
        f"the archive has no source of CPython {minor}; of the oldest it said: {done.stderr.strip()[:300]}"
    )


def build(name: str) -> Path:
    """Build one CPython, as `3.14t`, unless it is there; the path of its interpreter."""
    home = KEPT / name
    python = home / "bin" / f"python{name}"
    if python.exists():
        return python
    check()
    archive = fetch(name.removesuffix("t"))
    source, staged, log = FOLDER / name, FOLDER / f"{name}-staged", FOLDER / f"{name}.log"
    print(
        f"building {archive.name} without a GIL into {home.relative_to(ROOT)}; its log is {log.relative_to(ROOT)}",
        flush=True,
    )
    for old in (source, staged):
        shutil.rmtree(old, ignore_errors=True)
    source.mkdir()
    made = staged / home.relative_to("/")  # a build that breaks off leaves nothing in build/pythons
    jobs = f"-j{len(os.sched_getaffinity(0))}"
    steps = (
        ["tar", "--extract", "--strip-components=1", f"--file={archive}"],
        ["./configure", "--disable-gil", f"--prefix={home}"],
        ["make", jobs],
        ["make", "install", f"DESTDIR={staged}"],
        [str(made / "bin" / python.name), "-I", "-c", _WHOLE],
    )
    with open(log, "w", encoding="utf-8") as out:
        for words in steps:
            done = subprocess.run(
                words,
                cwd=source,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                check=False,
                timeout=LONGEST,
            )
            if done.returncode:
                raise unstable.Lacking(
                    f"{words[0]} of {archive.name} failed: {log.read_text(encoding='utf-8', errors='replace')[-1500:]}"
                )
    home.parent.mkdir(parents=True, exist_ok=True)
    made.rename(home)
    for old in (source, staged):
        shutil.rmtree(old)
    archive.unlink()
    return python


def make() -> int:
    """Build each that is not there, and say what is lacking; how many are there then."""
    there = 0
    for name in map(named, FREE_THREADED):
        try:
            build(name)
            there += 1
        except (unstable.Lacking, subprocess.TimeoutExpired) as reason:
            print(f"no CPython {name}: {reason}", file=sys.stderr)
    return there


if __name__ == "__main__":
    sys.exit(0 if make() == len(FREE_THREADED) else unstable.LACKING)
