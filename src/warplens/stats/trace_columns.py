"""The columns that a trace has only where the report has such data: tasks and payloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.report.payloads.carried import Carried, carried
from warplens.report.payloads.text import text
from warplens.stats.traces import system_ids

if TYPE_CHECKING:
    from warplens.report import Report


def task_column(report: Report, rows: pa.Table) -> dict[str, pa.Array]:
    """Return `Task`, the name of each row's task (its library and number where it has none).

    Nothing in a report without tasks.
    """
    if not report.tables["tasks"]:
        return {}
    names = pc.cast(system_ids(report, rows, "tasks", column="name"), pa.string())
    library = pc.cast(system_ids(report, rows, "tasks", column="library"), pa.string())
    numbered = pc.binary_join_element_wise(
        library, pc.cast(rows.column("task"), pa.string()).combine_chunks(), " "
    )
    return {"Task": pc.coalesce(names, numbered)}


def payload_columns(report: Report, rows: pa.Table, kind: str) -> dict[str, pa.Array]:
    """Return `Payload` and, where one came with an end, `EndPayload`, both as text.

    Nothing if no row has one.

    `rows`: id, payload_int and payload_float of ranges or marks.
    """
    begin = pc.coalesce(
        pc.cast(rows.column("payload_int"), pa.string()), _floats(rows.column("payload_float"))
    ).combine_chunks()
    end = pa.nulls(len(rows), pa.string())
    ids = np.asarray(
        pc.fill_null(rows.column("id"), -1).to_numpy(), np.int64
    )  # marks of old reports have none
    texts_of = carried(report, kind, ids, shape=_texts)
    if texts_of:
        places = np.flatnonzero(np.isin(ids, np.fromiter(texts_of, np.int64, len(texts_of))))
        mask = np.zeros(len(ids), bool)
        mask[places] = True
        mine, ending = (
            pa.array(side, pa.string())
            for side in zip(*(texts_of[id] for id in ids[places].tolist()), strict=True)
        )
        begin = pc.replace_with_mask(begin, mask, pc.coalesce(mine, begin.take(pa.array(places))))
        end = pc.replace_with_mask(end, mask, ending)
    columns = {"Payload": begin, "EndPayload": end}
    return {name: column for name, column in columns.items() if column.null_count < len(column)}


def _texts(event: Carried) -> tuple[str | None, str | None]:
    """The payloads of an event and of its end; `…` marks a cut payload."""
    more = "…" if event.cut else ""
    begin, end = (" ".join(map(text, side)) + more if side else None for side in (event.begin, event.end))
    return begin, end


def _floats(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.null_count == len(column):
        return pc.cast(column, pa.string())
    return pa.chunked_array(
        [pa.array([None if value is None else text(value) for value in column.to_pylist()], pa.string())]
    )
