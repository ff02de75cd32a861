"""The programs in `tests/targets`, which tests record: where each one's source lies."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "targets"


def source(name: str) -> Path:
    """Return `tests/targets/*/NAME`; ValueError unless there is exactly one."""
    (path,) = FOLDER.glob(f"*/{name}")
    return path
