"""The native reader of Chrome traces: text in, columns out."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass, field
from functools import lru_cache
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.importers.kineto.layout import COUNTS, FACTS, FIELDS, KINDS, WIDE
from warplens.spool.desk import load

_P, _U32, _U64, _I64 = ctypes.c_void_p, ctypes.c_uint32, ctypes.c_uint64, ctypes.c_int64
_SIGNATURES: dict[str, tuple[list[Any], Any]] = {
    "new": ([], _P),
    "free": ([_P], None),
    "feed": ([_P, ctypes.c_char_p, _U64], _I64),
    "finish": ([_P, _P], _I64),
    "rows": ([_P, _U32], _I64),
    "take": ([_P, _U32, _U32, _P], _I64),
    "lanes": ([_P, _P], None),
    "texts": ([_P, _U32, _P], _I64),
    "members": ([_P], _I64),
    "text": ([_P, _P], None),
    "unsupported": ([_P, _P], _I64),
}
_KIND = {name: number for number, name in enumerate(KINDS)}
_FIELD = {name: number for number, name in enumerate(FIELDS)}
Column = npt.NDArray[Any]


@lru_cache(maxsize=1)
def _library() -> dict[str, Any]:
    loaded, functions = load(), {}
    for name, (arguments, result) in _SIGNATURES.items():
        function = getattr(loaded, f"warplens_trace_{name}")
        function.argtypes, function.restype = arguments, result
        functions[name] = function
    return functions


@dataclass
class TraceParser:
    """Takes the text of a trace apart. Feed it all, `finish` it once, then ask for columns."""

    facts: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._functions = _library()
        self._handle = self._functions["new"]()
        if not self._handle:
            raise MemoryError("no memory for reading a trace")

    def __enter__(self) -> TraceParser:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._functions["free"](self._handle)
        self._handle = None

    def feed(self, piece: bytes) -> bool:
        """Take the next piece of the text; False where nothing behind it can be read."""
        return bool(self._call("feed", piece, len(piece)))

    def finish(self) -> None:
        """End the text: now `facts` and `counts` say what it was."""
        totals = np.zeros(len(FACTS) + len(COUNTS), np.int64)
        self._call("finish", totals.ctypes.data)
        values = totals.tolist()
        self.facts = dict(zip(FACTS, values, strict=False))
        self.counts = dict(zip(COUNTS, values[len(FACTS) :], strict=True))

    def rows(self, kind: str) -> int:
        """Return how many events of a kind there are."""
        return int(self._call("rows", _KIND[kind]))

    def take(self, kind: str, name: str) -> Column:
        """Return a column of a kind of event; each can be taken once. KeyError where the kind has none of that name."""
        out = np.empty(self.rows(kind), np.int64 if name in WIDE else np.int32)
        if not self._call("take", _KIND[kind], _FIELD[name], out.ctypes.data):
            raise KeyError(f"{kind} has no column {name}, or it was taken")
        return out

    def lanes(self) -> Int64Array:
        """Return pid, tid and what of both is a text (1: the pid, 2: the tid) of each lane."""
        out = np.empty((self.facts["lanes"], 3), np.int64)
        self._functions["lanes"](self._handle, out.ctypes.data)
        return out

    def texts(self, raw: bool = False) -> tuple[Int64Array, bytes]:
        """Return where each text ends, and the bytes of all of them. `raw`: those that were kept as JSON."""
        ends = np.empty(self.facts["raws" if raw else "texts"], np.int64)
        return ends, self._text(self._call("texts", int(raw), ends.ctypes.data))

    def members(self) -> tuple[dict[str, str], list[str]]:
        """Return the known members of the file's object, as JSON, and the names of the blocks that were left out."""
        lines = self._text(self._call("members")).decode(errors="replace").split("\n")[:-1]
        pairs = [line.partition("\t") for line in lines]
        return {name: value for name, tab, value in pairs if tab}, [name for name, tab, _ in pairs if not tab]

    def unsupported(self) -> list[tuple[str, int, int]]:
        """Return `ph`, the code of the category and the number of what has no place in a report."""
        out = np.empty((int(self._call("unsupported", None)), 3), np.int64)
        self._call("unsupported", out.ctypes.data)
        return [(chr(phase & 0xFF), category, count) for phase, category, count in out.tolist()]

    def _text(self, size: int) -> bytes:
        out = ctypes.create_string_buffer(size)
        self._functions["text"](self._handle, out)
        return out.raw

    def _call(self, name: str, *arguments: Any) -> int:
        result = int(self._functions[name](self._handle, *arguments))
        if result < 0:
            raise MemoryError("there is not enough memory for this trace")
        return result
