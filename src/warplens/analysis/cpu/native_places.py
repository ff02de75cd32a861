"""Finds the library in which the native samples of each own function ended."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa

from warplens.analysis.cpu.own_code import OwnCode

FunctionKey = tuple[str, str, int | None]  # name, file, first line

_LEAST = 8  # samples below which shares of native code say nothing
_MOSTLY = 0.5
_INTERPRETER = ("python", "libpython", "libc.so", "libc-", "ld-linux", "libm.so", "libpthread")


class NativePlaces:
    """The native samples of own functions, by library."""

    def __init__(self, modules: dict[FunctionKey, Counter[str]]) -> None:
        self._modules = modules

    @classmethod
    def of(cls, code: OwnCode, native: pa.Table) -> NativePlaces:
        """Return the places of samples of that kind."""
        places: dict[FunctionKey, Counter[str]] = {}
        modules, module = code.frames.texts("module")
        for position, count in zip(
            *np.unique(code.frames.positions(native["stack"]), return_counts=True), strict=True
        ):
            anchor = int(code.own[position])
            if anchor >= 0:
                frame = code.frames.frame(anchor)
                name = modules[module[position]] if 0 <= module[position] < len(modules) else ""
                key = frame.function, frame.file or "", frame.first_line
                places.setdefault(key, Counter())[_short(name)] += int(count)
        return cls(places)

    def where(self, key: FunctionKey) -> str:
        """Say where most of an own function's native samples ended.

        Empty where there are too few.
        """
        counts = self._modules.get(key)
        if not counts or counts.total() < _LEAST:
            return ""
        name, count = counts.most_common(1)[0]
        if count < _MOSTLY * counts.total():
            return ""
        return f"in {name}" if name else "Python's own bytecode"


def _short(module: str) -> str:
    """`libopenblas64_p-r0-1.so` as libopenblas64_p.

    Empty for the interpreter and the C library below it.
    """
    name = module.rpartition("/")[2]
    if not name or name.startswith(_INTERPRETER) or name.startswith("["):
        return ""
    return name.partition(".so")[0].partition(".cpython-")[0].partition("-")[0]
