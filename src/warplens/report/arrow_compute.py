"""Loads pyarrow.compute at its first use. Loading takes longer than many a query."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
