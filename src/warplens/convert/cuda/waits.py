"""The tables `syncs` and `cuda_events`: who waited for the GPU, and for what."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from warplens.convert.chosen import LATEST, sane
from warplens.convert.cuda.labels import SYNC_KINDS
from warplens.convert.cuda.place import NOWHERE, CudaPlace
from warplens.convert.place import ordered
from warplens.convert.words import labelled, optional
from warplens.spool.wide import WideRecords
from warplens.storage import schema


def syncs(records: WideRecords, place: CudaPlace) -> Iterator[pa.Table]:
    """Return the rows of `syncs`."""
    start, end = records.column("start"), records.column("end")
    good = sane(start, end)
    place.tally.damaged += int((~good).sum())
    good &= place.spans.overlap(start, end) & ~place.calls.are_own(
        place.calls.find(records.column("correlation"))
    )
    kept = ordered(good, start)
    offsets = records.offsets()[kept]
    for rows in place.groups(len(kept)):
        fields = records.rows(offsets[rows])
        columns = {
            **place.ids(rows),
            "start": pa.array(place.clock(fields["start"].astype(np.int64))),
            "end": pa.array(place.clock(fields["end"].astype(np.int64))),
            "kind": labelled(fields["kind"], SYNC_KINDS),
            "context": optional(fields["context"], 0),
            "stream": optional(fields["stream"], NOWHERE),
            "event": optional(fields["event"], NOWHERE),
            "event_sync": optional(fields["event_sync"], 0),
            "api": place.api(place.calls.find(fields["correlation"].astype(np.int64))),
            "correlation": optional(fields["correlation"], 0),
        }
        yield schema.build("syncs", columns)


def events(records: WideRecords, place: CudaPlace) -> Iterator[pa.Table]:
    """Return the rows of `cuda_events`."""
    start, correlation = records.column("start"), records.column("correlation")
    good = (start == 0) | sane(start)
    place.tally.damaged += int((~good).sum())
    call = place.calls.find(correlation)
    untold = (start == 0) & (call >= 0)
    start[untold] = place.calls.start[call[untold]]
    # If nobody knows the time, only the number of the call says when.
    when = np.where(start > 0, start, LATEST)
    kept = ordered(good & place.calls.launched_inside(call, correlation, start=when, end=when), when)
    offsets, call, start = records.offsets()[kept], call[kept], start[kept]
    for rows in place.groups(len(kept)):
        fields = records.rows(offsets[rows])
        columns = {
            **place.ids(rows),
            "device": pa.array(fields["device"].astype(np.int32), mask=fields["device"] == NOWHERE),
            "context": pa.array(fields["context"].astype(np.int64)),
            "stream": pa.array(fields["stream"].astype(np.int64)),
            "start": pa.array(place.clock(start[rows]), mask=start[rows] == 0),
            "event": pa.array(fields["event"].astype(np.int64)),
            "event_sync": optional(fields["event_sync"], 0),
            "api": place.api(call[rows]),
            "correlation": optional(fields["correlation"], 0),
        }
        yield schema.build("cuda_events", columns)
