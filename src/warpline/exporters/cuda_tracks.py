"""The rows that CUDA needs: API calls under their threads; under the process its GPUs, their contexts, streams, and copies by direction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warpline.errors import ReportError
from warpline.exporters.tracks import Tracks
from warpline.query.gpu_names import gpu_label

if TYPE_CHECKING:
    from warpline.query import Report

_ON_GPU = ("kernels", "graphs", "memcpys", "memsets", "cuda_events")
_BELOW = {"memsets": "Memset", "graphs": "Graphs"}  # kernels are on the row of the stream itself; graphs too where there are none
_OF_PROCESS = {"syncs": "CUDA synchronization", "um_events": "Unified memory"}
_DIRECTIONS = {"Host": "H", "Device": "D", "Peer": "P", "Array": "A"}
_PRIMES = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0xD6E8FEB86659FD93], np.uint64)
_NONE = -1
_Keys = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Row:
    """A row of the timeline: below the row `above`, else below its thread, else below its process (both by position).

    `place` orders the rows that have one above them; `gpu`: it shows a GPU, not the host; `full` is a name that says enough where rows
    cannot be nested.
    """

    name: str
    full: str
    process: int
    thread: int | None = None
    above: int | None = None
    place: int = 0
    gpu: bool = False


class CudaTracks:
    """The rows of a report; rows come after the one they are below."""

    def __init__(self, report: Report, tracks: Tracks) -> None:
        self._report = report
        self._processes = {process.key: index for index, process in enumerate(tracks.processes)}
        self._threads = {thread.key: index for index, thread in enumerate(tracks.threads)}
        self._tracks = tracks
        self.rows: list[Row] = []
        self._found: dict[tuple[str, int, int, int], int] = {}
        counts = report.tables
        if counts["cuda_api"]:
            for record in report.sql("SELECT DISTINCT process, thread FROM cuda_api ORDER BY ALL").to_pylist():
                self._of_thread("cuda_api", "CUDA API", record)
        if counts["overhead"]:
            for record in report.sql("SELECT DISTINCT process, thread FROM overhead ORDER BY ALL NULLS FIRST").to_pylist():
                self._of_thread("overhead", "CUDA overhead", record)
        for table, name in _OF_PROCESS.items():
            if counts[table]:
                for record in report.sql(f"SELECT DISTINCT process FROM {table} ORDER BY ALL").to_pylist():
                    self._put((table, record["process"], _NONE, _NONE), Row(name, name, self._process(record["process"])))
        if any(counts[table] for table in _ON_GPU):
            self._gpus(report)
        self._sorted: dict[str, tuple[npt.NDArray[np.uint64], npt.NDArray[np.int32]]] = {}
        for what in {key[0] for key in self._found}:
            own = {key[1:]: row for key, row in self._found.items() if key[0] == what}
            mixed = _mixed(*(np.array(column, np.int64) for column in zip(*own, strict=True)))
            order = np.argsort(mixed)
            self._sorted[what] = mixed[order], np.array(list(own.values()), np.int32)[order]

    def find(self, what: str, process: _Keys, first: _Keys, second: _Keys) -> npt.NDArray[np.int32]:
        """Return the row of each event of a kind: by process, and thread or context and stream (-1: none)."""
        keys, rows = self._sorted[what]
        wanted = _mixed(process, first, second)
        places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        if not (keys[places] == wanted).all():
            raise ReportError(f"{self._report.path} is broken: the rows of {what} are not what they were a moment ago")
        return rows[places]

    def _gpus(self, report: Report) -> None:
        kind_of = {"memcpys": "kind"}
        selects = [
            f"SELECT DISTINCT process, device, context, stream, '{table}' AS what, {kind_of.get(table, 'NULL')} AS kind FROM {table}"
            for table in _ON_GPU
        ]
        used = report.sql(
            f"SELECT * FROM ({' UNION ALL '.join(selects)}) ORDER BY process, device, context, stream, what, kind"
        ).to_pylist()
        on: dict[tuple[int, int], int] = {
            (record["process"], record["context"]): record["device"]
            for record in [*report.table("contexts").to_pylist(), *used]
            if record["device"] is not None
        }
        devices = {(row["process"], row["device"]): row for row in report.table("devices").to_pylist()}
        contexts = {(row["process"], row["context"]): row for row in report.table("contexts").to_pylist()}
        streams = {(row["process"], row["context"], row["stream"]): row for row in report.table("streams").to_pylist()}
        busy = {(record["process"], record["context"], record["stream"]) for record in used if record["what"] == "kernels"}
        for record in sorted(
            used, key=lambda record: (record["process"], on.get((record["process"], record["context"]), _NONE), _order(record))
        ):
            process, context, stream = record["process"], record["context"], record["stream"]
            device = on.get((process, context), _NONE)
            name = gpu_label(None if device == _NONE else device, (devices.get((process, device)) or {}).get("name"))
            place = self._process(process)
            gpu = self._put(("device", process, device, _NONE), Row(name, name, place, gpu=True))
            named = (contexts.get((process, context)) or {}).get("name")
            within = self._put(
                ("context", process, context, _NONE), Row(_named("Context", context, named), "", place, None, gpu, context, True)
            )
            known = streams.get((process, context, stream)) or {}
            label = _named("Stream", stream, known.get("name") or ("default" if known.get("kind") == "null" else None))
            several = sum(key[0] == process for key in on) > 1
            full = f"Context {context} {label}" if several else label
            row = self._put(("stream", process, context, stream), Row(label, full, place, None, within, stream, True))
            what, text = record["what"], _BELOW.get(record["what"])
            if what == "memcpys":
                what, text = f"memcpys {record['kind']}", f"{direction(record['kind'])} memcpy"
            if text is None or (what == "graphs" and (process, context, stream) not in busy):
                self._found[what, process, context, stream] = row
            else:
                self._put((what, process, context, stream), Row(text, f"{full} {text}", place, None, row, len(self.rows), True))

    def _of_thread(self, table: str, name: str, record: dict[str, Any]) -> None:
        thread = record["thread"]
        if thread is not None and thread not in self._threads:
            raise ReportError(f"{self._report.path} is broken: its table {table} names the thread {thread}, which it lacks")
        place = None if thread is None else self._threads[thread]
        full = name if place is None else f"{self._tracks.threads[place].name} {name}"
        key = (table, record["process"], _NONE if thread is None else thread, _NONE)
        self._put(key, Row(name, full, self._process(record["process"]), place))

    def _process(self, key: int) -> int:
        if key not in self._processes:
            raise ReportError(f"{self._report.path} is broken: its tables of CUDA name the process {key}, which it lacks")
        return self._processes[key]

    def _put(self, key: tuple[str, int, int, int], row: Row) -> int:
        if key not in self._found:
            self._found[key] = len(self.rows)
            self.rows.append(row)
        return self._found[key]


def direction(kind: str | None) -> str:
    """Return the short name of a copy's kind: `HtoD` for `Host-to-Device`."""
    first, to, last = (kind or "").partition("-to-")
    return f"{_DIRECTIONS[first]}to{_DIRECTIONS[last]}" if to and {first, last} <= set(_DIRECTIONS) else kind or "Unknown"


def _order(record: dict[str, Any]) -> tuple[int, int, str, int]:
    """Put copies to the GPU before those back, as nsys does."""
    first = record["what"] == "memcpys" and record["kind"] == "Host-to-Device"
    return record["context"], record["stream"], record["what"], not first


def _named(what: str, number: int, name: str | None) -> str:
    return f"{what} {number} ({name})" if name else f"{what} {number}"


def _mixed(process: _Keys, first: _Keys, second: _Keys) -> npt.NDArray[np.uint64]:
    """Return one number for three; which of the few keys of a report meet in it is as good as never the case."""
    with np.errstate(over="ignore"):
        mixed: npt.NDArray[np.uint64] = process.astype(np.uint64) * _PRIMES[0]
        mixed = (mixed ^ mixed >> np.uint64(29)) + first.astype(np.uint64) * _PRIMES[1]
        mixed = (mixed ^ mixed >> np.uint64(31)) + second.astype(np.uint64) * _PRIMES[2]
        return mixed ^ mixed >> np.uint64(30)
