"""Compares the answers over two jobs, rank by rank.

The rows of the table `by_rank` are compared in one column of numbers: the one that the recipe compares,
else the first one of times. Ranks are paired by name, or in order if their names differ. A change is
called one beyond chance if ranks change in one direction more often than a coin explains (p < 0.01).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from warplens.errors import MissingData
from warplens.flows.html.words import amount
from warplens.model.words import counted, percent
from warplens.recipes.base import Answer
from warplens.recipes.chance import at_least

_TABLE, _RANK = "by_rank", "Rank"
_CHANCE = 0.01
_LINES = 4
_Key = tuple[str, ...]


def compared(before: Answer, now: Answer) -> Answer:
    """Return what changed. MissingData if the recipe has no table of ranks, or nothing in common."""
    keys = [_RANK, *now.facts.get("names", [])]
    tables = [{**answer.tables, **answer.details}.get(_TABLE, pa.table({})) for answer in (before, now)]
    if any(name not in table.column_names for table in tables for name in keys):
        raise MissingData("the answer has no table by rank that could be compared.")
    value = str(now.facts.get("column") or next(_measures(tables[1])))
    old, new = (_values(table, keys, value) for table in tables)
    ranks = [list(dict.fromkeys(rank for rank, _ in values)) for values in (old, new)]
    if not set(ranks[0]) & set(ranks[1]):
        paired = dict(zip(ranks[0], ranks[1], strict=False))
        old = {(paired[rank], name): one for (rank, name), one in old.items() if rank in paired}
    both = [key for key in new if key in old]
    if not both:
        raise MissingData("the two jobs have no rank and row in common.")
    rows = _rows(both, old, new, keys=keys[1:], value=value)
    by_rank = pa.Table.from_pylist(
        [
            {
                _RANK: rank,
                **dict(zip(keys[1:], name, strict=True)),
                _named("Before", value): old[rank, name],
                _named("Now", value): new[rank, name],
                _named("Change", value): new[rank, name] - old[rank, name],
            }
            for rank, name in both
        ]
    )
    clear = [row for row in rows if row["p"] < _CHANCE]
    count = len({rank for rank, _ in both})
    return Answer(
        [
            f"{value} of {counted(count, 'rank')}, now against before: "
            f"{counted(len(clear), 'row')} of {len(rows):,} changed beyond chance.",
            *(_line(row, keys[1:], value) for row in (clear or rows)[:_LINES]),
        ],
        tables={"changes": pa.Table.from_pylist(rows)},
        details={_TABLE: by_rank},
        facts={"column": value, "ranks": count, "changed": len(clear)},
    )


def _measures(table: pa.Table) -> Iterator[str]:
    numbers = [
        field.name
        for field in table.schema
        if pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
    ]
    yield from (name for name in numbers if name.endswith("(ns)"))
    yield from numbers


def _values(table: pa.Table, keys: list[str], value: str) -> dict[tuple[str, _Key], float]:
    result: dict[tuple[str, _Key], float] = {}
    for row in table.select([*keys, value]).to_pylist():
        key = (row[_RANK], tuple(str(row[name] or "") for name in keys[1:]))
        result[key] = result.get(key, 0.0) + float(row[value] or 0)
    return result


def _rows(
    both: list[tuple[str, _Key]],
    old: dict[tuple[str, _Key], float],
    new: dict[tuple[str, _Key], float],
    *,
    keys: list[str],
    value: str,
) -> list[dict[str, Any]]:
    """Return a row for each name, the greatest change of the sum first."""
    groups: dict[_Key, list[str]] = {}
    for rank, name in both:
        groups.setdefault(name, []).append(rank)
    rows = []
    for name, ranks in groups.items():
        before, now = (np.array([values[rank, name] for rank in ranks]) for values in (old, new))
        change = now - before
        ups, downs = int((change > 0).sum()), int((change < 0).sum())
        rows.append(
            {
                **dict(zip(keys, name, strict=True)),
                "Ranks": len(ranks),
                _named("Before", value): float(before.mean()),
                _named("Now", value): float(now.mean()),
                _named("Change", value): float(change.mean()),
                "Change (%)": 100.0 * float(change.sum()) / (float(before.sum()) or 1.0),
                "Most at": ranks[int(np.abs(change).argmax())],
                "p": min(2 * at_least(max(ups, downs), ups + downs), 1.0),
            }
        )
    return sorted(rows, key=lambda row: -abs(row[_named("Change", value)] * row["Ranks"]))


def _named(word: str, value: str) -> str:
    """Return e.g. `Before (ns)` for the column `Total Time (ns)`."""
    return f"{word} ({unit}" if (unit := value.partition("(")[2]) else word


def _line(row: dict[str, Any], keys: list[str], value: str) -> str:
    unit = value.partition("(")[2].rstrip(")")
    name = ", ".join(str(row[key]) for key in keys if row[key]) or "All"
    return (
        f"{name}: {amount(row[_named('Before', value)], unit)} → {amount(row[_named('Now', value)], unit)} on average "
        f"({percent(row['Change (%)'] / 100, 1, sign=True)}), most at {row['Most at']} (chance: p = {row['p']:.1g})."
    )
