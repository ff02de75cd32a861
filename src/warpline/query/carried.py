"""What events carry: the payloads of ranges, marks and samples, by event, as Python values and as short text."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

if TYPE_CHECKING:
    from warpline.query.report import Report

_ITEMS = 24  # of an array or structure that a text shows
_BYTES = 32
_ROWS = """
SELECT event, at_end, cut, schema, type, data, json FROM payloads
WHERE event_type = $kind AND event BETWEEN $low AND $high ORDER BY event, at_end
"""


@dataclass(frozen=True)
class Carried:
    """The payloads of one event: given with it, and given when it ended. `cut`: one of them was longer in truth."""

    begin: list[Any] = field(default_factory=list)
    end: list[Any] = field(default_factory=list)
    cut: bool = False


def carried(report: Report, kind: str, ids: npt.NDArray[np.int64]) -> dict[int, Carried]:
    """Return what the events `ids` of one kind (`range`, `mark`, `sample`) carry; those without a payload are left out."""
    if not len(ids) or not report.tables["payloads"]:
        return {}
    rows = report.sql(_ROWS, {"kind": kind, "low": int(ids.min()), "high": int(ids.max())})
    rows = rows.filter(pa.array(np.isin(rows.column("event").to_numpy(), ids)))
    found: dict[int, Carried] = {}
    for row, value in zip(rows.to_pylist(), _values(report, rows), strict=True):
        known = found.get(row["event"], Carried())
        side = known.end if row["at_end"] else known.begin
        side.append(value)
        found[row["event"]] = Carried(known.begin, known.end, known.cut or row["cut"])
    return found


def text(value: Any) -> str:
    """Write a payload for reading: `{batch: 3, loss: 0.25}`, `[1, 2, 3]`, `0x0a0b`; long ones say how much is left out."""
    if isinstance(value, str):
        return value
    return _text(value)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + _some([f"{key}: {_text(item)}" for key, item in list(value.items())[:_ITEMS]], len(value)) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + _some([_text(item) for item in value[:_ITEMS]], len(value)) + "]"
    if isinstance(value, (bytes, bytearray, memoryview)):
        raw = bytes(value)
        return f"0x{raw[:_BYTES].hex()}" + (f"… ({len(raw)} bytes)" if len(raw) > _BYTES else "")
    if isinstance(value, float):
        return f"{value:.12g}"
    return json.dumps(value, ensure_ascii=False) if isinstance(value, (str, bool, type(None))) else str(value)


def _some(items: list[str], number: int) -> str:
    return ", ".join([*items, *([f"… {number - len(items)} more"] if number > len(items) else [])])


def _values(report: Report, rows: pa.Table) -> list[Any]:
    """Decode payloads; what cannot be decoded is its bytes."""
    return [_json(row["json"]) if row["json"] is not None else row["data"] for row in rows.select(["json", "data"]).to_pylist()]


def _json(given: str) -> Any:
    try:
        return json.loads(given)
    except ValueError:  # cut, or no JSON at all
        return given
