"""Locates the headers of installed CPythons, so that one wheel can hold a binding for each of them."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from pythons import ALL, FREE_THREADED, Version, candidates, look, named

__all__ = ["BadHeaders", "Headers", "Version", "find", "handed_over", "named", "of_interpreters", "read"]

_ASK = "import sysconfig; print(sysconfig.get_path('include'))"


class BadHeaders(Exception):
    """Why a folder cannot be taken, and what to do."""


@dataclass(frozen=True, slots=True)
class Headers:
    """The folders that a compiler needs for Python.h of one version, and the machine that pyconfig.h was made for."""

    version: Version
    folders: tuple[Path, ...]
    machine: str

    def definition(self, machine: str) -> str:
        """One entry of CMake's WARPLENS_PYTHONS."""
        return f"cpython-{named(self.version).replace('.', '')}-{machine}-linux-gnu={','.join(map(str, self.folders))}"


def read(folder: Path, machine: str, host: str) -> Headers:
    """The headers in `folder`, for extensions that run on `machine`; BadHeaders where they are not complete.

    Debian's pyconfig.h includes another one of each machine, which lies beside the folder. Others have one pyconfig.h, of the machine
    they were installed on, which is `host` then.
    """
    try:
        level = (folder / "patchlevel.h").read_text(encoding="utf-8")
        config = (folder / "pyconfig.h").read_text(encoding="utf-8")
    except OSError as error:
        raise BadHeaders(
            f"{folder} is no folder of Python's headers: {error.filename} cannot be read"
        ) from None
    numbers = [re.search(rf"#define\s+PY_{part}_VERSION\s+(\d+)", level) for part in ("MAJOR", "MINOR")]
    if None in numbers or not (folder / "Python.h").exists():
        raise BadHeaders(f"{folder} lacks Python.h, or its patchlevel.h names no version")
    major, minor = (int(number[1]) for number in numbers if number)
    if "-linux-gnu" not in config:
        is_free = re.search(r"^\s*#define\s+Py_GIL_DISABLED\s+1", config, re.MULTILINE) is not None
        return Headers((major, minor, "t") if is_free else (major, minor), (folder,), host)
    own = folder.parent / f"{machine}-linux-gnu" / folder.name / "pyconfig.h"
    if not own.exists():
        raise BadHeaders(
            f"{folder} lacks the part for {machine}: {own} is not there (Debian's libpython{major}.{minor}-dev has it)"
        )
    return Headers((major, minor), (folder, folder.parent), machine)


def handed_over(words: Iterable[str]) -> dict[Version, Path]:
    """The folders of `--headers 3.14=FOLDER`; BadHeaders for other words."""
    folders: dict[Version, Path] = {}
    for word in words:
        if (match := re.fullmatch(r"(\d+)\.(\d+)(t?)=(.+)", word)) is None:
            raise BadHeaders(f"--headers {word}: write it as 3.14=/folder/with/Python.h")
        minor = (int(match[1]), int(match[2]))
        folders[(*minor, match[3]) if match[3] else minor] = Path(match[4]).resolve()
    return folders


def _asked(path: Path) -> Path | None:
    answer = subprocess.run(
        [str(path), "-I", "-c", _ASK], capture_output=True, text=True, check=False, timeout=20
    )
    return Path(answer.stdout.strip()) if answer.returncode == 0 else None


def of_interpreters() -> dict[Version, list[Path]]:
    """The folders that CPythons of this machine name, by version; some may not be there."""
    folders: dict[Version, list[Path]] = {}
    for path in candidates():
        if path.is_file() and (seen := look(path)) is not None and (folder := _asked(path)) is not None:
            folders.setdefault(seen[0], []).append(folder)
    return folders


def find(
    machine: str, host: str, own: dict[Version, Path], installed: dict[Version, list[Path]]
) -> tuple[list[Headers], dict[Version, str]]:
    """The headers for each supported version, and why a version has none.

    `own` are folders that were handed over: one that is no good for the host is an error (BadHeaders). `installed` are those
    of interpreters. A free-threaded version is not missed where nobody has named it.
    """
    headers: list[Headers] = []
    missing: dict[Version, str] = {}
    for version in ALL:
        if version in FREE_THREADED and version not in own and version not in installed:
            continue
        why = "no such CPython was found here"
        for folder in [own[version]] if version in own else installed.get(version, []):
            try:
                taken = read(folder, machine, host)
                if taken.version != version:
                    raise BadHeaders(
                        f"{folder} holds the headers of Python {named(taken.version)}, not {named(version)}"
                    )
            except BadHeaders as bad:
                if version in own and machine == host:
                    raise
                why = str(bad)
            else:
                headers.append(taken)
                break
        else:
            missing[version] = why
    return headers, missing
