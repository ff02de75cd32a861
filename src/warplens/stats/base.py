"""The contract of a stat: one file in `tables`, one function, one Arrow table.

A stat is `stats/tables/<name>.py` with

    def table(report: Report, selection: Selection, *, opts...) -> pa.Table

Its rows are in the order they are read in. Columns that hold times end in `(ns)`, so that `--timeunit` can rename them. What a
reader must know beside the table (a note) travels in the table's schema metadata: `noted()` and `notes()`. A report without the
data raises MissingData with the words that follow "the report".
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Protocol

from warplens.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report import Report, Selection

_NOTES, _TITLE = b"warplens.notes", b"warplens.title"


class StatTable(Protocol):
    """The type of `table` in each unit."""

    def __call__(self, report: Report, selection: Selection, **options: Any) -> pa.Table:
        """Compute the stat over the selected part of the report.

        Raises MissingData if the report cannot answer.
        """
        ...


def one_of(what: str, value: str, known: tuple[str, ...]) -> str:
    """Return an option's value; UsageError, which lists those that there are, for another."""
    if value not in known:
        raise UsageError(f"`:{what}={value}` is unknown; choose from: {', '.join(known)}.")
    return value


def noted(table: pa.Table, *texts: str) -> pa.Table:
    """Return `table` with notes for its reader; empty texts are left out."""
    kept = [text for text in texts if text]
    return (
        table.replace_schema_metadata({**(table.schema.metadata or {}), _NOTES: json.dumps(kept)})
        if kept
        else table
    )


def notes(table: pa.Table) -> list[str]:
    """Return the notes that `noted` put there."""
    notes_of_table: list[str] = json.loads((table.schema.metadata or {}).get(_NOTES, b"[]"))
    return notes_of_table


def titled(table: pa.Table, text: str) -> pa.Table:
    """Return `table` with a title for what its options chose, instead of the stat's first line."""
    return table.replace_schema_metadata({**(table.schema.metadata or {}), _TITLE: text})


def title(table: pa.Table) -> str:
    """Return the title that `titled` put there, else nothing."""
    text: bytes = (table.schema.metadata or {}).get(_TITLE, b"")
    return text.decode()


def share(values: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return each value as percent of their sum; zeros where the sum is 0."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = pc.cast(
        values, pa.float64(), safe=False
    )  # a total of many ranks may be above 2^53 ns, which is 104 days
    return pc.multiply(pc.divide(values, pc.sum(values).as_py() or 1.0), 100.0)
