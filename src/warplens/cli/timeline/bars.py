"""Joins the columns of a lane into bars."""

from __future__ import annotations

from typing import Any

from warplens.cli.timeline.model import Bar

# A range of so few columns has no room for its name: neighbours of one name are drawn together.
_SMALL = 2


def bars_of(rows: list[dict[str, Any]]) -> list[Bar]:
    """Join neighbouring columns: first those of one range, then small ranges of one name."""
    single: list[list[dict[str, Any]]] = []
    for row in rows:
        last = single[-1][-1] if single else None
        if (
            last is not None
            and row["col"] == last["col"] + 1
            and not _many(row)
            and not _many(last)
            and row["top"]["id"] == last["top"]["id"]
        ):
            single[-1].append(row)
        else:
            single.append([row])
    runs: list[list[list[dict[str, Any]]]] = []
    for columns in single:
        last_run = runs[-1][-1] if runs else None
        joins = (
            last_run is not None
            and columns[0]["col"] == last_run[-1]["col"] + 1
            and _name(columns) == _name(last_run)
        )
        if joins and _small(columns) and last_run is not None and _small(last_run):
            runs[-1].append(columns)
        else:
            runs.append([columns])
    return [
        _bar([row for columns in run for row in columns], len(run) > 1 or _many(run[0][0])) for run in runs
    ]


def _bar(rows: list[dict[str, Any]], many: bool) -> Bar:
    top = rows[0]["top"]
    number = max(sum(row["top"]["begun"] for row in rows), 1) if many else 1
    unfinished = any(row["top"]["unfinished"] for row in rows)
    busy = tuple(row["busy"] for row in rows)
    return Bar(
        rows[0]["col"],
        rows[-1]["col"],
        top["message"] or "",
        domain=top["domain"],
        color=top["color"],
        many=many,
        number=number,
        busy=busy,
        unfinished=unfinished,
    )


def _many(row: dict[str, Any]) -> bool:
    # Up to two ranges meet in a column at the edge between them; more are small ones.
    return bool(row["number"] > 2)


def _small(columns: list[dict[str, Any]]) -> bool:
    return len(columns) <= _SMALL


def _name(columns: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    return columns[0]["top"]["message"], columns[0]["top"]["domain"]
