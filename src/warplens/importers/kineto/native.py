"""The native reader of Chrome traces: text in, columns out."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
import numpy.typing as npt

from warplens import native
from warplens.arrays import Int64Array
from warplens.importers.kineto.layout import COUNTS, FACTS, FIELDS, KINDS, WIDE

_KIND = {name: number for number, name in enumerate(KINDS)}
_FIELD = {name: number for number, name in enumerate(FIELDS)}
Column = npt.NDArray[Any]


@dataclass
class TraceParser:
    """Takes the text of a trace apart. Feed it all, `finish` it once, then ask for columns."""

    facts: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._trace = native.make("trace_new")

    def __enter__(self) -> TraceParser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._trace.close()

    def feed(self, piece: bytes) -> bool:
        """Take the next piece of the text; False if nothing behind it can be read."""
        return bool(native.call("trace_feed", self._trace, piece))

    def finish(self) -> None:
        """End the text: now `facts` and `counts` say what it was."""
        totals = np.zeros(len(FACTS) + len(COUNTS), np.int64)
        native.call("trace_finish", self._trace, totals)
        values = totals.tolist()
        self.facts = dict(zip(FACTS, values, strict=False))
        self.counts = dict(zip(COUNTS, values[len(FACTS) :], strict=True))

    def rows(self, kind: str) -> int:
        """Return how many events of a kind there are."""
        return int(native.call("trace_rows", self._trace, _KIND[kind]))

    def take(self, kind: str, name: str) -> Column:
        """Return a column of a kind of event; each can be taken once.

        KeyError if the kind has none of that name.
        """
        out = np.empty(self.rows(kind), np.int64 if name in WIDE else np.int32)
        if not native.call(
            f"trace_take_{'wide' if name in WIDE else 'narrow'}", self._trace, _KIND[kind], _FIELD[name], out
        ):
            raise KeyError(f"{kind} has no column {name}, or it was taken")
        return out

    def lanes(self) -> Int64Array:
        """Return pid, tid and what of both is a text (1: the pid, 2: the tid) of each lane."""
        out = np.empty((self.facts["lanes"], 3), np.int64)
        native.call("trace_lanes", self._trace, out)
        return out

    def texts(self, raw: bool = False) -> tuple[Int64Array, bytes]:
        """Return where each text ends, and the bytes of all of them.

        `raw`: those that were kept as JSON.
        """
        ends = np.empty(self.facts["raws" if raw else "texts"], np.int64)
        return ends, native.call("trace_texts", self._trace, int(raw), ends).tobytes()

    def members(self) -> tuple[dict[str, str], list[str]]:
        """Return the known members of the file's object, as JSON, and the names of the skipped blocks."""
        lines = native.call("trace_members", self._trace).tobytes().decode(errors="replace").split("\n")[:-1]
        pairs = [line.partition("\t") for line in lines]
        return {name: value for name, tab, value in pairs if tab}, [name for name, tab, _ in pairs if not tab]

    def unsupported(self) -> list[tuple[str, int, int]]:
        """Return `ph`, the code of the category and the number of what has no place in a report."""
        out = np.empty((native.call("trace_unsupported", self._trace, None), 3), np.int64)
        native.call("trace_unsupported", self._trace, out)
        return [(chr(phase & 0xFF), category, count) for phase, category, count in out.tolist()]
