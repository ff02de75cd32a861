"""Converts call chains to the tree of stacks: the table `frames`, and the columns `stack`."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray, Int64Array
from warplens.importers.nsys.database import Database
from warplens.importers.nsys.names import combined, distinct_values
from warplens.importers.nsys.taken import NsysDiagnostics
from warplens.storage.writer import RANGES_PER_PROCESS, PartWriter

_COLUMNS = ("id", "symbol", "module", "kernelMode", "unresolved", "originalIP", "stackDepth")
_PYTHON = re.compile(r"(.+):(\d{1,9})$|(.*\.pyw?|<.*>)$")  # a source file in place of a module
_NONE = ("[unknown]", "")


@dataclass
class _ProcessFrames:
    """The frames of one process so far."""

    frames: list[Int64Array] = field(
        default_factory=list
    )  # rows of parent (in this tree, -1: none), symbol, module, kernel, address, depth
    count: int = 0
    made: dict[tuple[int, int, int, int, int], int] = field(default_factory=dict)


@dataclass
class Chains:
    """All stacks of the report; the frames are written when everything has been asked for."""

    database: Database
    part: PartWriter
    tally: NsysDiagnostics
    trees: dict[int, _ProcessFrames] = field(default_factory=dict)

    def stacks(self, table: str, process: Int64Array, chain: Int64Array, valid: BoolArray) -> pa.Array:
        """Return the stack of each row whose chain has the number `chain` in `table`.

        Null if the file lacks it.
        """
        self.tally.used.add(table)
        if not self.database.has(table, "id", "symbol", "stackDepth") or not valid.any():
            return pa.nulls(len(chain), pa.int64())
        rows = self.database.read(table, _COLUMNS)
        # The rows of a chain side by side, the outermost frame (greatest depth) first.
        order = np.lexsort((-rows.ints("stackDepth"), rows.ints("id")))
        rows = rows.taken(order)
        kernel, unresolved = rows.ints("kernelMode") != 0, rows.ints("unresolved") != 0
        facts = np.stack(
            [
                rows.ints("symbol"),
                rows.ints("module"),
                kernel | (unresolved.astype(np.int64) << 1),
                rows.ints("originalIP"),
            ]
        )
        ids = rows.ints("id")
        # Chain k has rows [begins[k], begins[k] + lengths[k]) and the number numbers[k], which grows with k.
        begins = np.flatnonzero(np.diff(ids, prepend=ids[:1] - 1)) if len(ids) else np.empty(0, np.int64)
        lengths, numbers = np.diff(np.append(begins, len(ids))), ids[begins]
        stack = np.full(len(chain), -1, np.int64)
        for key in np.unique(process[valid]).tolist():
            mine = np.flatnonzero(valid & (process == key))
            wanted = np.unique(chain[mine])
            # Chains that the file lacks land on another number or behind the last, and `there`
            # drops them.
            places = np.searchsorted(numbers, wanted)
            there = (
                (places < len(numbers)) & (numbers[np.minimum(places, max(len(numbers) - 1, 0))] == wanted)
                if len(numbers)
                else wanted < 0
            )
            wanted, places = wanted[there], places[there]
            leaves = self._grow(
                self.trees.setdefault(key, _ProcessFrames()), facts, begins[places], lengths=lengths[places]
            )
            if len(wanted):
                at = np.minimum(np.searchsorted(wanted, chain[mine]), len(wanted) - 1)
                known = wanted[at] == chain[mine]
                stack[mine[known]] = key * RANGES_PER_PROCESS + leaves[at[known]]
        return pa.array(stack, pa.int64(), mask=stack < 0)

    def _grow(
        self, tree: _ProcessFrames, facts: Int64Array, begins: Int64Array, lengths: Int64Array
    ) -> Int64Array:
        """Add chains to a tree, all outermost frames first, then what they called.

        Return the number of each one's innermost frame.
        """
        at = np.full(len(begins), -1, np.int64)
        for depth in range(int(lengths.max(initial=0))):
            deep = np.flatnonzero(lengths > depth)
            columns = [at[deep], *facts[:, begins[deep] + depth]]
            codes, keys = combined(columns)
            numbers = np.empty(len(keys), np.int64)
            fresh = []
            for place, key in enumerate(keys):
                number = tree.made.get(key)  # type: ignore[arg-type]
                if number is None:
                    number = tree.made[key] = tree.count  # type: ignore[index]
                    tree.count += 1
                    fresh.append((*key, depth))
                numbers[place] = number
            if fresh:
                tree.frames.append(np.array(fresh, np.int64).T)
            at[deep] = numbers[codes]
        return at

    def write(self) -> None:
        """Write `frames`."""
        for process in sorted(self.trees):
            tree = self.trees[process]
            if tree.count:
                self.part.write("frames", self._columns(process, np.concatenate(tree.frames, axis=1)))

    def _columns(self, process: int, frames: Int64Array) -> dict[str, Any]:
        parent, symbol, module, flags, address, depth = frames
        always = np.ones(len(parent), bool)
        strings = self.database.strings(np.unique(np.concatenate([symbol, module])))
        codes, pairs = combined([symbol, module, flags])
        described = [
            _described(strings.get(symbol_id) or f"[string {symbol_id}]", strings.get(two) or "", bits)
            for symbol_id, two, bits in pairs
        ]
        first = process * RANGES_PER_PROCESS

        def texts(name: str) -> pa.DictionaryArray:
            values = [row.get(name) for row in described]
            return distinct_values(
                codes,
                [value or "" for value in values],
                np.array([value is not None for value in values], bool)[codes],
            )

        lines = np.array([row.get("line") or 0 for row in described], np.int64)[codes]
        python = np.array([row["kind"] == "python" for row in described], bool)[codes]
        return {
            "frame": first + np.arange(len(parent)),
            "process": np.full(len(parent), process, np.int64),
            "parent": pa.array(first + parent, mask=parent < 0),
            "depth": depth.astype(np.int32),
            "kind": texts("kind"),
            "function": distinct_values(codes, [row["function"] for row in described], always),
            "module": texts("module"),
            "file": texts("file"),
            "line": pa.array(lines.astype(np.int32), mask=lines <= 0),
            "address": pa.array(address.view(np.uint64), mask=(address == 0) | python),
            "path": texts("path"),
        }


def _described(symbol: str, module: str, flags: int) -> dict[str, Any]:
    """Return what a frame is: nsys gives Python's the source file as module."""
    kernel, python = flags & 1 or module.startswith("[kernel"), _PYTHON.match(module)
    if python and not kernel:
        file, line, whole = python.groups()
        return {
            "kind": "python",
            "function": symbol,
            "file": file or whole,
            "line": int(line) if line else None,
        }
    name = module.rpartition("/")[2]
    return {
        "kind": "kernel" if kernel else "native",
        "function": symbol,
        "module": None if module in _NONE else name,
        "path": module if "/" in module else None,
    }
