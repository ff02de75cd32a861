"""Keeps imports away that no command needs."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType


class _Absent:
    """A finder for which pandas is not installed."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if name == "pandas":
            raise ModuleNotFoundError("pandas is not used on the command line", name=name)
        return None


def without_pandas() -> None:
    """Hide pandas from this process: pyarrow imports it (0.2 s) the first time it converts anything, only to look at its types."""
    if "pandas" not in sys.modules:
        sys.meta_path.insert(0, _Absent())
