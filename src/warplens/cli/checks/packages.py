"""The packages that reading reports needs and recording does not.

Only the standard library: they may be missing.
"""

from __future__ import annotations

import importlib.util
import shlex
import sys

# As they are imported. PyPI takes the same names.
READER = (
    "adbc_driver_manager",
    "adbc_driver_sqlite",
    "click",
    "duckdb",
    "numpy",
    "pyarrow",
    "rich",
    "starlette",
    "uvicorn",
    "wsproto",
)


def missing() -> list[str]:
    """Return the packages that this Python does not find."""
    return [name for name in READER if importlib.util.find_spec(name) is None]


def how_to_install() -> str:
    """Return a line with the command that installs what is missing.

    It works for a checkout and a wheel alike.
    """
    return f"Install what is missing with: {shlex.quote(sys.executable)} -m pip install {' '.join(missing())}"
