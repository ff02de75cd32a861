"""Finds libcupti for a program that will start.

Searches LD_LIBRARY_PATH, its Python's packages, then CUDA's toolkits.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from warplens.errors import UsageError
from warplens.recording.agent.announce import CUPTI, CUPTI_SEARCH
from warplens.recording.agent.interpreter import interpreter_of, matching, package_folders, prefixes

# Below a folder of packages. Torch's older wheels bring their own copy, with a hash in its name; Triton's is the last choice.
_WHEELS = ("nvidia/cu[0-9]*/lib", "nvidia/cuda_cupti/lib", "torch/lib", "triton/backends/nvidia/lib/cupti")
# Below a toolkit. `stubs` beside them hold libraries for linkers, which do nothing.
_TOOLKIT = ("extras/CUPTI/lib64", "lib64", "targets/*/lib", "lib")
_NAMED = ("CUDA_HOME", "CUDA_PATH", "CUDA_ROOT")
_INSTALLED = ("/usr/local/cuda", "/usr/local/cuda-*", "/opt/cuda")
_FILE = re.compile(r"libcupti(?:-[0-9a-f]+)?\.so(?:\.[0-9.]+)?")
_MOST = 8


def cupti_variables(wanted: Path | None, program: str, environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables for `program` that name the `wanted` libcupti, or the copies that it could use."""
    if wanted is not None:
        return {CUPTI: str(wanted)}
    listed = [str(path) for path in libraries(program, environment) if ":" not in str(path)]
    return {CUPTI_SEARCH: ":".join(listed)} if listed else {}


def libraries(
    program: str, environment: Mapping[str, str], installed: tuple[str, ...] = _INSTALLED
) -> list[Path]:
    """Return the copies of libcupti that `program` could use, the most likely first.

    Of each folder the newest version first.
    """
    found: dict[str, Path] = {}
    for folder in _folders(program, environment, installed):
        for path in _in(folder):
            found.setdefault(os.path.realpath(path), path.absolute())
    return list(found.values())[:_MOST]


def _folders(program: str, environment: Mapping[str, str], installed: tuple[str, ...]) -> Iterator[Path]:
    for folder in re.split("[:;]", environment.get("LD_LIBRARY_PATH", "")):
        if os.path.isabs(folder):
            yield Path(folder)
    interpreter = interpreter_of(program, environment)
    if interpreter is not None:
        for packages in package_folders(interpreter, environment):
            for wheel in _WHEELS:
                yield from sorted(matching(packages, wheel), key=lambda folder: _newest(folder.parent))
    roots = [Path(environment[name]) for name in (*_NAMED, "CONDA_PREFIX") if environment.get(name)]
    if interpreter is not None:
        roots += prefixes(interpreter)  # conda's packages
    for pattern in installed:
        roots += sorted(matching(Path("/"), pattern.lstrip("/")), key=_newest)
    for root in roots:
        for part in _TOOLKIT:
            yield from matching(root, part)


def _in(folder: Path) -> list[Path]:
    return sorted(
        (
            path
            for path in matching(folder, "libcupti*.so*")
            if _FILE.fullmatch(path.name) and os.path.isfile(path)
        ),
        key=_newest,
    )


def _newest(path: Path) -> tuple[list[int], int]:
    """Sorts higher versions first, and of equal ones the longer name, which says more."""
    name = re.sub(r"^libcupti-[0-9a-f]+", "", path.name)
    return [-int(number) for number in re.findall(r"[0-9]+", name)] or [1], -len(path.name)


def existing_cupti(wanted: Path) -> Path:
    """Return the absolute path of the libcupti that `wanted` is, or holds.

    UsageError if there is none.
    """
    candidates = _in(wanted) if os.path.isdir(wanted) else [wanted]
    if not candidates or not os.path.isfile(candidates[0]):
        raise UsageError(
            f"--cupti {wanted}: there is no libcupti. Name the file, libcupti.so.12 for example, or the folder that holds it."
        )
    return candidates[0].absolute()
