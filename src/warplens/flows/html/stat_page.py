"""A stat as a page: its table, and a plot of its values."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.flows.html.page import heading, page, table
from warplens.flows.html.plots import bars
from warplens.flows.html.words import safe
from warplens.stats.base import notes

if TYPE_CHECKING:
    from warplens.catalog import Unit

_BARS = 20
_MEASURES = ("Total Time (ns)", "Total (ns)", "Union (ns)", "Duration (ns)", "Total (MB)", "Time (%)")


def stat_page(unit: Unit, rows: pa.Table, *, title: str = "") -> str:
    """Return the page of one stat. `title`: what it is about, e.g. the report's name."""
    return page(
        f"{unit.id} {title}".strip(),
        f"<h1>{safe(unit.summary.rstrip('.'))}</h1>",
        stat_section(unit, rows, about=title),
    )


def stat_section(unit: Unit, rows: pa.Table, *, about: str = "", most: int = 0, named: bool = False) -> str:
    """Return plot, table and notes of a stat."""
    more = f"warplens stats -r {unit.id}"
    parts = [
        heading(unit.summary.rstrip("."), unit.id)
        if named
        else f'<p class="dim">{safe(unit.id)} {safe(about)}</p>',
        plot(rows),
    ]
    parts.append(table(rows, most=most, more=more))
    parts += [f'<p class="dim">{safe(note)}</p>' for note in notes(rows)]
    return "\n".join(parts)


def plot(rows: pa.Table) -> str:
    """Draw the rows that weigh most, where the table is one of names and amounts; else nothing."""
    measure = next((name for name in _MEASURES if name in rows.column_names), None)
    texts = [
        item.name
        for item in rows.schema
        if pa.types.is_string(item.type) or pa.types.is_dictionary(item.type)
    ]
    if measure is None or not texts or rows.num_rows < 2:
        return ""
    names = rows.column(texts[-1]).to_pylist()
    pairs = sorted(
        zip(names, rows.column(measure).to_pylist(), strict=True), key=lambda pair: -(pair[1] or 0)
    )
    unit = "ns" if measure.endswith("(ns)") else measure.rpartition("(")[2].rstrip(")")
    return bars([(str(name), float(value or 0)) for name, value in pairs[:_BARS]], unit)
