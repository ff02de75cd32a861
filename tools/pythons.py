"""Lists the installed CPythons 3.10 to 3.15: version and path, one a line.

`--others` leaves out the running version.

Free-threaded builds are named 3.14t and 3.15t. Interpreters that were built for the tests lie in `build/pythons`, a folder for each.
WARPLENS_PYTHONS=3.12,3.15 lists those alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

Version: TypeAlias = tuple[int, int] | tuple[int, int, str]  # the third is "t": free-threaded

ROOT = Path(__file__).resolve().parent.parent
SUPPORTED: tuple[tuple[int, int], ...] = tuple((3, minor) for minor in range(10, 16))
FREE_THREADED: tuple[tuple[int, int, str], ...] = ((3, 14, "t"), (3, 15, "t"))
ALL: tuple[Version, ...] = (*SUPPORTED, *FREE_THREADED)
_ASK = (
    "import json, platform, sys; print(json.dumps([platform.python_implementation(), sys.version_info[:2],"
    " 't' if 't' in sys.abiflags else '', sys.base_prefix, sys.prefix]))"
)


def named(version: Version) -> str:
    """`3.12` for (3, 12), `3.14t` for (3, 14, "t")."""
    return f"{version[0]}.{version[1]}{version[2] if len(version) == 3 else ''}"


def candidates() -> Iterator[Path]:
    """List where interpreters live: PATH, pyenv, uv, and the system's folders."""
    names = [f"python{named(version)}" for version in ALL]
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    folders += [Path("/usr/bin"), Path("/usr/local/bin")]
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local" / "share" / "uv" / "python"))
    for root in (pyenv / "versions", uv, Path("/opt/python"), ROOT / "build" / "pythons"):
        if root.is_dir():
            folders += sorted(path / "bin" for path in root.iterdir())
    for folder in folders:
        if folder.name != "shims":  # pyenv's shims exist for versions that are not chosen, and then fail
            yield from (folder / name for name in names)


def look(path: Path) -> tuple[Version, Path] | None:
    """Ask the interpreter at `path` for its version.

    None if it is no usable separate CPython (venvs are not).
    """
    try:
        answer = subprocess.run(
            [str(path), "-I", "-c", _ASK], capture_output=True, text=True, timeout=20, check=True
        )
        implementation, version, suffix, base, prefix = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    minor = (int(version[0]), int(version[1]))
    found: Version = (*minor, suffix) if suffix else minor
    usable = implementation == "CPython" and base == prefix and found in ALL
    return (found, path) if usable else None


def pythons() -> dict[Version, Path]:
    """Find one interpreter per version that can make virtual environments, first found wins."""
    found: dict[Version, Path] = {}
    for path in candidates():
        if path.is_file() and os.access(path, os.X_OK) and (seen := look(path)) is not None:
            found.setdefault(*seen)
    return dict(sorted(found.items()))


def main() -> int:
    """Print what is there."""
    only = os.environ.get("WARPLENS_PYTHONS", "").replace(",", " ").split()
    for version, path in pythons().items():
        if only and named(version) not in only:
            continue
        if "--others" not in sys.argv[1:] or version != sys.version_info[:2]:
            print(named(version), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
