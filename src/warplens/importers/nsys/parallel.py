"""Calls of MPI, OpenMP and OpenACC: the tables `mpi_events`, `openmp_events` and `openacc_events`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from warplens.arrays import BoolArray
from warplens.importers.nsys.calls import enclosing
from warplens.importers.nsys.memory import write_sorted
from warplens.importers.nsys.names import distinct_values, encoded
from warplens.importers.nsys.ranges import NsysRanges
from warplens.importers.nsys.taken import NsysContext, NsysEvents

_MPI = {
    "MPI_P2P_EVENTS": "p2p",
    "MPI_COLLECTIVES_EVENTS": "collective",
    "MPI_START_WAIT_EVENTS": "wait",
    "MPI_OTHER_EVENTS": "other",
}
_MPI_NUMBERS = ("commHandle", "commUid", "tag", "remoteRank", "rootRank", "size", "recvSize")
_OPENMP, _OPENACC = "OPENMP_EVENT_KIND_", "CUPTI_ACTIVITY_KIND_OPENACC_"
_MOST = (1 << 31) - 1


def mpi(context: NsysContext, ranges: NsysRanges) -> None:
    """Write `mpi_events`."""
    ranks = context.identity.ranks
    pieces = []
    for table, kind in _MPI.items():
        rows = context.read(table, ["start", "globalTid", "end", *_MPI_NUMBERS, "textId"])
        events = NsysEvents.sorted(context, rows, "globalTid", table=table)
        rows = events.rows
        thread = context.identity.thread(rows.ints("globalTid"))
        around = enclosing(ranges, thread, events.start)
        owners = rows.ints("globalTid") & ~0xFFFFFF
        pieces.append(
            {
                "process": events.process,
                "thread": thread,
                "start": events.start,
                "end": events.end,
                "name": encoded(context.database, rows.ints("textId"), np.ones(len(rows), bool)),
                "kind": _constant(kind, len(rows)),
                "communicator": events.optional("commUid" if rows.valid("commUid").any() else "commHandle"),
                "rank": pa.array([ranks.get(owner) for owner in owners.tolist()], pa.int32()),
                "peer": _small(events, "remoteRank"),
                "root": _small(events, "rootRank"),
                "tag": _small(events, "tag"),
                "bytes": events.optional("size") if kind == "p2p" else None,
                "sent": events.optional("size") if kind == "collective" else None,
                "received": events.optional("recvSize"),
                "range": pa.array(around, pa.int64(), mask=around < 0),
            }
        )
    context.tally.used.add("MPI_COMMUNICATORS")
    write_sorted(
        context,
        "mpi_events",
        [{name: column for name, column in piece.items() if column is not None} for piece in pieces],
    )


def openmp(context: NsysContext) -> None:
    """Write `openmp_events`: a kind for each table."""
    pieces = []
    for table in sorted(table for table in context.database.tables if table.startswith(_OPENMP)):
        events = NsysEvents.sorted(
            context, context.read(table, ["start", "end", "globalTid", "nameId"]), "globalTid", table=table
        )
        kind = table.removeprefix(_OPENMP).replace("_", " ").lower()
        pieces.append(
            _piece(
                context,
                events,
                kind,
                names=encoded(context.database, events.rows.ints("nameId"), events.rows.valid("nameId")),
            )
        )
    if pieces:
        write_sorted(context, "openmp_events", pieces)


def openacc(context: NsysContext) -> None:
    """Write `openacc_events`; the name tells the place in the source where that is known."""
    pieces = []
    for table in sorted(table for table in context.database.tables if table.startswith(_OPENACC)):
        rows = context.read(table, ["start", "end", "globalTid", "nameId", "lineNo", "srcFile"])
        events = NsysEvents.sorted(context, rows, "globalTid", table=table)
        rows = events.rows
        always = np.ones(len(rows), bool)
        names = encoded(context.database, rows.ints("nameId"), always).cast(pa.string()).to_pylist()
        files = encoded(
            context.database, rows.ints("srcFile"), rows.valid("srcFile") & (rows.ints("srcFile") != 0)
        ).cast(pa.string())
        places = zip(names, files.to_pylist(), rows.ints("lineNo").tolist(), strict=True)
        placed = [
            f"{name} [{file.rpartition('/')[2]}:{line}]" if file else name for name, file, line in places
        ]
        kind = table.removeprefix(_OPENACC).replace("_", " ").lower()
        pieces.append(_piece(context, events, kind, names=pa.array(placed, pa.string()).dictionary_encode()))
    if pieces:
        write_sorted(context, "openacc_events", pieces)


def _piece(context: NsysContext, events: NsysEvents, kind: str, names: pa.Array) -> dict[str, Any]:
    return {
        "process": events.process,
        "thread": context.identity.thread(events.rows.ints("globalTid")),
        "start": events.start,
        "end": events.end,
        "kind": _constant(kind, len(events.rows)),
        "name": names,
    }


def _small(events: NsysEvents, name: str) -> pa.Array:
    """Return a column of small numbers; what does not fit, such as `any tag`, is null."""
    values = events.rows.ints(name)
    fits: BoolArray = events.rows.valid(name) & (values <= _MOST) & (values >= -_MOST - 1)
    return pa.array(np.where(fits, values, 0).astype(np.int32), pa.int32(), mask=~fits)


def _constant(text: str, rows: int) -> pa.DictionaryArray:
    return distinct_values(np.zeros(rows, np.int32), [text], np.ones(rows, bool))
