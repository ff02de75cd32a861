"""The frames of a report in memory: callers, and the keys by which functions, lines and modules are equal."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.arrays import Int64Array
from warplens.errors import UsageError
from warplens.report.columns import as_numbers

if TYPE_CHECKING:
    from warplens.report.report import Report

NO_STACK = "[no stack]"
# Code that others wrote, or that TorchInductor generated: in its folder, or by the name of its modules.
_LIBRARY = re.compile(
    r"(^|/)(site-packages|dist-packages|lib/python3[^/]*|torch|torchvision|transformers|accelerate|lightning|jax|flax|tensorflow|cupy"
    r"|torchinductor_[^/]*)/|(^|/)c[a-z2-7]{40,}\.py$|^<"
)
_TEXTS = ("kind", "function", "module", "file")
_SYSTEM = re.compile(
    r"(libc|libpthread|ld-linux[^.]*|ld)[.-]|\[(kernel|vdso)\]"
)  # libraries that every thread begins in, the kernel
_LINES = ("line", "first_line")


def is_library(file: str) -> bool:
    """True if a source file belongs to Python or to an installed package, not to the program.

    Some tools give no folder.
    """
    return _LIBRARY.search(file) is not None or (
        "/" not in file and file.removesuffix(".py") in sys.stdlib_module_names
    )


class Frame(NamedTuple):
    """One function that was active. `kind`: `python`, `native` or `kernel`."""

    kind: str
    function: str
    module: str | None = None
    file: str | None = None
    line: int | None = None
    first_line: int | None = None


class FrameTable:
    """All frames by position (from 0).

    The last one stands for stacks that were not taken: `[no stack]`, without a caller.

    `parent`: position of each one's caller, -1 for the outermost ones. What called the interpreter is left out: stacks with Python in them
    begin with Python. `interpreted`: which are Python's, or tasks.
    """

    def __init__(self, rows: pa.Table, *, only_python: bool = False) -> None:
        """`rows`: the table `frames`, or some of it whose parents are in it.

        `only_python`: leave out what is no function of Python; its callers have its place. Stacks without any are what their thread
        began with (`gomp_thread_start` of libgomp), `[no stack]` where that is not known.
        """
        blank = pa.Table.from_pylist([{"frame": None, "kind": "native", "function": NO_STACK}], rows.schema)
        self._rows = pa.concat_tables([rows, blank]).unify_dictionaries().combine_chunks()
        keys = as_numbers(rows.column("frame"))
        self._order = np.argsort(keys, kind="stable")  # a part's are sorted already
        self._keys = keys[self._order]
        self.parent = np.append(self._find(as_numbers(rows.column("parent"))), np.int64(-1))
        self._texts = {name: self._rows.column(name).combine_chunks() for name in _TEXTS}
        self._made: dict[int, Frame] = {}
        self._stands: Int64Array | None = None  # of each frame the one that has its place
        kinds, kind = self.texts("kind")
        self.interpreted = interpreted = np.isin(
            kind, [number for number, name in enumerate(kinds) if name in ("python", "task")]
        )
        # Some stacks were joined with what the interpreter was called by, others were not: one root for all of a program.
        self.parent = np.where(interpreted & ~self._is_below(interpreted), -1, self.parent)
        if only_python:
            self._keep(np.array(pc.equal(pc.cast(self._texts["kind"], pa.string()), "python")))

    @classmethod
    def of(cls, report: Report, *, only_python: bool = False) -> FrameTable:
        """Read the frames of a report; there may be none."""
        return cls(report.table("frames", ["frame", "parent", *_TEXTS, *_LINES]), only_python=only_python)

    def _keep(self, wanted: npt.NDArray[np.bool_]) -> None:
        """Put the nearest caller that is wanted in the place of each other frame."""
        wanted[-1] = True
        last = len(self) - 1
        begin = self._begins()
        near = np.where(wanted, np.arange(len(self)), self.parent)
        for _ in range(64):  # each step doubles how far it looks
            known = near >= 0
            further = np.where(known, near[near], -1)
            if np.array_equal(further, near):
                break
            near = further
        self.parent = np.where(self.parent >= 0, near[self.parent], -1)
        self._stands = np.where(near >= 0, near, np.where(begin >= 0, begin, last))

    def _is_below(self, some: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        """Say of each frame whether one of its callers is among `some`."""
        hop = self.parent
        below = (hop >= 0) & some[hop]
        for _ in range(64):  # each step doubles how far it looks
            if not (hop >= 0).any():
                break
            below, hop = below | ((hop >= 0) & below[hop]), np.where(hop >= 0, hop[hop], -1)
        return below

    def _begins(self) -> Int64Array:
        """Return of each frame the outermost one of its stack that is no system library's; -1: none."""
        names, module = self.texts("module")
        system = [number for number, name in enumerate(names) if _SYSTEM.match(name)]
        begin = np.where((module >= 0) & ~np.isin(module, system), np.arange(len(self)), -1)
        hop = self.parent
        for _ in range(64):  # each step doubles how far it looks
            if not (hop >= 0).any():
                break
            further = np.where(hop >= 0, begin[hop], -1)
            begin, hop = np.where(further >= 0, further, begin), np.where(hop >= 0, hop[hop], -1)
        return begin

    def __len__(self) -> int:
        return len(self.parent)

    def positions(self, stacks: pa.ChunkedArray | pa.Array) -> Int64Array:
        """Return the positions of stacks, as tables name them.

        That of `[no stack]` for null, and for what is not in the table.
        """
        position = self._find(as_numbers(stacks))
        # The last frame is `[no stack]`.
        position = np.where(position < 0, len(self) - 1, position)
        return position if self._stands is None else self._stands[position]

    def frame(self, position: int) -> Frame:
        """Return one frame."""
        frame = self._made.get(position)
        if frame is None:
            values = [self._rows.column(name)[position].as_py() for name in (*_TEXTS, *_LINES)]
            frame = self._made[position] = Frame(*values)
        return frame

    def texts(self, name: str) -> tuple[list[str], Int64Array]:
        """Return the texts of a column and the text number of each frame; -1: none.

        Columns: `kind`, `function`, `module`, `file`.
        """
        column = self._texts[name]
        return [str(text) for text in column.dictionary.to_pylist()], as_numbers(column.indices)

    def path(self, position: int) -> tuple[Frame, ...]:
        """Return the stack that ends in a frame, the outermost first."""
        innermost_first: list[Frame] = []
        while position >= 0 and len(innermost_first) < len(self):
            innermost_first.append(self.frame(position))
            position = int(self.parent[position])
        return tuple(reversed(innermost_first))

    def labels(self, by: str) -> Int64Array:
        """Number the frames so that equal numbers are the same `function`, `line` or `module`.

        Raises UsageError for other words.

        Functions differ by module (native), or by file and the line they begin in (Python). Functions without a module differ by their
        file: modules of Python are their files.
        """
        if by not in LABELS:
            raise UsageError(f"frames cannot be grouped by {by!r}; choose one of: {', '.join(LABELS)}.")
        return _combined([part(self) for part in LABELS[by]])

    def _code(self, name: str) -> Int64Array:
        if name in _LINES:
            return as_numbers(self._rows.column(name))
        return as_numbers(self._texts[name].indices)

    def _place(self) -> Int64Array:
        """Number the modules, and below 0 the files of what has none."""
        module = self._code("module")
        return np.where(module >= 0, module, -2 - self._code("file"))

    def _python_only(self, name: str) -> Int64Array:
        """A column that tells functions of Python apart.

        Of native ones, the file is that of the line, which may be an inlined one's.
        """
        python = pc.equal(pc.cast(self._rows.column("kind"), pa.string()), "python").combine_chunks()
        return np.where(np.asarray(python), self._code(name), -1)

    def _find(self, keys: Int64Array) -> Int64Array:
        if not len(self._keys):
            return np.full(len(keys), -1, np.int64)
        place = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where((self._keys[place] == keys) & (keys >= 0), self._order[place], -1)


_Part = Callable[[FrameTable], Int64Array]


def _of(name: str) -> _Part:
    return lambda frames: frames._code(name)


_FUNCTION: list[_Part] = [
    _of("kind"),
    _of("function"),
    _of("module"),
    lambda frames: frames._python_only("file"),
    lambda frames: frames._python_only("first_line"),
]
LABELS: dict[str, list[_Part]] = {
    "function": _FUNCTION,
    "line": [*_FUNCTION, _of("file"), _of("line")],
    "module": [_of("kind"), lambda frames: frames._place()],
}


def _combined(columns: Sequence[Int64Array]) -> Int64Array:
    """Number the combinations of values that there are."""
    number = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        values, codes = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + codes, return_inverse=True)[1]
    return number.astype(np.int64)
