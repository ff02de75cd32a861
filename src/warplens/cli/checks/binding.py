"""Checks the Python binding behind `warplens.nvtx` for `warplens doctor`."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import re
import sysconfig
from pathlib import Path

import warplens.nvtx as nvtx

_OTHERWISE = "`warplens.nvtx` records nothing, other sources still record"


def binding_finding() -> tuple[str, str]:
    """Return state (`ok` or `note`) and one line: the Pythons that have a binding in this installation."""
    free = "t" if sysconfig.get_config_var("Py_GIL_DISABLED") else ""
    here = f"{platform.python_implementation()} {'.'.join(platform.python_version_tuple()[:2])}{free}"
    if importlib.util.find_spec("warplens.nvtx._binding") is None:
        there = ", ".join(bound_pythons(Path(nvtx.__file__).parent)) or "none"
        return (
            "note",
            f"{here} has no binding here (only {there}): {_OTHERWISE}. Use another Python, or build from source with this one",
        )
    try:
        importlib.import_module("warplens.nvtx._binding")
    except ImportError as error:
        return "note", f"the binding for {here} does not load ({error}): {_OTHERWISE}. Install it again"
    if os.environ.get("NVTX_DISABLE"):
        return "note", f"NVTX_DISABLE is set: {_OTHERWISE}"
    return "ok", f"`warplens.nvtx` records the ranges of {here}"


def bound_pythons(folder: Path) -> list[str]:
    """The CPythons whose binding lies in `folder`, oldest first, as `CPython 3.12`."""
    names = [re.match(r"_binding\.cpython-3(\d+)(t?)-", path.name) for path in folder.glob("_binding.*.so")]
    versions = sorted((int(name[1]), name[2]) for name in names if name)
    return [f"CPython 3.{minor}{thread}" for minor, thread in versions]
