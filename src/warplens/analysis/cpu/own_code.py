"""Classifies stacks by owner: the program's own functions, imports, installed packages.

For all frames of a report at once.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

import numpy as np

from warplens.analysis.cpu.frames import Frame, FrameTable, is_library
from warplens.arrays import BoolArray, Int64Array

_INSTALLED = re.compile(r"(?:site|dist)-packages/([^/]+)")
_STANDARD = re.compile(r"lib/python3[^/]*/([^/]+)")
_LOADER = ("_find_and_load", "_load_unlocked", "_find_and_load_unlocked")
_STARTERS = ("bin", "Scripts")  # what lies there only calls an installed package


@dataclass(frozen=True)
class OwnCode:
    """Facts about the stack that ends at each position of `frames`.

    `own`: its innermost frame of the program's own code, -1: none; `importing`: it is in an import, and in no own function within that;
    `python`: its innermost frame of Python, -1: none.
    """

    frames: FrameTable
    own: Int64Array
    importing: BoolArray
    python: Int64Array

    @classmethod
    def of(cls, frames: FrameTable) -> OwnCode:
        """Look at all frames."""
        files, code_of_file = frames.texts("file")
        kinds, code_of_kind = frames.texts("kind")
        names, code_of_name = frames.texts("function")
        own_files = np.array([not is_library(name) and not _is_starter(name) for name in files] + [False])
        loaders = np.array([name.startswith("<frozen importlib") for name in files] + [False])
        python = np.array([kind == "python" for kind in kinds] + [False])[code_of_kind]
        loading = (
            np.array([name in _LOADER for name in names] + [False])[code_of_name] & loaders[code_of_file]
        )
        own = nearest(frames.parent, python & own_files[code_of_file])
        imports = nearest(frames.parent, loading)
        depth = _depths(frames.parent)
        inside = np.where(own >= 0, depth[own], -1)
        return cls(
            frames,
            own,
            (imports >= 0) & (np.where(imports >= 0, depth[imports], -1) > inside),
            nearest(frames.parent, python),
        )


def is_own_code(frame: Frame) -> bool:
    """Say whether a frame is of the program's own code in Python."""
    file = frame.file or ""
    return frame.kind == "python" and bool(file) and not is_library(file) and not _is_starter(file)


def nearest(parent: Int64Array, wanted: BoolArray) -> Int64Array:
    """Return of each frame itself where it is wanted, else its nearest caller that is.

    -1 if none is.
    """
    near = np.where(wanted, np.arange(len(parent)), np.where(parent >= 0, parent, -1))
    settled = wanted | (near < 0)
    while not settled.all():
        open_ = np.flatnonzero(~settled)
        near[open_] = near[near[open_]]
        at = near[open_]
        settled[open_] = (at < 0) | wanted[np.maximum(at, 0)]
    return near


def package_of(file: str) -> str:
    """Return the package, or the standard library's module, of a source file, or its name."""
    for pattern in (_INSTALLED, _STANDARD):
        if match := pattern.search(file):
            return match[1].removesuffix(".py")
    return (
        PurePosixPath(file).name.removesuffix(".py")
        if not file.startswith("<")
        else file.strip("<>").partition(" ")[2] or file
    )


def package_called(code: OwnCode, position: int, anchor: int) -> str:
    """Return the package that the own function at `anchor` called, and that its stack continues in.

    Empty: it called nothing of Python.
    """
    child = -1
    while position >= 0 and position != anchor:
        if code.python[position] == position:
            child = position
        position = int(code.frames.parent[position])
    if child < 0:
        return ""
    frame = code.frames.frame(child)
    return package_of(frame.file or "")


def _is_starter(file: str) -> bool:
    parts = file.split("/")
    return len(parts) > 1 and parts[-2] in _STARTERS


def _depths(parent: Int64Array) -> Int64Array:
    depth = np.zeros(len(parent), np.int64)
    at = parent.copy()
    while (going := at >= 0).any():
        depth[going] += 1
        at[going] = parent[at[going]]
    return depth
