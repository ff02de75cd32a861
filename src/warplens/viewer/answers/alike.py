"""All events of one name: how many there are, how long they take, and which took longest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.tables import TABLES
from warplens.viewer.answers.event_address import by_id, id_of, located
from warplens.viewer.answers.naming import name_column, table_of
from warplens.viewer.answers.plain import cut
from warplens.viewer.answers.projecting import LAYER

if TYPE_CHECKING:
    from warplens.report.report import Report
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
    events = opened.named.get(table)
    if events is None:
        with opened.asking() as report:
            events = EventsByName.of(report, table, column, like=id_)
    name, mine = events.like(id_)
    if not len(mine):
        raise MissingData(f"{table} has no row {row} of process {process}")
    lengths = events.length[mine]
    longest = mine[np.argsort(-lengths, kind="stable")[:_LONGEST]]
    places = [
        by_id(opened, layer, int(events.id[one]), start=int(events.start[one])) for one in longest.tolist()
    ]
    return _answer(name, lengths, [place for place in places if place is not None])


def read_ahead(opened: Opened, layers: Iterable[str]) -> None:
    """Read the events of layers of which `alike` will be asked for many names."""
    with opened.asking() as report:
        for layer in set(layers) - {LAYER}:
            column = name_column(table_of(layer))
            if column is not None:
                opened.named[table_of(layer)] = EventsByName.of(report, table_of(layer), column)


@dataclass(frozen=True)
class EventsByName:
    """Events of a table: id, start and length (ns) of each, and a number that those of one name and domain share.

    `names`: by those numbers; `order`, `first`: the events by number.
    """

    id: Int64Array
    start: Int64Array
    length: Int64Array
    group: Int64Array
    names: list[str]
    order: Int64Array
    first: Int64Array

    @classmethod
    def of(cls, report: Report, table: str, column: str, *, like: int | None = None) -> EventsByName:
        """Read all events, or those that have the name of one."""
        beside = ["domain"] if any(one.name == "domain" for one in TABLES[table].columns) else []
        end = '"end"' if "end" in TABLES[table].edges else '"start"'
        texts = [f"t.{name}" for name in (column, *beside)]
        of, wanted, values = f"dense_rank() OVER (ORDER BY {', '.join(texts)}) - 1", "", {}
        if like is not None:
            same = " AND ".join(f"{text} IS NOT DISTINCT FROM o.{text[2:]}" for text in texts)
            of, values = "0", {"id": like}
            wanted = f", (SELECT * FROM {table} WHERE id = $id) o WHERE {same}"
        rows = report.sql(
            f"""SELECT t.id, t."start", t.{end} - t."start" AS length, {of} AS number, {texts[0]} AS name
                FROM {table} t{wanted} ORDER BY t.id""",
            values,
        )
        id_, start, length, group = (
            np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("id", "start", "length", "number")
        )
        order = np.argsort(group, kind="stable")
        first = np.searchsorted(group[order], np.arange(int(group.max(initial=-1)) + 2))
        names = rows.column("name").take(pa.array(order[first[:-1]])).to_pylist()
        return cls(
            id_, start, length, group=group, names=[name or "" for name in names], order=order, first=first
        )

    def like(self, id_: int) -> tuple[str, Int64Array]:
        """Return the name of an event, and the positions of those of its name; none where it is not there."""
        place = int(np.searchsorted(self.id, id_))
        if place == len(self.id) or self.id[place] != id_:
            return "", np.empty(0, np.int64)
        group = int(self.group[place])
        return self.names[group], self.order[self.first[group] : self.first[group + 1]]


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
