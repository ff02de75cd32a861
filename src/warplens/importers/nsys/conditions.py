"""Conditions that choose rows of a table, written once for SQLite and for Arrow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from warplens.arrays import BoolArray
from warplens.importers.nsys.rows import NsysRows
from warplens.report.quoting import quoted, quoted_name


@dataclass(frozen=True)
class Among:
    """An integer column, null being 0, is one of some numbers, or `negated`: none of them.

    Only its bits in `mask` count.
    """

    column: str
    numbers: tuple[int, ...]
    mask: int = -1
    negated: bool = False

    def sql(self) -> str:
        """Say it as SQL."""
        value = f"coalesce(CAST({quoted_name(self.column)} AS INTEGER), 0)"
        masked = value if self.mask == -1 else f"({value} & {self.mask})"
        return f"{masked} {'NOT ' * self.negated}IN ({', '.join(map(str, self.numbers))})"

    def of(self, rows: NsysRows) -> BoolArray:
        """Say for which rows it is so."""
        return np.isin(
            rows.ints(self.column) & self.mask, np.array(self.numbers, np.int64), invert=self.negated
        )


@dataclass(frozen=True)
class Given:
    """A column has a value."""

    column: str

    def sql(self) -> str:
        """Say it as SQL."""
        return f"{quoted_name(self.column)} IS NOT NULL"

    def of(self, rows: NsysRows) -> BoolArray:
        """Say for which rows it is so."""
        return rows.valid(self.column)


@dataclass(frozen=True)
class Named:
    """A text column is one of some texts."""

    column: str
    texts: tuple[str, ...]

    def sql(self) -> str:
        """Say it as SQL."""
        return f"{quoted_name(self.column)} IN ({', '.join(map(quoted, self.texts))})"

    def of(self, rows: NsysRows) -> BoolArray:
        """Say for which rows it is so."""
        return np.array([value in self.texts for value in rows.texts(self.column).to_pylist()], bool)


@dataclass(frozen=True)
class Begins:
    """A text column begins with a text; capital or small letters are the same."""

    column: str
    text: str

    def sql(self) -> str:
        """Say it as SQL."""
        return f"upper(substr({quoted_name(self.column)}, 1, {len(self.text)})) = {quoted(self.text.upper())}"

    def of(self, rows: NsysRows) -> BoolArray:
        """Say for which rows it is so."""
        wanted = self.text.upper()
        return np.array(
            [(value or "")[: len(wanted)].upper() == wanted for value in rows.texts(self.column).to_pylist()],
            bool,
        )


@dataclass(frozen=True)
class Lacks:
    """A text column does not hold a text; capital or small letters are the same."""

    column: str
    text: str

    def sql(self) -> str:
        """Say it as SQL."""
        return f"instr(upper({quoted_name(self.column)}), {quoted(self.text.upper())}) = 0"

    def of(self, rows: NsysRows) -> BoolArray:
        """Say for which rows it is so."""
        wanted = self.text.upper()
        return np.array(
            [
                value is not None and wanted not in value.upper()
                for value in rows.texts(self.column).to_pylist()
            ],
            bool,
        )


Condition = Among | Given | Named | Begins | Lacks
Where = Sequence[Condition]
