"""Puts the summaries of parts together, in an order that no pool can change."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import pyarrow as pa

from warplens.recipes.base import REPORT, Summary

Merge = Callable[[Summary, Summary], Summary]


def numbered(summary: Summary, number: int) -> Summary:
    """Return the tables with the column `report` in front, which holds `number`."""
    return {
        name: table.add_column(
            0, pa.field(REPORT, pa.int32()), pa.repeat(pa.scalar(number, pa.int32()), table.num_rows)
        )
        for name, table in summary.items()
    }


def below(summary: Summary, other: Summary) -> Summary:
    """Put the rows of each table below those of the other."""
    return {
        name: pa.concat_tables(
            [one[name] for one in (summary, other) if name in one], promote_options="permissive"
        )
        for name in sorted({*summary, *other})
    }


def merge_of(question: ModuleType) -> Merge:
    """Return how the summaries of a recipe are merged."""
    merge: Merge = getattr(question, "merged", below)
    return merge


def tree(summaries: Sequence[Summary], merge: Merge) -> Summary:
    """Merge neighbours until one is left; empty if there is none."""
    level = list(summaries)
    while len(level) > 1:
        level = [
            merge(*pair) if len(pair) == 2 else pair[0]
            for pair in (level[first : first + 2] for first in range(0, len(level), 2))
        ]
    return level[0] if level else {}


def in_order(summary: Summary) -> Summary:
    """Return the tables with their rows in the order of the reports."""
    return {
        name: table.combine_chunks().take(
            pa.array(table.column(REPORT).to_numpy().argsort(kind="stable"), pa.int64())
        )
        if REPORT in table.column_names
        else table
        for name, table in summary.items()
    }
