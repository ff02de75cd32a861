"""All tables of kernels that time themselves, of one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.arrays import Int64Array
from warplens.convert.chosen import LATEST, Spans
from warplens.convert.cuda import names
from warplens.convert.intrakernel import matching, merging, notices
from warplens.convert.intrakernel.gather import Gather, Places
from warplens.convert.intrakernel.graphs import match_graphs
from warplens.convert.intrakernel.launches import Launches, read_launches
from warplens.convert.intrakernel.merging import MERGED, Merged
from warplens.convert.intrakernel.regions import Regions
from warplens.convert.intrakernel.tally import Tally
from warplens.convert.threads import Threads
from warplens.convert.words import labelled
from warplens.spool.kernels.buffers import tag_names
from warplens.spool.notes import Note
from warplens.spool.reader import SpoolFile
from warplens.storage import schema


class IntrakernelTables:
    """Writes what launches wrote into their buffers as the rows of process `process`.

    A spool without any costs nothing.

    `first`: the id of the first row of each table; `thread_base`: the key of the process's thread 0; `clock` corrects times.
    """

    def __init__(
        self,
        spool: SpoolFile,
        *,
        process: int,
        first: int,
        thread_base: int,
        write: Callable[[str, pa.Table], None],
        clock: Callable[[Int64Array], Int64Array],
        threads: Threads,
    ) -> None:
        self._spool, self._process, self._first, self._thread_base = spool, process, first, thread_base
        self._write, self._clock, self._threads = write, clock, threads
        self._kernels: matching.Kernels | None = None
        self._asked: matching.Candidates | None = None
        self._notes: list[Note] = []
        spans = Spans(spool.bounds.windows if spool.bounds.windows is not None else spool.bounds.only)
        wide = spool.wide
        self._launches = read_launches(wide.get("intrakernel_launch"), wide.get("intrakernel_read"), spans)
        if self._launches is None:
            return
        if "cuda_kernel" in wide:
            calls = wide.get("cuda_api")
            if calls is not None:
                tid = self._launches.noted["tid"].astype(np.int64)
                self._asked = matching.candidates(self._launches.launched, tid, calls, strings=spool.strings)
            self._kernels = matching.Kernels(None if self._asked is None else self._asked.correlation)

    def watch(self, kernels: npt.NDArray[Any], columns: dict[str, Any]) -> None:
        """See kernels while their table is written."""
        if self._kernels is not None:
            self._kernels.add(kernels, columns["id"].to_numpy(), columns["api"].fill_null(-1).to_numpy())

    def finish(self) -> None:
        """Write all tables, after those of CUDA."""
        launches = self._launches
        if launches is None:
            return
        kernels = (self._kernels or matching.Kernels(None)).table()
        span = np.where(launches.timed, launches.of_read("last_ns") - launches.of_read("first_ns"), 0)
        rows = matching.match(
            kernels,
            self._asked,
            launches.launched,
            over=launches.over,
            span=span,
            blocks=launches.of_read("blocks"),
        )
        rows = match_graphs(launches, kernels, rows)
        merged = merging.merge(launches, kernels, rows)
        tally = self._regions(launches, kernels, merged)
        self._write("intrakernel_launches", self._rows(launches, kernels, merged, tally=tally))
        self._notes = notices.notes(
            launches, merged, tally, has_kernels=self._kernels is not None, pid=self._spool.process.pid
        )

    def notes(self) -> list[Note]:
        """Notes about losses and the precision of times."""
        return self._notes

    def _regions(self, launches: Launches, kernels: dict[str, Int64Array], merged: Merged) -> Tally:
        tally = Tally.of(len(launches))
        regions = Regions(self._process, self._first, self._write, clock=self._clock)
        gather = Gather(self._places(launches, kernels, merged), regions, tally)
        pieces = self._spool.pieces
        blobs, generations = launches.of_read("blob"), launches.noted["generation"]
        for launch in np.flatnonzero(blobs).tolist():
            gather.launch(pieces.of(int(blobs[launch])), launch, int(generations[launch]))
        gather.flush()
        regions.flush()
        tally.broken += pieces.lost
        return tally

    def _places(self, launches: Launches, kernels: dict[str, Int64Array], merged: Merged) -> Places:
        first, last = (
            np.append(kernels[edge], nowhere)[merged.kernel]
            for edge, nowhere in (("start", 0), ("end", LATEST))
        )
        texts = launches.of_read("tags")
        names_of = {text: tag_names(self._spool.strings.get(text)) for text in np.unique(texts).tolist()}
        return Places(
            self._first + np.arange(len(launches)),
            merged.offset,
            first=first,
            last=last,
            text=texts,
            names=names_of,
        )

    def _rows(
        self, launches: Launches, kernels: dict[str, Int64Array], merged: Merged, tally: Tally
    ) -> pa.Table:
        noted, strings, count = launches.noted, self._spool.strings, len(launches)
        stored = merged.how != merging.NOTHING
        launched = launches.launched
        row = merged.kernel
        known = row >= 0

        def of_kernel(name: str) -> Int64Array:
            return np.append(kernels[name], -1)[row]

        def edge(name: str) -> Int64Array:
            time = launches.of_read(f"{name}_ns") + merged.offset
            time = np.where(known, np.clip(time, of_kernel("start"), of_kernel("end")), time)
            return np.where(stored, time, launched)

        api, correlation = of_kernel("api"), of_kernel("correlation")
        device = merging.devices(launches, kernels, row)
        thread = self._threads.match(noted["tid"].astype(np.int64), launched).astype(np.int64)
        given, buffer = noted["name"].tolist(), noted["buffer_name"].tolist()
        kernel_names = {
            text: names.short(strings.get(text)) for text in np.unique(of_kernel("name")[known]).tolist()
        }
        called = [
            strings.get(mine) or kernel_names.get(kernel) or strings.get(theirs)
            for mine, kernel, theirs in zip(given, of_kernel("name").tolist(), buffer, strict=True)
        ]
        columns = {
            "id": np.arange(self._first, self._first + count, dtype=np.int64),
            "process": np.full(count, self._process, np.int64),
            "thread": self._thread_base + thread,
            "name": pa.array(called, pa.string()).dictionary_encode(),
            "buffer": noted["buffer"].astype(np.int32),
            "buffer_name": pa.array([strings.get(text) for text in buffer], pa.string()).dictionary_encode(),
            "generation": noted["generation"].astype(np.uint32),
            "launched": self._clock(launched),
            "start": self._clock(edge("first")),
            "end": self._clock(edge("last")),
            "kernel": pa.array(of_kernel("id"), mask=~known),
            "api": pa.array(api, mask=~known | (api < 0)),
            "correlation": pa.array(correlation, mask=~known | (correlation == 0)),
            "device": pa.array(device.astype(np.int32), mask=device < 0),
            "stream": pa.array(of_kernel("stream"), mask=~known),
            "mode": pa.array(tally.mode, pa.string()).dictionary_encode(),
            "clock": pa.array(tally.clock, pa.string()).dictionary_encode(),
            "merged": labelled(merged.how, MERGED, ~stored),
            "offset": pa.array(merged.offset, mask=~stored),
            "uncertainty": pa.array(merged.uncertainty, mask=~stored),
            "drift": pa.array(merged.drift, mask=~stored),
            "units_lost": tally.units_lost(launches),
            "slots": _known(launches.of_read("slots")),
            "needed_slots": _known(tally.needed),
            "sample_blocks": _known(tally.sampled),
            "stored": launches.result == notices.STORED,
        }
        columns |= {name: getattr(tally, name) for name in ("units", "events", "dropped", "unended")}
        return schema.build("intrakernel_launches", columns)


def _known(numbers: Int64Array) -> pa.Array:
    return pa.array(np.minimum(numbers, (1 << 31) - 1).astype(np.int32), mask=numbers == 0)
