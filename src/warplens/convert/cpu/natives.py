"""Frames of native code: their files, and the functions and lines of their symbols."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.symbols.generated import GENERATED, Generated
from warplens.convert.symbols.kernel import KERNEL
from warplens.convert.symbols.lookup import Place as Where
from warplens.convert.symbols.lookup import Symbols
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

UNKNOWN = "[unknown]"
ANONYMOUS = "[anonymous]"  # as the agent calls memory of no file
_RETURN = 0x01  # of a frame's flags: the address is behind a call


@dataclass(frozen=True)
class Module:
    """A file with code in it."""

    path: str | None
    build_id: str | None

    @property
    def name(self) -> str | None:
        """Its file name."""
        return PurePosixPath(self.path).name if self.path else None


def modules(records: WideRecords | None, strings: Strings) -> dict[int, Module]:
    """Return the modules of a process by their numbers."""
    found: dict[int, Module] = {}
    for row in () if records is None else records.rows(records.offsets()):
        build_id = strings.get(int(row["build_id"]))
        found.setdefault(int(row["module"]), Module(strings.get(int(row["name"])), build_id or None))
    return found


class Natives:
    """Facts about the native frames `rows`: texts as numbers in `texts`, -1 for none."""

    def __init__(self, count: int) -> None:
        self.function, self.file, self.module, self.path, self.build_id = (
            np.full(count, -1, np.int32) for _ in range(5)
        )
        self.line = np.zeros(count, np.int32)
        self._numbers: dict[str, int] = {}

    def look_up(
        self,
        rows: Int64Array,
        number: Int64Array,
        offset: Int64Array,
        flags: Int64Array,
        known: dict[int, Module],
        symbols: Symbols,
        generated: Callable[[], Generated],
    ) -> None:
        """Look at frames that are in module `number` at `offset` each.

        `generated` is asked where code was made at run time.
        """
        order = np.argsort(number, kind="stable")
        edges = np.flatnonzero(np.diff(number[order], prepend=-1, append=-1)).tolist() if len(order) else []
        for first, last in pairwise(edges):
            some = order[first:last]
            module = known.get(int(number[some[0]]))
            mine = rows[some]
            if module is None or not module.path or not module.name:
                self.function[mine] = self._text(UNKNOWN)
                continue
            self.module[mine], self.path[mine] = self._text(module.name), self._text(module.path)
            if module.build_id:
                self.build_id[mine] = self._text(module.build_id)
            # A call may be the last instruction of its function.
            asked, back = np.unique(offset[some] - (flags[some] & _RETURN), return_inverse=True)
            if module.path == ANONYMOUS:
                names = [Where(name) if name else None for name in generated().find(asked)]
                self._take(mine, back.reshape(-1), GENERATED, places=names)
            else:
                places = symbols.look_up(module.path, module.build_id, asked)
                self._take(mine, back.reshape(-1), f"[{module.name}]", places=places)

    def look_up_kernel(
        self, rows: Int64Array, address: Int64Array, flags: Int64Array, boot_id: str, symbols: Symbols
    ) -> None:
        """Look at frames of the kernel that started as `boot_id`."""
        whole = address.astype(np.uint64)
        asked, back = np.unique(whole - (flags & _RETURN).astype(np.uint64), return_inverse=True)
        functions = symbols.look_up_kernel(boot_id, asked)
        for row, number in zip(rows.tolist(), back.reshape(-1).tolist(), strict=True):
            function = functions[number]
            self.function[row] = self._text(function.name if function else KERNEL)
            self.module[row] = self._text(function.module if function else KERNEL)

    def column(
        self, numbers: npt.NDArray[np.int32], others: pa.DictionaryArray | None = None
    ) -> pa.DictionaryArray:
        """Return texts as a column; if there is none, `others` has one, if any."""
        used, codes = np.unique(numbers, return_inverse=True)
        every = list(self._numbers)
        words = [every[number] for number in used.tolist() if number >= 0]
        codes = codes.reshape(-1) - (1 if len(used) and used[0] < 0 else 0)
        if others is not None:
            # Not fill_null(): it loads pyarrow.compute, half of the time that a short recording takes to finish.
            theirs = np.nan_to_num(others.indices.to_numpy(zero_copy_only=False), nan=-1).astype(np.int64)
            codes = np.where(codes < 0, theirs, codes + len(others.dictionary))
            return _united(codes, [*others.dictionary.to_pylist(), *words])
        return pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(words, pa.string())
        )

    def _take(self, rows: Int64Array, back: Int64Array, other: str, places: Sequence[Where | None]) -> None:
        functions = np.array(
            [self._text(other if one is None else one.function) for one in places], np.int32
        )[back]
        files = np.array(
            [-1 if one is None or not one.file else self._text(one.file) for one in places], np.int32
        )[back]
        lines = np.array([0 if one is None else one.line for one in places], np.int32)[back]
        self.function[rows], self.file[rows], self.line[rows] = functions, files, lines

    def _text(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def _united(codes: Int64Array, words: list[str | None]) -> pa.DictionaryArray:
    """Return a dictionary column; `words` may say the same thing twice."""
    numbers: dict[str | None, int] = {}
    distinct = [numbers.setdefault(word, len(numbers)) for word in words]
    places = np.array([*distinct, -1], np.int32)[codes]
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), pa.array(numbers, pa.string()))
