"""What events carry: the payloads of ranges, marks and samples, by event, as Python values."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warpline.query.payload_text import text
from warpline.query.payloads import decoded

if TYPE_CHECKING:
    from warpline.query.report import Report

__all__ = ["Carried", "carried", "text"]

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
    for row, value in zip(rows.to_pylist(), decoded(report, rows), strict=True):
        known = found.get(row["event"], Carried())
        side = known.end if row["at_end"] else known.begin
        side.append(value)
        found[row["event"]] = Carried(known.begin, known.end, known.cut or row["cut"])
    return found
