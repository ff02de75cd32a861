"""Samples summed by thread and stack: what trees, hotspots and exports of profiles are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpline.query.gpu_ops import during

if TYPE_CHECKING:
    import pyarrow as pa

    from warpline.query.report import Report
    from warpline.query.selection import Selection

KINDS = ("python", "native")


def kind_of(report: Report) -> str | None:
    """Return the kind of samples to look at where none is asked for: `native` (Python frames are among them), else `python`; None: none."""
    found = {row["kind"] for row in report.sql("SELECT DISTINCT kind FROM samples").to_pylist()} if report.tables["samples"] else set()
    return "native" if "native" in found else "python" if "python" in found else None


def sampled(
    report: Report, selection: Selection, *, kind: str = "python", wall: bool = False, per: Sequence[str] = ("process", "thread")
) -> pa.Table:
    """Return the columns of `per` and `stack` with `weight` (ns) and `count` (samples) of each combination; no rows where there is none.

    Args:
        report: the report.
        selection: which part of it; of samples that reach over its edge, their share.
        kind: `python` or `native`. Both may have seen the same moment: never add them up.
        wall: also samples of threads that waited (native ones are of running threads only).
        per: columns of `samples` to keep apart.
    """
    columns = ", ".join(f'"{name}"' for name in (*per, "stack"))
    ran = "" if wall or kind == "native" else " AND on_cpu"
    text = f"""
    SELECT {columns}, sum(weight)::BIGINT AS weight, sum("count")::BIGINT AS "count"
    FROM samples WHERE kind = $kind{ran} AND {during(report, selection)} GROUP BY ALL ORDER BY ALL
    """
    return report.sql(text, {"kind": kind})
