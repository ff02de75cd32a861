"""Groups rows by GPU, stream, process or rank.

The option `by` of the stats of GPUs, and `warplens stats --by`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from warplens.stats.base import one_of
from warplens.stats.places import of_process, places

if TYPE_CHECKING:
    from warplens.report import Report

KNOWN = ("device", "process", "rank", "stream")
Part = TypeVar("Part")
Key = tuple[int, int | None, int | None]  # process, device, stream: None for what is summed over


class By:
    """Tells which row something belongs to.

    A GPU is that of a process: one that two processes share is two.

    `first`: of each process the one that stands for its rank.
    """

    def __init__(self, report: Report, by: str, first: dict[int, int]) -> None:
        self.by, self._report, self._first = by, report, first

    @classmethod
    def of(cls, report: Report, by: str) -> By:
        """Raises UsageError for what is not one of KNOWN."""
        one_of("by", by, KNOWN)
        known = report.table("processes", ["process", "rank"])
        pairs = list(zip(*(column.to_pylist() for column in known.columns), strict=True))
        first: dict[int, int] = {}
        firsts = {
            process: process if rank is None else first.setdefault(rank, process) for process, rank in pairs
        }
        return cls(report, by, firsts)

    @property
    def per_stream(self) -> bool:
        """Whether streams are looked at one by one."""
        return self.by == "stream"

    @property
    def per(self) -> tuple[str, ...]:
        """The columns that SQL keeps rows apart by."""
        return {"device": ("process", "device"), "stream": ("process", "device", "stream")}.get(
            self.by, ("process",)
        )

    def relation(self, relation: str) -> str:
        """Return an SQL relation with the processes of a rank as one: the first."""
        if self.by != "rank":
            return relation
        first = "SELECT process AS own, min(process) OVER (PARTITION BY rank) AS first FROM processes WHERE rank IS NOT NULL"
        return (
            f"(SELECT x.* REPLACE (coalesce(f.first, x.process) AS process) FROM {relation} x LEFT JOIN "
            f"({first}) f ON x.process = f.own)"
        )

    def key(self, process: int, device: int | None, stream: int | None = None) -> Key:
        """Return the row of a GPU, or stream: all processes of a rank have that of the first."""
        if self.by == "rank":
            return self._first.get(process, process), None, None
        return (
            process,
            device if self.by in ("device", "stream") else None,
            stream if self.per_stream else None,
        )

    def grouped(self, parts: Iterable[tuple[Key, Part]]) -> Iterator[tuple[Key, list[Part]]]:
        """Yield what belongs to each row.

        `parts` come with their process, device and stream, GPU by GPU.

        Rows of one GPU come as soon as they are whole, so that what they are made of need not be kept.
        """
        groups: dict[Key, list[Part]] = {}
        last: Key | None = None
        for place, part in parts:
            key = self.key(place[0], place[1], place[2])
            if last not in (None, key) and self.by in ("device", "stream"):
                yield from groups.items()
                groups.clear()
            groups.setdefault(key, []).append(part)
            last = key
        yield from groups.items()

    def columns(self, keys: Sequence[Key]) -> dict[str, pa.Array]:
        """Return `Host`, `Rank`, `PID`, `Device` as `places` does.

        Streams have their number, ranks only `Rank` and where they ran.
        """
        process, device, stream = (
            pa.chunked_array([pa.array([key[column] for key in keys], kind)])
            for column, kind in enumerate((pa.int64(), pa.int32(), pa.int64()))
        )
        columns_of_place = places(self._report, process, device if self.by in ("device", "stream") else None)
        if self.by == "rank":
            ranks = of_process(self._report, process, "rank")
            columns_of_place = {
                name: column
                for name, column in columns_of_place.items()
                if name == "Host" or ranks.null_count
            }
            columns_of_place |= {"Rank": ranks} if ranks.null_count < len(ranks) else {}
        return (
            {**columns_of_place, "Stream": stream.combine_chunks()} if self.per_stream else columns_of_place
        )


def percent(values: Sequence[int], whole: Sequence[int]) -> pa.Array:
    """Return percents of wholes; zero of nothing."""
    parts, wholes = (
        pc.cast(pa.array(column, pa.int64()), pa.float64(), safe=False) for column in (values, whole)
    )
    return pc.multiply(pc.divide(parts, pc.if_else(pc.equal(wholes, 0.0), 1.0, wholes)), 100.0)
