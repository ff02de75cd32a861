"""The details of one event.

All of its row, its payload and stack, the ranges around it, and its relatives on other tracks.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any

from warplens.errors import MissingData
from warplens.model.tables import TABLES
from warplens.viewer import limits
from warplens.viewer.answers.event_address import by_id, id_of, located
from warplens.viewer.answers.naming import name_column, table_of
from warplens.viewer.answers.plain import cut, plain, tree
from warplens.viewer.answers.projecting import LAYER

if TYPE_CHECKING:
    from warplens.model.table import Table
    from warplens.report.report import Report
    from warplens.viewer.answers.loaded_report import Opened

_HIDDEN = frozenset(
    (
        "id",
        "process",
        "thread",
        "end_thread",
        "parent",
        "range",
        "stack",
        "api",
        "task",
        "start",
        "end",
        "depth",
        "launch",
        "unit",
        "kernel",
    )
)
_WORK = ("kernels", "memcpys", "memsets", "graphs", "syncs", "cuda_events")
_RELATIONS = {
    "kernels": "kernel",
    "memcpys": "copy",
    "memsets": "memset",
    "graphs": "graph",
    "syncs": "wait",
    "cuda_events": "event",
}
_EVENT_TYPES = {"nvtx_ranges": "range", "nvtx_marks": "mark"}
_KEYS = {"ops": "range"}  # what the key of a table is called, where not `id`
_INSIDE = frozenset(("intrakernel_units", "intrakernel_events"))  # of launches that timed themselves
_MOST_LINKS = 64
_MOST_PARENTS = 128


def event(opened: Opened, table: str, process: int, row: int) -> dict[str, Any]:
    """Return `EventDetails`. Raises MissingData if there is no such event."""
    source = table_of(table)
    if source not in TABLES:
        raise MissingData(f"there is no table {table!r}")
    id_ = id_of(process, row)
    with opened.asking() as report:
        return _Details(opened, report, table, table=TABLES[source], id_=id_).as_json()


def read_ahead(opened: Opened, events: Iterable[tuple[str, int, int]]) -> None:
    """Read the rows of events that `event` will be asked for, with one question for each table: table, process and row of each."""
    wanted: dict[str, list[int]] = {}
    for layer, process, row in events:
        if (source := table_of(layer)) in TABLES:
            wanted.setdefault(source, []).append(id_of(process, row))
    with opened.asking() as report:
        for source, ids in wanted.items():
            key = _KEYS.get(source, "id")
            rows = report.sql(f"SELECT * FROM {source} WHERE {key} IN (SELECT unnest($ids))", {"ids": ids})
            opened.rows |= {(source, values[key]): values for values in rows.to_pylist()}


class _Details:
    def __init__(self, opened: Opened, report: Report, layer: str, table: Table, id_: int) -> None:
        self._opened, self._report, self._layer, self._table, self._id = opened, report, layer, table, id_
        values = self._row(table, id_)
        if values is None:
            raise MissingData(f"{table.name} has no row {id_ & 0xFFFFFFFF} of process {id_ >> 32}")
        self._values = values
        # On the GPU a range begins when its first operation does.
        self._begin: int | None = None if layer == LAYER else values.get("start")

    def as_json(self) -> dict[str, Any]:
        place = by_id(self._opened, self._layer, self._id, start=self._begin)
        if place is None:
            raise MissingData(f"the event is on no track of the timeline: {self._table.name} {self._id}")
        column = name_column(self._table.name)
        name = (self._values.get(column) if column else None) or place["name"]  # of a sample: what ran
        return {
            "event": place,
            "title": cut(str(name), limits.TEXT),
            "fields": self._fields(),
            "payload": self._payload(),
            "stack": self._stack(),
            "links": self._links(),
            "parents": self._parents(),
        }

    def _row(self, table: Table, id_: int) -> dict[str, Any] | None:
        if (known := self._opened.rows.get((table.name, id_))) is not None:
            return known
        rows = self._report.sql(
            f"SELECT * FROM {table.name} WHERE {_KEYS.get(table.name, 'id')} = $id LIMIT 1", {"id": id_}
        ).to_pylist()
        return rows[0] if rows else None

    def _fields(self) -> list[dict[str, Any]]:
        entities = self._opened.entities
        fields: list[dict[str, Any]] = []
        start, end = self._values.get("start"), self._values.get("end")
        if start is not None:
            fields.append({"name": "start", "value": start - self._opened.origin, "unit": "ns"})
        if start is not None and end is not None:
            fields.append({"name": "duration", "value": end - start, "unit": "ns"})
        process = self._values.get("process")
        if process is not None:
            fields.append(
                {"name": "process", "value": ", ".join(filter(None, entities.process_name(process)))}
            )
        threads = {
            name: self._values[name]
            for name in ("thread", "end_thread")
            if self._values.get(name) is not None
        }
        fields += [
            {"name": name, "value": ", ".join(filter(None, entities.thread_name(key)))}
            for name, key in threads.items()
        ]
        task = self._values.get("task")
        if isinstance(task, int):  # a key; of samples it is a name
            fields.append({"name": "task", "value": entities.task_name(task)[0]})
        for column in self._table.columns:
            value = self._values.get(column.name)
            if value is None or (column.name in _HIDDEN and column.type != "dict"):
                continue
            field: dict[str, Any] = {"name": column.name, "value": plain(value, limits.TEXT)}
            if column.clock:
                field["value"] = value - self._opened.origin
            if column.unit:
                field["unit"] = column.unit
            if column.name in ("color", "address") or column.type == "uint64":
                field["value"] = hex(value)
            fields.append(field)
        fields += self._around()
        bytes_, length = self._values.get("bytes"), (end or 0) - (start or 0)
        if bytes_ and length > 0 and self._table.name in ("memcpys", "memsets"):
            fields.append({"name": "throughput", "value": bytes_ / length * 1e9, "unit": "bytes/s"})
        return fields

    def _payload(self) -> Any:
        kind = _EVENT_TYPES.get(self._table.name)
        if kind is None or not self._report.tables["payloads"]:
            return None
        from warplens.report.payloads.tables import decoded
        from warplens.report.payloads.tables import plain as unwrapped

        rows = self._report.sql(
            "SELECT schema, type, data, json FROM payloads WHERE event = $id AND event_type = $kind LIMIT 8",
            {"id": self._id, "kind": kind},
        )
        values = [tree(unwrapped(value)) for value in decoded(self._report, rows)]
        return None if not values else values[0] if len(values) == 1 else values

    def _stack(self) -> list[dict[str, Any]]:
        stack = self._values.get("stack")
        if stack is None:
            return []
        import pyarrow as pa

        frames = self._opened.frames
        path = frames.path(int(frames.positions(pa.array([stack], pa.int64()))[0]))
        return [
            {
                "function": cut(one.function),
                "module": cut(one.module or ""),
                "file": cut(one.file or ""),
                "line": one.line,
            }
            for one in reversed(path[-512:])
        ]

    def _links(self) -> list[dict[str, Any]]:
        """Launch, work and waits of one API call; the range that it was made in.

        What a collective is.
        """
        values, name = self._values, self._table.name
        related: list[tuple[str, str, int | None, int | None]] = []
        api = self._id if name == "cuda_api" else values.get("api")
        if api is not None and name != "cuda_api":
            related.append(("launch", "cuda_api", api, None))
        if api is not None:
            for work in _WORK:
                if self._report.tables[work]:
                    related += [
                        (_RELATIONS[work], work, one, start)
                        for one, start in self._of_call(work, api)
                        if one != self._id or work != name
                    ]
        if name == "nvtx_ranges":
            related += self._of_range()
        range_ = self._range
        if range_ is not None and name != "ops":
            related.append(("nvtx", "nvtx_ranges", range_, None))
        launched = self._launched
        if launched is not None:
            related.append(("inside", "intrakernel_launches", launched["id"], launched["start"]))
        kernel = values.get("kernel") if launched is None else launched["kernel"]
        if kernel is not None:
            related.append(("kernel", "kernels", kernel, None))
        if name == "kernels" and self._report.tables["intrakernel_launches"]:
            rows = self._report.sql(
                'SELECT id, "start" FROM intrakernel_launches WHERE kernel = $id LIMIT 4', {"id": self._id}
            ).to_pylist()
            related += [("inside", "intrakernel_launches", row["id"], row["start"]) for row in rows]
        if name == "kernels" and self._report.tables["collectives"]:
            rows = self._report.sql(
                "SELECT id FROM collectives WHERE kernel = $id LIMIT 1", {"id": self._id}
            ).to_pylist()
            related += [("collective", "collectives", row["id"], None) for row in rows]
        links = []
        once = {
            (table, id_): (relation, table, id_, start) for relation, table, id_, start in reversed(related)
        }
        for relation, table, id_, start in list(reversed(once.values()))[:_MOST_LINKS]:
            place = by_id(self._opened, table, id_, start=start)
            if place is not None:
                links.append({**place, "relation": relation})
        return links

    @cached_property
    def _launched(self) -> dict[str, Any] | None:
        """The launch whose inside it is."""
        return (
            self._row(TABLES["intrakernel_launches"], self._values["launch"])
            if self._table.name in _INSIDE
            else None
        )

    def _around(self) -> list[dict[str, Any]]:
        """Say of a region or mark inside a kernel where it ran, and how exact its times are."""
        if self._launched is None:
            return []
        unit = (
            self._values
            if self._table.name == "intrakernel_units"
            else self._row(TABLES["intrakernel_units"], self._values["unit"])
        )
        told = (
            []
            if unit is self._values or unit is None
            else [{"name": name, "value": unit[name]} for name in ("cta", "warp", "sm")]
        )
        off = self._launched["uncertainty"]
        return [
            *told,
            {"name": "launch", "value": cut(str(self._launched["name"]), limits.CELL)},
            *([] if off is None else [{"name": "uncertainty", "value": off, "unit": "ns"}]),
        ]

    @cached_property
    def _range(self) -> int | None:
        """The innermost range that it, or the call that launched it, began in."""
        range_id: int | None = self._values.get("range")
        if range_id is None and isinstance(
            self._values.get("api"), int
        ):  # of a call itself, `api` says runtime or driver
            range_id = (self._row(TABLES["cuda_api"], self._values["api"]) or {}).get("range")
        return range_id

    def _of_call(self, table: str, api: int) -> list[tuple[int, int]]:
        rows = self._report.sql(
            f'SELECT id, "start" FROM {table} WHERE api = $api ORDER BY "start" LIMIT 16', {"api": api}
        ).to_pylist()
        return [(row["id"], row["start"]) for row in rows]

    def _of_range(self) -> list[tuple[str, str, int | None, int | None]]:
        """The first pieces of GPU work that were launched in a range itself, and its place on the GPU."""
        inside: list[tuple[str, str, int | None, int | None]] = []
        if self._layer != LAYER:
            inside.append(("gpu", LAYER, self._id, None))
        else:
            inside.append(("nvtx", "nvtx_ranges", self._id, self._values["start"]))
        if not self._report.tables["cuda_api"]:
            return inside
        for table in ("kernels", "memcpys", "graphs"):
            if self._report.tables[table]:
                rows = self._report.sql(
                    f'SELECT k.id, k."start" FROM {table} k JOIN cuda_api a ON k.api = a.id WHERE a."range" = $id ORDER BY 2 LIMIT 16',
                    {"id": self._id},
                ).to_pylist()
                inside += [(_RELATIONS[table], table, row["id"], row["start"]) for row in rows]
        return inside

    def _parents(self) -> list[dict[str, Any]]:
        """The ranges around it, the outermost first.

        Of its table if that nests, else the NVTX ranges around it.
        """
        lanes = self._opened.every_lane
        if self._launched is not None:
            return self._regions_around(self._launched)
        nests = any(column.name == "parent" for column in self._table.columns)
        inner = lanes.located(self._layer, self._id, self._begin)
        if not nests:
            range_ = self._range
            inner = None if range_ is None else lanes.located("nvtx_ranges", range_)
        if inner is None:
            return []
        around = [
            outer
            for depth in range(min(inner.depth, _MOST_PARENTS))
            if (outer := lanes.at(inner.lane, depth, inner.start))
        ]
        end = inner.start + inner.duration
        kept = [
            outer for outer in around if outer.start <= inner.start and end <= outer.start + outer.duration
        ]
        return [located(self._opened, outer) for outer in [*kept, *(() if nests else (inner,))]]

    def _regions_around(self, launch: dict[str, Any]) -> list[dict[str, Any]]:
        """The launch, and the regions of the warp around an event of it."""
        places = [by_id(self._opened, "intrakernel_launches", launch["id"], start=launch["start"])]
        if self._table.name == "intrakernel_events":
            rows = self._report.sql(
                """SELECT id, "start" FROM intrakernel_events WHERE launch = $launch AND unit = $unit
                   AND "start" <= $start AND "end" >= $end AND kind <> 'mark' AND id <> $id ORDER BY "start", "end" DESC LIMIT 128""",
                {name: self._values[name] for name in ("launch", "unit", "start", "end", "id")},
            )
            places += [
                by_id(self._opened, "intrakernel_events", row["id"], start=row["start"])
                for row in rows.to_pylist()
            ]
        return [place for place in places if place is not None]
