"""Prints rows named `library (mode): what` as a table with one column per library and mode."""

from __future__ import annotations

import re
from typing import Any

_NAME = re.compile(r"(?P<library>\w+) \((?P<mode>[^)]*)\): (?P<what>.*)")
Row = dict[str, Any]


def matrix(rows: list[Row], libraries: tuple[str, ...], modes: tuple[str, ...]) -> tuple[str, list[Row]]:
    """Return the table as Markdown, and the rows that are not in it.

    Args:
        rows: as in the result files.
        libraries: whose rows it takes, in the order of the columns.
        modes: likewise.
    """
    columns = [(library, mode) for library in libraries for mode in modes]
    cells: dict[str, dict[tuple[str, str], Row]] = {}
    rest = []
    for row in rows:
        found = _NAME.fullmatch(row["what"])
        if found and (found["library"], found["mode"]) in columns:
            cells.setdefault(found["what"], {})[found["library"], found["mode"]] = row
        else:
            rest.append(row)
    if not cells:
        return "", rest
    lines = ["| ns (× R) | " + " | ".join(f"{library}, {mode}" for library, mode in columns) + " |"]
    lines.append("|---|" + "--:|" * len(columns))
    for what, found_cells in cells.items():
        note = next((row["note"] for row in found_cells.values() if row["note"]), "")
        label = f"`{what}`" + (f" ({note})" if note else "")
        lines.append(
            f"| {label} | " + " | ".join(_cell(found_cells.get(column)) for column in columns) + " |"
        )
    return "\n".join(lines), rest


def _cell(row: Row | None) -> str:
    if row is None:
        return ""
    text = (
        f"{row['value']:,.0f} ({row['ratio']:.2g})"
        if row["ratio"] is not None and row["ratio"] < 10
        else f"{row['value']:,.0f} ({row['ratio']:.0f})"
    )
    if row["budget"] is not None:
        text += f" ≤ {row['budget']:g} {'✓' if row['ok'] else '✗ **missed**'}"
    return text
