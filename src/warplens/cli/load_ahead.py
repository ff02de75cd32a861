"""Loads the modules that the end of a recording needs while its program runs; saves a second."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module

from warplens import catalog

ROOM = 512 << 20  # bytes of memory that are free: where less is, the program needs it more
_MODULES = (
    "warplens.cli.finishing",
    "warplens.cli.printing.summary",
    "warplens.report.report",
    "warplens.report.connection",
    "warplens.report.untrusted",
    "warplens.rules.judging",
    "pyarrow.compute",
    "duckdb",
    "warplens.cli.printing.gpu_summary",
    "warplens.cli.printing.inside_summary",
)


def one_by_one() -> Iterator[str]:
    """Load the modules of the summary, then the rules; return the name of each when it is loaded.

    Ends early if a package is missing: the command that needs it says so.
    """
    try:
        for name in _MODULES:
            import_module(name)
            yield name
        for unit in catalog.units("rules.checks"):
            unit.load()
            yield unit.module
    except ImportError:
        return
