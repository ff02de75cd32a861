"""All events of one name: how many there are, how long they take, and which took longest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.tables import TABLES
from warplens.viewer.answers.event_address import by_id, id_of, located
from warplens.viewer.answers.naming import name_column, table_of
from warplens.viewer.answers.plain import cut
from warplens.viewer.answers.projecting import LAYER

if TYPE_CHECKING:
    from warplens.viewer.answers.loaded_report import Opened

_BINS = 48
_LONGEST = 20
_MOST = 20_000  # events that are taken from the timeline


def alike(opened: Opened, layer: str, process: int, row: int) -> dict[str, Any]:
    """Return `Alike` of an event. Raises MissingData if there is none."""
    id_, table = id_of(process, row), table_of(layer)
    column = name_column(table)
    if column is None or layer == LAYER:
        return _on_timeline(opened, layer, id_)
    with opened.asking() as report:
        beside = ["domain"] if any(one.name == "domain" for one in TABLES[table].columns) else []
        same = " AND ".join(f"t.{name} IS NOT DISTINCT FROM o.{name}" for name in (column, *beside))
        named = report.sql(f"SELECT {column} AS name FROM {table} WHERE id = $id", {"id": id_}).to_pylist()
        if not named:
            raise MissingData(f"{table} has no row {row} of process {process}")
        end = '"end"' if "end" in TABLES[table].edges else '"start"'
        rows = report.sql(
            f'SELECT t.id, t."start", t.{end} - t."start" AS length FROM {table} t, (SELECT * FROM {table} WHERE id = $id) o WHERE {same}',
            {"id": id_},
        )
    lengths = np.asarray(rows.column("length").to_numpy(), np.int64)
    longest = np.argsort(-lengths, kind="stable")[:_LONGEST]
    taken = rows.take(longest).to_pylist()
    places = [by_id(opened, layer, one["id"], start=one["start"]) for one in taken]
    return _answer(named[0]["name"] or "", lengths, [place for place in places if place is not None])


def _on_timeline(opened: Opened, table: str, id_: int) -> dict[str, Any]:
    """Of events whose name is in no column: as the timeline has them."""
    lanes = opened.every_lane
    own = lanes.located(table, id_)
    if own is None:
        raise MissingData("the event is on no track of the timeline")
    hits = lanes.named(own, _MOST)
    lengths = np.array([hit.duration for hit in hits], np.int64)
    longest = sorted(hits, key=lambda hit: -hit.duration)[:_LONGEST]
    return _answer(own.name, lengths, [located(opened, hit) for hit in longest])


def _answer(name: str, lengths: Int64Array, longest: list[dict[str, Any]]) -> dict[str, Any]:
    median, p99 = np.percentile(lengths, (50, 99)).tolist()
    edges = _edges(int(lengths.min()), int(lengths.max()))
    counts, _ = np.histogram(lengths, edges)
    return {
        "name": cut(name),
        "count": len(lengths),
        "total": int(lengths.sum()),
        "minimum": int(lengths.min()),
        "median": median,
        "p99": p99,
        "maximum": int(lengths.max()),
        "edges": edges.tolist(),
        "counts": counts.tolist(),
        "longest": longest,
    }


def _edges(least: int, most: int) -> npt.NDArray[np.float64]:
    """Return the edges of the bins.

    Of equal width, or of equal ratio where lengths differ by more than a factor of 50.
    """
    if least > 0 and most / least > 50:
        return np.geomspace(least, most + 1, _BINS + 1)
    return np.linspace(least, most + 1, min(_BINS, most - least + 1) + 1)
