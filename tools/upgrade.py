"""Writes tools/requirements.lock: the newest compatible version of each package, for each Python.

uv finds them for all Pythons at once; it comes from PyPI into build/upgrade, and asks the index that pip asks here. Of its markers only
the version of Python is kept: the lock file is for CPython on Linux. It names no index and no hashes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pythons import SUPPORTED
from setup import LOCK, needs

WORK = LOCK.parents[1] / "build" / "upgrade"
HEAD = """\
# Written by `make upgrade`; do not edit. The packages of `.venv`: tools/setup.py installs exactly these.
"""
MACHINES = ("x86_64", "aarch64")
_LINUX = {
    "implementation_name": "cpython",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
}
_LINUX |= {"sys_platform": "linux", "os_name": "posix", "platform_release": "", "platform_version": ""}
OLDEST, NEWEST = SUPPORTED[0], SUPPORTED[-1]


def _environments() -> Iterator[tuple[tuple[int, int], dict[str, str]]]:
    """Each supported Python, and one that is newer than all, on each machine."""
    for major, minor in (*SUPPORTED, (NEWEST[0], NEWEST[1] + 1)):
        for machine in MACHINES:
            full = f"{major}.{minor}.9"
            numbers = {
                "python_version": f"{major}.{minor}",
                "python_full_version": full,
                "implementation_version": full,
            }
            yield (major, minor), {**_LINUX, **numbers, "platform_machine": machine}


def simpler(line: str) -> str | None:
    """Say for which Pythons alone a pinned version is; None where it is for none."""
    pin = Requirement(line)
    versions = sorted(
        {
            version
            for version, machine in _environments()
            if pin.marker is None or pin.marker.evaluate(machine)
        }
    )
    if not versions:
        return None
    known = sorted({version for version, _ in _environments()})
    first, last = versions[0], versions[-1]
    if versions != known[known.index(first) : known.index(last) + 1]:
        raise SystemExit(f"{line}: for Pythons with a gap between them, which this file cannot say")
    bounds = [f'python_version >= "{first[0]}.{first[1]}"'] if first != OLDEST else []
    if last != known[-1]:
        bounds.append(f'python_version < "{last[0]}.{last[1] + 1}"')
    name = f"{canonicalize_name(pin.name)}{pin.specifier}"
    return f"{name} ; {' and '.join(bounds)}" if bounds else name


def _index() -> dict[str, str]:
    """Variables that make uv ask the index that pip asks, with the same certificates."""
    listed = subprocess.run(
        [sys.executable, "-m", "pip", "config", "list"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    options = {
        name.rpartition(".")[2]: value.strip("'\"")
        for name, _, value in (line.partition("=") for line in listed.splitlines())
    }
    names = {"index-url": "UV_DEFAULT_INDEX", "cert": "SSL_CERT_FILE", "proxy": "ALL_PROXY"}
    return {name: options[option] for option, name in names.items() if option in options}


def main() -> None:
    """Make the lock file anew."""
    uv = WORK / "venv" / "bin" / "uv"
    if not uv.exists():
        print("fetching uv from PyPI into build/upgrade", flush=True)
        venv.EnvBuilder(with_pip=True, clear=True).create(WORK / "venv")
        subprocess.run([uv.with_name("python"), "-m", "pip", "install", "--quiet", "uv"], check=True)
    listed = json.dumps([*needs(Path(sys.executable)), "pip"])
    project = f'[project]\nname = "development"\nversion = "0"\nrequires-python = ">=3.10"\ndependencies = {listed}\n'
    (WORK / "pyproject.toml").write_text(project, encoding="utf-8")
    words = [
        "pip",
        "compile",
        "--universal",
        "--upgrade",
        "--no-header",
        "--no-annotate",
        "--no-emit-index-url",
        "--quiet",
    ]
    command = [
        str(uv),
        *words,
        "--python-version",
        f"{OLDEST[0]}.{OLDEST[1]}",
        "-o",
        str(WORK / "all.txt"),
        str(WORK / "pyproject.toml"),
    ]
    subprocess.run(command, check=True, env={**os.environ, **_index()})
    lines = [
        simpler(line)
        for line in (WORK / "all.txt").read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    before = LOCK.read_text(encoding="utf-8") if LOCK.exists() else ""
    LOCK.write_text(HEAD + "".join(f"{line}\n" for line in lines if line), encoding="utf-8")
    old, new = (set(text.splitlines()) for text in (before, LOCK.read_text(encoding="utf-8")))
    print(
        *(f"- {line}" for line in sorted(old - new)), *(f"+ {line}" for line in sorted(new - old)), sep="\n"
    )


if __name__ == "__main__":
    main()
