"""The operations of each GPU of each process in the selected part, as arrays.

Most rules about GPUs read these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from warplens.analysis.gpu.ops import during
from warplens.analysis.intervals import Cover, gaps
from warplens.analysis.once import once
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.model.words import counted, duration
from warplens.rules.base import Evidence, Finding

if TYPE_CHECKING:
    from warplens.report import Report, Selection

KERNEL, COPY, SET, GRAPH, MIGRATION = range(5)
TABLES = ("kernels", "memcpys", "memsets", "graphs", "um_events")
_NAMES = {KERNEL: "kernel", COPY: "copy", SET: "memset", GRAPH: "graph", MIGRATION: "migration"}
_COLUMNS = 'process, device, stream, "start", "end", api, id'


@dataclass(frozen=True, eq=False)
class GpuOperations:
    """One GPU of one process.

    The arrays have an element for each operation, in the order of their begin; -1 stands for null.

    `begin`, `finish`: of the first and of the last operation. Times are cut to the selection.
    """

    process: int
    device: int
    label: str
    kind: npt.NDArray[np.int8]
    stream: Int64Array
    start: Int64Array
    end: Int64Array
    api: Int64Array
    id: Int64Array

    @property
    def begin(self) -> int:
        """Begin of the first operation."""
        return int(self.start[0])

    @cached_property
    def finish(self) -> int:
        """End of the last operation."""
        return int(self.end.max())

    @cached_property
    def busy(self) -> Cover:
        """When it did anything."""
        return Cover(self.start, self.end)

    @cached_property
    def idle(self) -> Cover:
        """When it did nothing, between its first and its last operation."""
        return Cover(*gaps(self.busy.start, self.busy.end, begin=self.begin, finish=self.finish))

    @cached_property
    def running(self) -> Cover:
        """When a kernel, or a graph, ran."""
        return self.cover(KERNEL, GRAPH)

    def cover(self, *kinds: int) -> Cover:
        """When operations of these kinds went on."""
        some = np.isin(self.kind, kinds)
        return Cover(self.start[some], self.end[some])

    def next(self, time: int) -> int | None:
        """Return the place of the first operation that begins at or after a time."""
        place = int(np.searchsorted(self.start, time, "left"))
        return place if place < len(self.start) else None

    def gap(self, begin: int, end: int) -> Evidence:
        """Describe a stretch without work by the operation that ended it."""
        place = self.next(end)
        kind = GRAPH if place is None else int(self.kind[place])
        ended = None if place is None else int(self.id[place])
        text = f"{self.label} idle" if place is None else f"{self.label} idle until the next {_NAMES[kind]}"
        return Evidence(
            table=TABLES[kind],
            id=ended,
            start=begin,
            end=end,
            text=text,
            process=self.process,
            device=self.device,
        )


def gpus(report: Report, selection: Selection) -> tuple[GpuOperations, ...]:
    """Return the GPUs that did something, by process and device.

    Raises MissingData if none did.
    """
    known = _read(report, selection)
    if not known:
        raise MissingData(f"does not contain CUDA kernel or GPU memory data{selection.place(report)}.")
    return known


def together(covers: Sequence[Cover]) -> int:
    """Return the length of the union of several, ns: time that is lost on two GPUs at once is lost once."""
    if not covers:
        return 0
    return Cover(
        np.concatenate([cover.start for cover in covers]), np.concatenate([cover.end for cover in covers])
    ).total


@once
def _read(report: Report, selection: Selection) -> tuple[GpuOperations, ...]:
    where = during(report, selection)
    window = selection.window(report)
    selects = [
        f"SELECT {number}::TINYINT AS kind, {_COLUMNS} FROM {table} WHERE {where}"
        for number, table in enumerate(TABLES[:MIGRATION])
    ]
    # Migrations of unified memory have no stream and no call; only those to or from a device count.
    selects.append(
        f"""SELECT {MIGRATION}::TINYINT, process, device, NULL, "start", "end", NULL, id FROM um_events
            WHERE kind IN ('HtoD', 'DtoH', 'DtoD') AND device IS NOT NULL AND {where}"""
    )
    rows = report.sql(
        f"""SELECT process, device, kind, coalesce(stream, -1)::BIGINT AS stream, "start", "end", coalesce(api, -1)::BIGINT AS api, id
            FROM ({" UNION ALL ".join(selects)}) ORDER BY process, device, "start", "end" """
    )
    columns: dict[str, npt.NDArray[Any]] = {name: rows.column(name).to_numpy() for name in rows.column_names}
    if window is not None:
        columns["start"] = np.maximum(columns["start"], window[0])
        columns["end"] = np.maximum(np.minimum(columns["end"], window[1]), columns["start"])
    process, device = columns["process"], columns["device"]
    # Rows are sorted by process and device: each GPU is one run of rows, edges[i] to edges[i + 1].
    edges = np.flatnonzero(
        (np.diff(process, prepend=-1, append=-1) != 0) | (np.diff(device, prepend=-2, append=-2) != 0)
    ).tolist()
    places = [(int(process[low]), int(device[low])) for low in edges[:-1]]
    labels = _labels(report, places)
    return tuple(
        GpuOperations(
            *place,
            labels[place],
            *(columns[name][low:high] for name in ("kind", "stream", "start", "end", "api", "id")),
        )
        for place, (low, high) in zip(places, pairwise(edges), strict=True)
    )


def _labels(report: Report, places: list[tuple[int, int]]) -> dict[tuple[int, int], str]:
    """Name the GPUs by number, or by rank and number, so that names are the same in the next recording."""
    rows = report.sql("SELECT process, rank FROM processes").to_pylist()
    ranks = {row["process"]: row["rank"] for row in rows}
    order = {process: number for number, process in enumerate(sorted({process for process, _ in places}), 1)}
    twice = any(number > 1 for number in Counter(device for _, device in places).values())
    names = {}
    for process, device in places:
        rank = ranks.get(process)
        owner = f"process {order[process]}" if rank is None else f"rank {rank}"
        names[process, device] = f"GPU {device} of {owner}" if twice else f"GPU {device}"
    return names


def merged(pairs: Sequence[tuple[Finding, Cover]], rows: int) -> list[Finding]:
    """Merge the findings of several GPUs into one: that of the worst, with the others named.

    The covers are the time that each loses.
    """
    if len(pairs) < 2:
        return [finding for finding, _ in pairs]
    (worst, _), *others = ordered = sorted(pairs, key=lambda pair: -(pair[0].bound or 0))
    bound = together([cover for _, cover in pairs])
    names = ", ".join(finding.subject for finding, _ in others[:8]) + (
        f" and {len(others) - 8:,} more" if len(others) > 8 else ""
    )
    estimates = [finding.estimate for finding, _ in pairs if finding.estimate is not None]
    evidence = sorted(
        (row for finding, _ in ordered for row in finding.evidence), key=lambda row: row.start - row.end
    )
    return [
        replace(
            worst,
            subject="GPUs",
            title=f"{worst.title}; much the same on {counted(len(others), 'other GPU')}",
            cause=f"{worst.cause} Much the same on {names}: {duration(bound)} in total; time on "
            "several at once counts once.",
            evidence=tuple(evidence[:rows]),
            occurrences=sum(finding.occurrences for finding, _ in pairs),
            bound=bound,
            estimate=min(max(estimates), bound) if estimates else None,
            claim=Cover(
                *(np.concatenate([getattr(cover, edge) for _, cover in pairs]) for edge in ("start", "end"))
            ),
        )
    ]


def span(report: Report, selection: Selection) -> int:
    """Return the length of the time that is looked at, ns."""
    begin, end = selection.window(report) or report.span
    return max(end - begin, 0)
