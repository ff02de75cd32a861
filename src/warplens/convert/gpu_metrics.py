"""The table `gpu_metrics`, from the launcher's samples in `gpu_metrics.jsonl` in the spool."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from warplens.convert.sample_lines import SampleLines
from warplens.spool.notes import Note
from warplens.spool.process import text

FILE = "gpu_metrics.jsonl"
ROWS_AT_ONCE = 1 << 18
_MOST_GPUS = 1 << 16
_THROTTLE = "throttle reasons"
# NVML's bits; that a GPU has nothing to do is not a reason of interest.
_REASONS = {
    2: "Clock Setting",
    4: "Power Cap",
    8: "Hardware",
    16: "Sync Boost",
    32: "Thermal, Driver",
    64: "Thermal, Hardware",
    128: "Power Brake",
    256: "Display Clock",
    512: "Board Limit",
    1024: "Reliability",
}

Columns = dict[str, list[Any]]


class GpuMetrics:
    """Reads the file of one spool directory; there may be none. Nothing in it is trusted."""

    def __init__(self, directory: Path, host: str) -> None:
        self._lines = SampleLines(directory / FILE)
        self._host = host
        self._metrics: list[tuple[str, str]] = []
        self._uuids: dict[int, str] = {}

    def tables(self, wanted: Callable[[int], bool]) -> Iterator[Columns]:
        """Yield the columns of `gpu_metrics`, some rows at a time, of the readings at `wanted` times (ns)."""
        reasons = 0
        rows = self._empty()
        for time, gpu, values in self._lines.read(self._read_head, _reading):
            if not wanted(time):
                continue
            for (metric, unit), value in zip(self._metrics, values, strict=False):
                if metric == _THROTTLE:
                    bits = int(value) if value is not None and 0 <= value < 1 << 32 else 0
                    reasons |= bits  # a reason is a metric from when it was first seen
                    for bit, name in _REASONS.items():
                        if reasons & bit:
                            self._add(
                                rows,
                                time,
                                gpu,
                                metric=f"Throttled: {name}",
                                unit="",
                                value=float(bits & bit != 0),
                            )
                elif value is not None:
                    self._add(rows, time, gpu, metric=metric, unit=unit, value=value)
            if len(rows["start"]) >= ROWS_AT_ONCE:
                yield rows
                rows = self._empty()
        if rows["start"]:
            yield rows

    def notes(self) -> list[Note]:
        """Notes about the file, complete after reading it."""
        return self._lines.notes("gpu-metrics-damaged", "samples of the GPUs")

    def _read_head(self, head: Any) -> bool:
        if not isinstance(head, Mapping):
            return False
        metrics, gpus = head.get("metrics"), head.get("gpus")
        if not isinstance(metrics, list) or not isinstance(gpus, list):
            return False
        for item in metrics:
            name, unit = item if isinstance(item, list) and len(item) == 2 else ("", "")
            self._metrics.append((text(name) or "unnamed", text(unit)))
        for gpu in gpus:
            if isinstance(gpu, Mapping) and isinstance(gpu.get("gpu"), int):
                self._uuids[gpu["gpu"]] = text(gpu.get("uuid"))
        return True

    def _add(self, rows: Columns, time: int, gpu: int, metric: str, unit: str, value: float) -> None:
        rows["host"].append(self._host)
        rows["gpu"].append(gpu)
        rows["uuid"].append(self._uuids.get(gpu) or None)
        rows["start"].append(time)
        rows["metric"].append(metric)
        rows["unit"].append(unit)
        rows["value"].append(value)

    @staticmethod
    def _empty() -> Columns:
        return {name: [] for name in ("host", "gpu", "uuid", "start", "metric", "unit", "value")}


def _reading(sample: Any) -> tuple[int, int, Sequence[float | None]] | None:
    if not isinstance(sample, list) or len(sample) != 3:
        return None
    time, gpu, values = sample
    if (
        type(time) is not int
        or not 0 < time < 1 << 62
        or type(gpu) is not int
        or not 0 <= gpu < _MOST_GPUS
        or not isinstance(values, list)
    ):
        return None
    return time, gpu, [_number(value) for value in values]


def _number(value: object) -> float | None:
    number = float(value) if isinstance(value, (int, float)) and abs(value) < 1e300 else None
    return number if number is not None and math.isfinite(number) else None
