"""Frames of native code: which file they are in, and what the symbols of that file say about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.symbols.kernel import KERNEL
from warplens.convert.symbols.lookup import Place as Where
from warplens.convert.symbols.lookup import Symbols
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords

UNKNOWN = "[unknown]"
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
    """What is known of each of the frames `rows` of native code: texts as numbers in `texts`, -1 for none."""

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
    ) -> None:
        """Look at frames that are in module `number` at `offset` each."""
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
            found = symbols.look_up(module.path, module.build_id, asked)
            self._take(mine, back.reshape(-1), offset[some], name=module.name, found=found)

    def look_up_kernel(
        self, rows: Int64Array, address: Int64Array, flags: Int64Array, boot_id: str, symbols: Symbols
    ) -> None:
        """Look at frames of the kernel that started as `boot_id`."""
        whole = address.astype(np.uint64)
        asked, back = np.unique(whole - (flags & _RETURN).astype(np.uint64), return_inverse=True)
        found = symbols.look_up_kernel(boot_id, asked)
        for row, at, number in zip(rows.tolist(), whole.tolist(), back.reshape(-1).tolist(), strict=True):
            function = found[number]
            self.function[row] = self._text(function.name if function else f"{KERNEL}+{at:#x}")
            self.module[row] = self._text(function.module if function else KERNEL)

    def column(
        self, numbers: npt.NDArray[np.int32], others: pa.DictionaryArray | None = None
    ) -> pa.DictionaryArray:
        """Return texts as a column; where there is none, `others` has one, if any."""
        used, codes = np.unique(numbers, return_inverse=True)
        every = list(self._numbers)
        words = [every[number] for number in used.tolist() if number >= 0]
        codes = codes.reshape(-1) - (1 if len(used) and used[0] < 0 else 0)
        if others is not None:
            theirs = others.indices.fill_null(-1).to_numpy()
            codes = np.where(codes < 0, theirs, codes + len(others.dictionary))
            both = pa.array([*others.dictionary.to_pylist(), *words], pa.string())
            return _united(codes, both)
        return pa.DictionaryArray.from_arrays(
            pa.array(codes.astype(np.int32), mask=codes < 0), pa.array(words, pa.string())
        )

    def _take(
        self, rows: Int64Array, back: Int64Array, offset: Int64Array, name: str, found: Sequence[Where | None]
    ) -> None:
        functions = np.array([-1 if one is None else self._text(one.function) for one in found], np.int32)[
            back
        ]
        files = np.array(
            [-1 if one is None or not one.file else self._text(one.file) for one in found], np.int32
        )[back]
        lines = np.array([0 if one is None else one.line for one in found], np.int32)[back]
        self.function[rows], self.file[rows], self.line[rows] = functions, files, lines
        for row, at in zip(rows[functions < 0].tolist(), offset[functions < 0].tolist(), strict=True):
            self.function[row] = self._text(f"[{name}]+{at:#x}")

    def _text(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))


def _united(codes: Int64Array, words: pa.Array) -> pa.DictionaryArray:
    """Return a dictionary column; `words` may say the same thing twice."""
    distinct = words.dictionary_encode()
    places = np.append(distinct.indices.to_numpy(), -1)[codes].astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), distinct.dictionary)
