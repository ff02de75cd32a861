"""The types of a table of a report: columns with type, unit and meaning.

And the columns that many tables share.

Types are `int16 int32 int64 uint32 uint64 float64 bool string binary dict` (`dict`: a string column stored as a
dictionary). Columns with unit `ns` are CLOCK_MONOTONIC of the recording host unless the text says otherwise.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """One column: `unit` is `ns`, `bytes` or empty.

    `clock` marks times that move when hosts are aligned.

    `spread`: an amount that belongs to the row's whole length, so that a piece of the row has its share of it. A nullable column may be
    missing in the files of an older report; it then reads as null.
    """

    name: str
    type: str
    text: str
    nullable: bool = False
    unit: str = ""
    clock: bool = False
    spread: bool = False

    @property
    def kind(self) -> str:
        """The type, the unit, and whether it may be null, in words."""
        return f"{self.type}{f', {self.unit}' if self.unit else ''}{', may be null' if self.nullable else ''}"


@dataclass(frozen=True)
class Table:
    """One table of a report; rows are sorted by `sort`.

    `happens`: they are events, so that `--window` chooses among them.

    `launched`: events on a GPU, which belong to the window in which their call (column `api`) began.
    Tables whose rows are there for long, such as processes, are whole whatever is chosen.
    """

    name: str
    text: str
    columns: tuple[Column, ...]
    sort: tuple[str, ...] = ()
    happens: bool = False
    launched: bool = False

    @property
    def edges(self) -> tuple[str, ...]:
        """The columns that say when a row begins and, where it does not happen in an instant, ends."""
        return tuple(column.name for column in self.columns if column.name in ("start", "end"))

    @property
    def described(self) -> str:
        """The table in words: its text, then one line for each column."""
        order = f" Sorted by {', '.join(self.sort)}." if self.sort else ""
        return "\n".join(
            [
                f"{self.name}: {self.text}{order}",
                *(f"- {column.name} ({column.kind}): {column.text}" for column in self.columns),
            ]
        )

    def column(self, name: str) -> Column:
        """Return the column called `name`; KeyError if there is none."""
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(f"{self.name} has no column {name!r}")


def time(name: str, text: str, nullable: bool = False) -> Column:
    """Return a column of times."""
    return Column(name, "int64", text, nullable=nullable, unit="ns", clock=True)


PROCESS = Column("process", "int64", "Key of `processes`.")
THREAD = Column("thread", "int64", "Key of `threads`.")
