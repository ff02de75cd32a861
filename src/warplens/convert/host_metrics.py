"""The table `host_metrics`: memory of the processes and load of the machine.

The launcher sampled it into `host_metrics.jsonl`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warplens.convert.sample_lines import SampleLines
from warplens.spool.notes import Note

FILE = "host_metrics.jsonl"
ROWS_AT_ONCE = 1 << 18
_MOST = 1 << 50  # bytes
_SLACK_NS = 300_000_000  # a process may be seen a little after its last record

Columns = dict[str, list[Any]]
Reading = tuple[int, float | None, Sequence[tuple[int, int]]]


class HostMetrics:
    """Reads the file of one spool directory; there may be none.

    Nothing in it is trusted. `processes` are rows of that table.
    """

    def __init__(self, directory: Path, host: str, processes: Sequence[Mapping[str, Any]]) -> None:
        self._lines = SampleLines(directory / FILE)
        self._host = host
        self._processes = processes

    def tables(self, wanted: Callable[[int], bool]) -> Iterator[Columns]:
        """Yield the columns of `host_metrics`, some rows at a time, of the readings at `wanted` times (ns)."""
        rows = _empty()
        by_pid: dict[int, list[Mapping[str, Any]]] = defaultdict(list)
        for row in self._processes:
            by_pid[row["pid"]].append(row)
        for time, load, sizes in self._lines.read(lambda head: True, _reading):
            if not wanted(time):
                continue
            if load is not None:
                self._add(rows, time, None, metric="CPU Load", unit="%", value=load)
            for pid, size in sizes:
                if (process := _process(by_pid.get(pid, ()), time)) is not None:
                    self._add(rows, time, process, metric="RSS", unit="bytes", value=float(size))
            if len(rows["start"]) >= ROWS_AT_ONCE:
                yield rows
                rows = _empty()
        if rows["start"]:
            yield rows

    def notes(self) -> list[Note]:
        """Notes about the file, complete after reading it."""
        return self._lines.notes("host-metrics-damaged", "samples of memory and load")

    def _add(
        self, rows: Columns, time: int, process: int | None, metric: str, unit: str, value: float
    ) -> None:
        for name, item in zip(rows, (self._host, process, time, metric, unit, value), strict=True):
            rows[name].append(item)


def _process(of_pid: Sequence[Mapping[str, Any]], time: int) -> int | None:
    """Return the key of the process that had the id at a time: the one that began last before it."""
    mine = [row for row in of_pid if row["start"] <= time <= row["end"] + _SLACK_NS]
    return max(mine, key=lambda row: row["start"])["process"] if mine else None


def _empty() -> Columns:
    return {name: [] for name in ("host", "process", "start", "metric", "unit", "value")}


def _reading(sample: Any) -> Reading | None:
    if not isinstance(sample, list) or len(sample) != 3:
        return None
    time, load, sizes = sample
    if not _whole(time, 1 << 62) or not isinstance(sizes, list):
        return None
    if load is not None and not (isinstance(load, (int, float)) and 0 <= load <= 100):
        return None
    pairs = [tuple(pair) for pair in sizes if isinstance(pair, list) and len(pair) == 2]
    if len(pairs) != len(sizes) or not all(
        _whole(pid, 1 << 31) and _whole(size, _MOST) for pid, size in pairs
    ):
        return None
    return time, load, pairs


def _whole(value: object, end: int) -> bool:
    return type(value) is int and 0 < value < end
