"""GPU work: the tables `kernels`, `memcpys`, `memsets` and `graphs`, each from one type of records."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.convert import texts
from warplens.convert.chosen import sane
from warplens.convert.cuda import names
from warplens.convert.cuda.labels import COPY_KINDS, LAUNCH_TYPES, MEMORY_KINDS
from warplens.convert.cuda.place import NOWHERE, CudaPlace
from warplens.convert.place import ordered
from warplens.convert.words import labelled, optional
from warplens.spool.strings import Strings
from warplens.spool.wide import WideRecords
from warplens.storage import schema

Columns = dict[str, Any]
_INEXACT = 1_000  # ns: times of GPUs are worked out between readings of two clocks


def groups_of(records: WideRecords, place: CudaPlace) -> Iterator[tuple[npt.NDArray[Any], Columns]]:
    """Return the records that were launched within a window, some at a time, and their common columns."""
    calls = place.calls
    start, end, correlation = (records.column(name) for name in ("start", "end", "correlation"))
    good = sane(start, end)
    place.tally.damaged += int((~good).sum())
    call = calls.find(correlation)
    place.asked.answer(call)
    good &= calls.launched_inside(call, correlation, start=start, end=end)
    del end, correlation  # memory is what limits how many there may be
    kept = ordered(good, start)
    call, start = call[kept], start[kept]
    told = call >= 0
    ahead = calls.start[call[told]] - start[told] - _INEXACT
    place.tally.early += int((ahead > 0).sum())
    place.tally.early_ns = max(place.tally.early_ns, int(ahead.max(initial=-_INEXACT)) + _INEXACT)
    offsets = records.offsets()[kept]
    del good, told, ahead, kept
    for rows in place.groups(len(offsets)):
        fields = records.rows(offsets[rows])
        yield (
            fields,
            {
                **place.ids(rows),
                "device": _int32(fields["device"]),
                "context": _int64(fields["context"]),
                "stream": _int64(fields["stream"]),
                "start": pa.array(place.clock(start[rows])),
                "end": pa.array(place.clock(fields["end"].astype(np.int64))),
                "api": place.api(call[rows]),
                "correlation": optional(fields["correlation"], 0),
                **_captured(fields, place),
            },
        )


def _captured(fields: npt.NDArray[Any], place: CudaPlace) -> Columns:
    """Return the columns that say where nodes of graphs were captured; none where no node is known."""
    if place.captured is None or "graph_node" not in (fields.dtype.names or ()):
        return {}
    call, text = place.captured.find(fields["graph_node"].astype(np.int64))
    return {
        "captured": place.api(call),
        "captured_in": texts.Names(place.strings, texts.plain).columns(text)[0],
    }


class Kernels:
    """Rows of `kernels`."""

    def __init__(self, strings: Strings) -> None:
        self._names = texts.Names(strings, names.short, names.demangled, texts.plain)

    @property
    def lost(self) -> int:
        """The number of kernels without a name."""
        return self._names.lost

    def __call__(self, fields: npt.NDArray[Any], columns: Columns) -> pa.Table:
        """Return rows from records and the columns that they share with other work."""
        short, demangled, mangled = self._names.columns(fields["name"])
        columns |= {"name": short, "demangled": demangled, "mangled": mangled}
        columns |= {name: _int32(fields[name]) for name in (*_SIZES, "registers")}
        columns |= {
            name: pa.array(fields[name].astype(np.int32), mask=fields[name] == 0) for name in _CLUSTER
        }
        columns |= {name: _int64(fields[name]) for name in _MEMORY}
        columns["launch_type"] = labelled(fields["launch_type"], LAUNCH_TYPES)
        return schema.build("kernels", columns | _graph(fields))


_SIZES = tuple(f"{what}_{axis}" for what in ("grid", "block") for axis in "xyz")
_CLUSTER = tuple(f"cluster_{axis}" for axis in "xyz")
_MEMORY = ("static_shared", "dynamic_shared", "shared_executed", "local_per_thread", "local_total")


def memcpys(fields: npt.NDArray[Any], columns: Columns) -> pa.Table:
    """Return rows of `memcpys` from records and the columns that they share with other work."""
    columns |= {
        "bytes": _int64(fields["bytes"]),
        "kind": labelled(fields["copy_kind"], COPY_KINDS),
        "source_kind": labelled(fields["source_kind"], MEMORY_KINDS),
        "destination_kind": labelled(fields["destination_kind"], MEMORY_KINDS),
        "source_device": _device(fields["source_device"]),
        "destination_device": _device(fields["destination_device"]),
        "asynchronous": pa.array(fields["asynchronous"] & 1 != 0),
        "copies": optional(fields["copies"], 0),
    }
    return schema.build("memcpys", columns | _graph(fields))


def memsets(fields: npt.NDArray[Any], columns: Columns) -> pa.Table:
    """Return rows of `memsets` from records and the columns that they share with other work."""
    columns |= {"bytes": _int64(fields["bytes"]), "value": _int64(fields["value"])}
    columns["memory_kind"] = labelled(fields["memory_kind"], MEMORY_KINDS)
    return schema.build("memsets", columns | _graph(fields))


def graphs(fields: npt.NDArray[Any], columns: Columns) -> pa.Table:
    """Return rows of `graphs` from records and the columns that they share with other work."""
    return schema.build(
        "graphs", columns | {name: optional(fields[name], 0) for name in ("graph", "graph_exec")}
    )


def _graph(fields: npt.NDArray[Any]) -> Columns:
    return {name: optional(fields[name], 0) for name in ("graph", "graph_node")}


def _device(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values.astype(np.int32), mask=values == NOWHERE)


def _int32(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values.astype(np.int32))


def _int64(values: npt.NDArray[Any]) -> pa.Array:
    return pa.array(values.astype(np.int64))
