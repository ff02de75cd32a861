"""The tables `um_events`, `overhead` and `external_ids`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert import texts
from warplens.convert.chosen import sane
from warplens.convert.cuda import labels
from warplens.convert.cuda.place import CudaPlace
from warplens.convert.place import ordered
from warplens.convert.words import labelled, optional
from warplens.spool.wide import WideRecords
from warplens.storage import schema

_INSTANTS = (
    labels.UM_CPU_FAULT,
    labels.UM_THRASHING,
    labels.UM_REMOTE_MAP,
)  # the end in their records means nothing
_MOVES = (labels.UM_TO_DEVICE, labels.UM_TO_HOST, labels.UM_BETWEEN)
_FAULTS = (labels.UM_CPU_FAULT, labels.UM_GPU_FAULT)
_CAUSES = {
    **dict.fromkeys(_MOVES, labels.MIGRATION_CAUSES),
    labels.UM_GPU_FAULT: labels.FAULT_ACCESS,
    labels.UM_REMOTE_MAP: labels.REMOTE_MAP_CAUSES,
}
_JIT = 1 << 40  # so that compilations and other kinds of overhead are numbered in one list
_OVERHEAD = {
    **labels.OVERHEAD_KINDS,
    **{_JIT + number: word for number, word in labels.JIT_OPERATIONS.items()},
}


def unified_memory(records: WideRecords, place: CudaPlace) -> Iterator[pa.Table]:
    """Return the rows of `um_events`."""
    start, kinds = records.column("start"), records.column("kind")
    end = np.where(np.isin(kinds, _INSTANTS), start, records.column("end"))
    good = sane(start, end)
    place.tally.damaged += int((~good).sum())
    kept = ordered(good & place.spans.overlap(start, end), start)
    offsets, start, end = records.offsets()[kept], start[kept], end[kept]
    for rows in place.groups(len(kept)):
        fields = records.rows(offsets[rows])
        kind = fields["kind"].astype(np.int64)
        source, target = fields["source"].astype(np.int32), fields["destination"].astype(np.int32)
        from_device = np.isin(kind, (labels.UM_TO_HOST, labels.UM_BETWEEN)) & (source >= 0)
        to_device = np.isin(kind, (labels.UM_TO_DEVICE, labels.UM_BETWEEN)) & (target >= 0)
        device = np.where(to_device, target, source)
        # Of those that fight over pages CUPTI gives a set of devices; faults of the host have none.
        one = ~np.isin(kind, (labels.UM_CPU_FAULT, labels.UM_THRASHING)) & (device >= 0)
        columns = {
            **place.ids(rows),
            "start": pa.array(place.clock(start[rows])),
            "end": pa.array(place.clock(end[rows])),
            "kind": labelled(kind, labels.UM_KINDS),
            "device": pa.array(device, mask=~one),
            "source": pa.array(source, mask=~from_device),
            "destination": pa.array(target, mask=~to_device),
            "address": pa.array(fields["address"].astype(np.uint64)),
            "bytes": pa.array(fields["value"].astype(np.int64), mask=~np.isin(kind, _MOVES)),
            "faults": pa.array(fields["value"].astype(np.int64), mask=~np.isin(kind, _FAULTS)),
            "cause": _causes(kind, fields["cause"].astype(np.int64)),
        }
        yield schema.build("um_events", columns)


def _causes(kind: Int64Array, flags: Int64Array) -> pa.DictionaryArray:
    used, codes = np.unique(kind << 32 | flags & 0xFFFFFFFF, return_inverse=True)
    words = [_CAUSES.get(both >> 32, {}).get(both & 0xFFFFFFFF) for both in used.tolist()]
    return pa.array(words, pa.string()).take(pa.array(codes.reshape(-1))).dictionary_encode()


def overhead(records: WideRecords, place: CudaPlace) -> Iterator[pa.Table]:
    """Return the rows of `overhead`."""
    start, end = records.column("start"), records.column("end")
    good = sane(start, end)
    place.tally.damaged += int((~good).sum())
    kept = ordered(good & place.spans.overlap(start, end), start)
    offsets = records.offsets()[kept]
    sources = texts.Names(place.strings, texts.plain)
    for rows in place.groups(len(kept)):
        fields = records.rows(offsets[rows])
        start, tid = fields["start"].astype(np.int64), fields["tid"].astype(np.int64)
        thread = place.threads.match(tid, start, known=True).astype(np.int64)
        jit = fields["jit"].astype(np.int64)
        (name,) = sources.columns(fields["name"])
        columns = {
            **place.ids(rows),
            "thread": pa.array(place.thread_base + thread, mask=thread < 0),
            "start": pa.array(place.clock(start)),
            "end": pa.array(place.clock(fields["end"].astype(np.int64))),
            "kind": labelled(np.where(jit != 0, _JIT + jit, fields["kind"].astype(np.int64)), _OVERHEAD),
            "name": name,
            "correlation": optional(fields["correlation"], 0),
        }
        yield schema.build("overhead", columns)


def external_ids(records: WideRecords, place: CudaPlace) -> Iterator[pa.Table]:
    """Return the rows of `external_ids`: of calls that are rows, and of unrecorded ones if everything is wanted."""
    correlation = records.column("correlation")
    call = place.calls.find(correlation)
    kept = np.flatnonzero(np.append(place.calls.kept, place.spans.all)[call])
    kept = kept[np.argsort(correlation[kept], kind="stable")]
    offsets, call = records.offsets()[kept], call[kept]
    for rows in place.groups(len(kept)):
        fields = records.rows(offsets[rows])
        columns = {
            "process": pa.array(np.full(len(fields), place.process, np.int64)),
            "kind": labelled(fields["kind"], labels.EXTERNAL_KINDS),
            "external": pa.array(fields["external"].astype(np.uint64)),
            "api": place.api(call[rows]),
            "correlation": optional(fields["correlation"], 0),
        }
        yield schema.build("external_ids", columns)
