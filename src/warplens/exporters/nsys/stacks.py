"""Stacks as call chains: a row for each frame of each, the innermost one having depth 0."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.arrays import Int64Array
from warplens.exporters.nsys.database import Writer, places
from warplens.exporters.nsys.layout import columns

if TYPE_CHECKING:
    from warplens.report import Report

_COLUMNS = ("frame", "parent", "kind", "function", "module", "file", "line", "address", "path")
_DEEPEST = 4096
_ROWS = 1 << 16


class Stacks:
    """The frames of a report.

    The number of a stack is the place of its innermost frame in `keys`, from 1.
    """

    def __init__(self, keys: Int64Array, parent: Int64Array, facts: dict[str, Int64Array]) -> None:
        """`parent`: the place of each frame's caller, -1: none. `facts`: columns of nsys."""
        self.keys, self._parent, self._facts = keys, parent, facts

    @classmethod
    def of(cls, report: Report, writer: Writer) -> Stacks:
        """Return those of a report; their texts get numbers in the database."""
        if not report.tables["frames"]:
            return cls(np.empty(0, np.int64), np.empty(0, np.int64), {})
        frames = report.table("frames", list(_COLUMNS))
        frames = frames.take(pc.sort_indices(frames, [("frame", "ascending")])).combine_chunks()
        keys = frames.column("frame").to_numpy().astype(np.int64)
        parent = places(keys, frames.column("parent").combine_chunks()).to_numpy() - 1
        kind = frames.column("kind").cast(pa.string())
        python = pc.equal(kind, "python")
        line = pc.if_else(
            pc.is_valid(frames.column("line")),
            pc.binary_join_element_wise(":", frames.column("line").cast(pa.string()), ""),
            "",
        )
        source = pc.binary_join_element_wise(
            pc.coalesce(frames.column("file").cast(pa.string()), "<unknown>"), line, ""
        )
        module = pc.coalesce(
            frames.column("path").cast(pa.string()), frames.column("module").cast(pa.string()), "[unknown]"
        )
        function = frames.column("function").cast(pa.string())
        facts = {
            "symbol": _numbers(writer.strings(function.combine_chunks())),
            "module": _numbers(writer.strings(pc.if_else(python, source, module).combine_chunks())),
            "kernelMode": np.asarray(pc.equal(kind, "kernel")).astype(np.int64),
            "unresolved": np.asarray(pc.starts_with(function, "[")).astype(np.int64),
            "originalIP": pc.fill_null(frames.column("address"), 0).to_numpy().view(np.int64),
        }
        return cls(keys, parent, facts)

    def write_used(self, writer: Writer, table: str, used: Iterable[pa.RecordBatch]) -> None:
        """Write the chains of all stacks in the first column of `used`, each once."""
        for batch in used:
            numbers = places(self.keys, batch.column(0)).to_numpy()
            self.write(writer, table, numbers[numbers > 0], numbers=numbers[numbers > 0])

    def write(self, writer: Writer, table: str, ids: Int64Array, numbers: Int64Array) -> None:
        """Write one chain for each of `numbers` (of stacks), called `ids`."""
        for begin in range(0, len(ids), _ROWS):
            chain, at, depth = ids[begin : begin + _ROWS], numbers[begin : begin + _ROWS] - 1, 0
            while len(at) and depth < _DEEPEST:  # all innermost frames, then who called them
                values: dict[str, Any] = {
                    "id": chain,
                    **{name: column[at] for name, column in self._facts.items()},
                    "stackDepth": np.full(len(at), depth, np.int64),
                }
                values["originalIP"] = pa.array(values["originalIP"], mask=values["originalIP"] == 0)
                writer.write(
                    table, {name: column for name, column in values.items() if name in columns(table)}
                )
                above = self._parent[at]
                chain, at, depth = chain[above >= 0], above[above >= 0], depth + 1


def _numbers(column: pa.Array) -> Int64Array:
    return np.asarray(pc.fill_null(column, 0).to_numpy(zero_copy_only=False), np.int64)
