"""Finds the Python that runs a program, and its package folders.

It only looks at files, and runs nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*t?")


def interpreter_of(program: str, environment: Mapping[str, str]) -> Path | None:
    """Return the Python that the file `program` is, or that its first line names.

    Else the one that its PATH finds. None without any.
    """
    path = Path(program)
    if _PYTHON.fullmatch(path.name):
        return path
    words = _first_line(path).split()
    if words[:1] and _PYTHON.fullmatch(Path(words[0]).name):
        return Path(words[0])
    # `#!/usr/bin/env python3`, and programs and shell scripts that start Python sooner or later
    names = [Path(word).name for word in words if _PYTHON.fullmatch(Path(word).name)]
    return next(filter(None, (_found(name, environment) for name in (*names, "python", "python3"))), None)


def package_folders(interpreter: Path, environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield the folders that `interpreter` imports packages from, those that win first.

    Some may not be there.
    """
    for entry in environment.get("PYTHONPATH", "").split(os.pathsep):
        if entry:
            yield Path(entry)
    folders = prefixes(interpreter)
    version = _version(folders[0])
    home = environment.get("HOME")
    if home and _sees_the_system(folders[0]):
        yield from matching(Path(home, ".local", "lib"), f"python{version}/site-packages")
    for prefix in folders:
        for library in ("lib", "lib64"):
            for kind in ("site-packages", "dist-packages"):
                yield from matching(prefix, f"{library}/python{version}/{kind}")
        if prefix == Path("/usr"):
            yield from matching(Path("/usr/local/lib"), f"python{version}/dist-packages")
            yield Path("/usr/lib/python3/dist-packages")


def matching(folder: Path, pattern: str) -> list[Path]:
    """Return the paths below `folder` that match, sorted; none where we may not look."""
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []


def prefixes(interpreter: Path) -> list[Path]:
    """Return the folders that hold `bin` and `lib` of an interpreter.

    Those of its environment, and those of its base.
    """
    try:
        own = Path(os.path.abspath(interpreter)).parent.parent
        real = interpreter.resolve().parent.parent
    except (OSError, RuntimeError):  # a link to itself
        return [interpreter.parent.parent]
    return [own, real] if real != own and _sees_the_system(own) else [own]


def _sees_the_system(prefix: Path) -> bool:
    """Whether packages from outside the environment at `prefix` count: yes if it is none."""
    settings = _settings(prefix)
    return settings is None or settings.get("include-system-site-packages", "").lower() == "true"


def _version(prefix: Path) -> str:
    """`3.11` of a virtual environment, `3*` elsewhere: one folder, or any."""
    settings = _settings(prefix) or {}
    match = re.match(r"[0-9]+\.[0-9]+", settings.get("version", settings.get("version_info", "")))
    return match[0] if match else "3*"


def _settings(prefix: Path) -> dict[str, str] | None:
    try:
        lines = (prefix / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return None
    return {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in lines)}


def _first_line(path: Path) -> str:
    """The text behind `#!`, else empty."""
    try:
        with path.open("rb") as file:
            head = file.read(512)
    except OSError:
        return ""
    return head[2:].partition(b"\n")[0].decode(errors="replace").strip() if head[:2] == b"#!" else ""


def _found(name: str, environment: Mapping[str, str]) -> Path | None:
    for folder in environment.get("PATH", os.defpath).split(os.pathsep):
        path = Path(folder or ".") / name
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    return None
