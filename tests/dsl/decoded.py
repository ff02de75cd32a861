"""What a buffer holds, as plain values: for programs that run beside a test and tell it what they recorded."""

from __future__ import annotations

from typing import Any


def told(buffer: Any) -> dict[str, Any]:
    """Decode a buffer. Units as [cta, warp, ended, events, dropped], events as [cta, tag, flags, payload or None, start, end]."""
    found = buffer.decode()
    ctas = found.units["cta"].tolist()
    return {
        "units": [
            [unit["cta"], unit["warp"], unit["ended"], unit["events"], unit["dropped"]]
            for unit in _rows(found.units)
        ],
        "spans": [[unit["start"], unit["end"]] for unit in _rows(found.units)],
        "events": [
            [
                ctas[event["unit"]],
                buffer.tags.label(event["tag"]),
                event["flags"],
                event["payload"] if event["flags"] & 8 else None,
                event["start"],
                event["end"],
            ]
            for event in _rows(found.events)
        ],
        "unit_of": found.events["unit"].tolist(),
        "dropped": found.dropped,
        "lost": found.units_lost,
        "garbled": found.garbled,
        "needed": found.needed_slots,
        "generation": found.generation,
    }


def _rows(table: Any) -> list[dict[str, Any]]:
    return [dict(zip(table.dtype.names, row, strict=True)) for row in table.tolist()]
