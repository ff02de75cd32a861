"""NCCL's calls with their arguments.

NCCL annotates itself, and its payloads hold sizes, partners and operations.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import during
from warplens.arrays import Int64Array
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

DOMAIN = "NCCL"
# What NCCL calls the fields of its payloads -> what they are called here.
_FIELDS = {
    "nccl communicator id": "communicator",
    "message size [bytes]": "bytes",
    "reduction operation": "operation",
    "root": "root",
    "peer rank": "peer",
    "rank": "rank",
    "no. of ranks": "ranks",
    "cuda device": "device",
}
_TYPES = {
    name: pa.string() if name == "operation" else pa.uint64() if name == "communicator" else pa.int64()
    for name in _FIELDS.values()
}
_PAYLOADS = pa.schema([("event", pa.int64()), *_TYPES.items()])
_IN_DOMAIN = f"SELECT id FROM nvtx_ranges WHERE domain = '{DOMAIN}'"


def calls(report: Report, selection: Selection) -> pa.Table:
    """Return NCCL's calls that overlap the selection, in order of time, which is that of the host.

    Columns: id, process, thread, start, end, name, and those of the payloads, each null if NCCL does not say: communicator, bytes,
    operation (how values are reduced), root, peer, and of the communicator, as far as its making was recorded: rank, ranks, device.
    MissingData if there are none.
    """
    rows = report.sql(
        f"""SELECT id, process, thread, "start", "end", message AS name FROM nvtx_ranges
            WHERE domain = '{DOMAIN}' AND {during(report, selection)} ORDER BY "start", id"""
    )
    if not rows.num_rows:
        raise MissingData(
            f"does not contain NCCL data{selection.place(report)}. Record it with -t cuda,nvtx,nccl."
        )
    payloads = _payloads(report)
    payload_row = _matched(payloads, rows.column("id").to_numpy())
    for name in _TYPES:
        rows = rows.append_column(name, payloads.column(name).take(payload_row))
    return _with_communicators(report, rows, payloads)


def _payloads(report: Report) -> pa.Table:
    """Payloads of NCCL's ranges, sorted by event; the first payload of each event."""
    kinds = (
        report.sql(
            f"SELECT DISTINCT type FROM payloads WHERE event_type = 'range' AND event IN ({_IN_DOMAIN})"
        )
        .column(0)
        .to_pylist()
    )
    parts = [_columns(report.payloads(kind)) for kind in kinds]
    whole = pa.concat_tables(parts) if parts else _PAYLOADS.empty_table()
    events, first = np.unique(whole.column("event").to_numpy(), return_index=True)
    ours = np.isin(
        events, report.sql(_IN_DOMAIN).column(0).to_numpy()
    )  # others may have structures of the same name
    return whole.take(pa.array(first[ours]))


def _columns(table: pa.Table) -> pa.Table:
    """The payloads of one type: the fields that are NCCL's, in columns of our types."""
    table = table.filter(pc.equal(table.column("event_type"), "range"))
    given: dict[str, Any] = {}
    if "json" in table.column_names:
        texts = [_json(text) for text in table.column("json").to_pylist()]
        names = {name for text in texts for name in text if isinstance(name, str)}
        given = {name: pa.array([_plain(text.get(name)) for text in texts], pa.string()) for name in names}
    columns = {
        name.lower(): column
        for name, column in [*zip(table.column_names, table.columns, strict=True), *given.items()]
    }
    known = {
        ours: _cast(columns[theirs], _TYPES[ours]) for theirs, ours in _FIELDS.items() if theirs in columns
    }
    nothing = {name: pa.nulls(table.num_rows, kind) for name, kind in _TYPES.items() if name not in known}
    return (
        pa.table({"event": table.column("event"), **known, **nothing}).select(_PAYLOADS.names).cast(_PAYLOADS)
    )


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of a type; null if it is another altogether."""
    try:
        return column.cast(kind, safe=False)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return pa.nulls(len(column), kind)


def _json(text: str | None) -> dict[str, Any]:
    try:
        value = json.loads(text or "")
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _plain(value: Any) -> str | None:
    return str(value) if isinstance(value, (str, int)) and not isinstance(value, bool) else None


def _matched(payloads: pa.Table, ids: Int64Array) -> pa.Array:
    """For each id the row of its payload, null if it has none."""
    events = payloads.column("event").to_numpy()
    places = np.searchsorted(events, ids)
    there = places < len(events)
    there[there] = events[places[there]] == ids[there]
    return pa.array(places, mask=~there)


def _with_communicators(report: Report, rows: pa.Table, payloads: pa.Table) -> pa.Table:
    """Add to each call the facts of its communicator, which NCCL reports where the communicator is made."""
    made = payloads.filter(
        pc.and_(pc.is_valid(payloads.column("communicator")), pc.is_valid(payloads.column("ranks")))
    )
    if not made.num_rows:
        return rows
    events = ", ".join(map(str, made.column("event").to_pylist()))
    makers = {
        row["id"]: row["process"]
        for row in report.sql(f"SELECT id, process FROM nvtx_ranges WHERE id IN ({events})").to_pylist()
    }
    known = {(makers.get(row["event"]), row["communicator"]): row for row in made.to_pylist()}
    process = rows.column("process").to_numpy()
    number = pc.fill_null(rows.column("communicator"), 0).to_numpy()
    places = np.full(rows.num_rows, -1, np.int64)
    for place, (of, communicator) in enumerate(known):
        places[(process == of) & (number == communicator)] = place
    nowhere = pa.array(places, mask=places < 0)
    for name in ("rank", "ranks", "device"):
        column = pa.array([row[name] for row in known.values()], _TYPES[name]).take(nowhere)
        rows = rows.set_column(rows.column_names.index(name), name, pc.coalesce(rows.column(name), column))
    return rows
