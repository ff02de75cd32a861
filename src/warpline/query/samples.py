"""Samples summed by thread and stack: what trees, hotspots and exports of profiles are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from warpline.errors import MissingData, UsageError
from warpline.query.phases import pieces

if TYPE_CHECKING:
    import pyarrow as pa

    from warpline.query.report import Report
    from warpline.query.selection import Selection

KINDS = ("python", "native")


def kind_of(report: Report, asked: str = "auto", *, wall: bool = False) -> str:
    """Return which kind of samples to look at: `native` where there are any (Python frames are among them), else `python`.

    `asked`: `python`, `native` or `auto`; `wall`: of threads that waited, too, which only `python` has. Raises UsageError for what does not
    go together, MissingData where there are none.
    """
    if asked not in ("auto", *KINDS):
        raise UsageError(f"`:kind={asked}` is not known; there are: auto, {', '.join(KINDS)}.")
    if wall and asked == "native":
        raise UsageError("native samples are of running threads only: take `:kind=python` with `:wall`.")
    if not report.tables["samples"]:
        raise MissingData("does not contain CPU sampling data.")
    known = {row["kind"] for row in report.sql("SELECT DISTINCT kind FROM samples").to_pylist()}
    if asked != "auto" and asked not in known:
        raise MissingData(f"does not contain CPU sampling data of the kind {asked}.")
    wanted = asked if asked != "auto" else "python" if wall or "native" not in known else "native"
    if wanted not in known:
        raise MissingData("does not contain CPU sampling data of threads that waited: native samples are of running threads only.")
    return wanted


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
    whole = selection.time is None and selection.nvtx is None
    relation = "samples" if whole else pieces(report, selection, "samples")
    weight, count = ("weight", '"count"') if whole else ("round(weight * part)", 'round("count" * part)')
    text = f"""
    SELECT {columns}, sum({weight})::BIGINT AS weight, sum({count})::BIGINT AS "count"
    FROM {relation} WHERE kind = '{kind}'{ran} GROUP BY ALL ORDER BY ALL
    """
    return report.sql(text)
