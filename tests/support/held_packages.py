"""What pyproject.toml asks for, and what tools/requirements.lock pins for each Python."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from packaging.markers import default_environment
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "tools" / "requirements.lock"
_MACHINE = {name: str(value) for name, value in default_environment().items()}
SUPPORTED = tuple((3, minor) for minor in range(10, 16))


def _project() -> dict[str, dict[str, object]]:
    try:
        toml = importlib.import_module("tomllib")
    except ModuleNotFoundError:  # Python 3.10: pip brings the same parser
        toml = importlib.import_module("pip._vendor.tomli")
    project: dict[str, dict[str, object]] = toml.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return project


def runtime() -> list[Requirement]:
    """What a user's installation needs."""
    listed = _project()["project"]["dependencies"]
    assert isinstance(listed, list)
    return [Requirement(line) for line in listed]


def needs() -> list[Requirement]:
    """All that `.venv` is made for: running, building, developing."""
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        setup = importlib.import_module("setup")
    finally:
        sys.path.pop(0)
    return [Requirement(line) for line in setup.needs(Path(sys.executable))]


def pinned(version: tuple[int, int]) -> dict[str, str]:
    """The versions that the lock file has for one Python."""
    machine = {**_MACHINE, "python_version": ".".join(map(str, version))}
    lines = [
        Requirement(line)
        for line in LOCK.read_text(encoding="utf-8").splitlines()
        if line and not line.startswith("#")
    ]
    held = [line for line in lines if line.marker is None or line.marker.evaluate(machine)]
    pins = {str(canonicalize_name(line.name)): next(iter(line.specifier)).version for line in held}
    assert len(pins) == len(held), "a package is pinned twice for one Python"
    return pins
