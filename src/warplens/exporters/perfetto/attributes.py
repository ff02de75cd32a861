"""Attributes of a trace for data that Perfetto has no field for.

Importing it again gives the same report.

`warplens.report`: the span and the small tables (processes, devices, …), and what the events of a category are. `warplens.tracks`: of
tracks, by uuid, which thread, task, device and stream they show; `warplens.counters`: of tracks of counters, which one. All are JSON;
other readers pass them over.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from warplens.exporters.events import Kind
from warplens.exporters.protobuf import message, text

if TYPE_CHECKING:
    from warplens.report import Report

_PACKET, _ATTRIBUTES = 1, 126
# Each row as it is: they are few, and say what no event does.
_SMALL = (
    "processes",
    "threads",
    "tasks",
    "devices",
    "contexts",
    "streams",
    "targets",
    "capture_windows",
    "nvtx_counters",
    "diagnostics",
)


def report_attributes(report: Report, kinds: Iterable[Kind]) -> bytes:
    """Return the packet that describes the report."""
    first = report.manifests[0]
    told = {
        "origin": report.origin,
        "end": report.end,
        "host": first.host,
        "command": list(first.command),
        "realtime_offset": first.realtime_offset,
        "exit_status": first.exit_status,
        "clock": first.clock,
        "sources": first.sources,
        "kinds": {
            kind.category: {"table": kind.table, "name": None if kind.fixed or kind.called else kind.name}
            for kind in kinds
        },
        "tables": {table: _filled(report.table(table).to_pylist()) for table in _SMALL},
    }
    return _attribute("warplens.report", told)


def track_attributes(tracks: Mapping[int, Mapping[str, Any]]) -> bytes:
    """Return the packet that says what tracks show, by uuid."""
    return _attribute("warplens.tracks", tracks)


def counter_attributes(counters: Mapping[int, Mapping[str, Any]]) -> bytes:
    """Return the packet that says which counters tracks show, by uuid."""
    return _attribute("warplens.counters", counters)


def _filled(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def _attribute(key: str, value: Any) -> bytes:
    return message(
        _PACKET,
        message(_ATTRIBUTES, message(1, text(1, key), text(3, json.dumps(value, separators=(",", ":"))))),
    )
