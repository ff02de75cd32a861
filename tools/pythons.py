"""Lists the CPythons 3.10-3.15 of this machine, one a line: version and path. `--others` leaves out the running version.

WARPLENS_PYTHONS=3.12,3.15 lists those alone.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

SUPPORTED = tuple((3, minor) for minor in range(10, 16))
_ASK = (
    "import json, platform, sys; print(json.dumps([platform.python_implementation(), sys.version_info[:2], sys.base_prefix, sys.prefix]))"
)


def candidates() -> Iterator[Path]:
    """List where interpreters live: PATH, pyenv, uv, and the system's folders."""
    names = [f"python{major}.{minor}" for major, minor in SUPPORTED]
    folders = [Path(part) for part in os.environ.get("PATH", "").split(os.pathsep) if part]
    folders += [Path("/usr/bin"), Path("/usr/local/bin")]
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT", home / ".pyenv"))
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR", home / ".local" / "share" / "uv" / "python"))
    for root in (pyenv / "versions", uv, Path("/opt/python")):
        if root.is_dir():
            folders += sorted(path / "bin" for path in root.iterdir())
    for folder in folders:
        if folder.name != "shims":  # pyenv's shims exist for versions that are not chosen, and then fail
            yield from (folder / name for name in names)


def look(path: Path) -> tuple[tuple[int, int], Path] | None:
    """Ask the interpreter at `path` for its version; None where it is no usable CPython of its own (venvs are not)."""
    try:
        answer = subprocess.run([str(path), "-I", "-c", _ASK], capture_output=True, text=True, timeout=20, check=True)
        implementation, version, base, prefix = json.loads(answer.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return None
    found = (int(version[0]), int(version[1]))
    return (found, path) if implementation == "CPython" and base == prefix and found in SUPPORTED else None


def pythons() -> dict[tuple[int, int], Path]:
    """Find one interpreter per version that can make virtual environments, first found wins."""
    found: dict[tuple[int, int], Path] = {}
    for path in candidates():
        if path.is_file() and os.access(path, os.X_OK) and (seen := look(path)) is not None:
            found.setdefault(*seen)
    return dict(sorted(found.items()))


def main() -> int:
    """Print what is there."""
    only = os.environ.get("WARPLENS_PYTHONS", "").replace(",", " ").split()
    for version, path in pythons().items():
        if only and path.name.removeprefix("python") not in only:
            continue
        if "--others" not in sys.argv[1:] or version != sys.version_info[:2]:
            print(".".join(map(str, version)), path)
    return 0


if __name__ == "__main__":
    sys.exit(main())
