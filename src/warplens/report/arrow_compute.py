"""pyarrow.compute for modules that are always loaded, at its first use: it takes longer to load than many a question to answer."""

from __future__ import annotations

from typing import Any


def __getattr__(name: str) -> Any:
    import pyarrow.compute

    return getattr(pyarrow.compute, name)
