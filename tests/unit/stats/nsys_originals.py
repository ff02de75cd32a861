"""A report imported from an export of nsys beside the export itself: made-up exports, and real ones where they are."""

from __future__ import annotations

import re
import sqlite3
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.reports.real_recordings import some
from warplens import catalog
from warplens.report import Report, Selection

FOLDER = Path(__file__).resolve().parents[4] / "shared" / "data" / "nsys"
MADE_UP = {"made up 2.9": (2, 9), "made up 3.30": (3, 30)}
LACKING = pytest.mark.skip(reason=f"the exports of real GPUs are not here ({FOLDER})")
REAL: list[Any] = some(path.name for path in sorted(FOLDER.glob("*.sqlite"))) or [
    pytest.param("real ones", marks=LACKING)
]

Original = Callable[..., list[tuple[Any, ...]]]
Row = dict[str, Any]
GPU = {
    "KERNEL": "'CUDA_KERNEL'",
    "MEMCPY": "'MEMORY_OPER'",
    "MEMSET": "'MEMORY_OPER'",
    "GRAPH_TRACE": "'CUDA_GRAPH'",
}
# Statistics that sqlite3 lacks are Python's; what is summed comes from SQL that shares nothing with ours.
NAME = "(SELECT value FROM StringIds WHERE id = {})"
COPY_KINDS = (
    "1 Host-to-Device 2 Device-to-Host 8 Device-to-Device 11 Unified_Host-to-Device 12 "
    "Unified_Device-to-Host 13 Unified_Device-to-Device"
)
MEMORY_KINDS = "0 Pageable 1 Pinned 2 Device 4 Managed"


def labelled(column: str, labels: str) -> str:
    numbers, names = labels.split()[::2], [word.replace("_", " ") for word in labels.split()[1::2]]
    return f"CASE {column} {' '.join(f'WHEN {number} THEN {name!r}' for number, name in zip(numbers, names, strict=True))} END"


LABEL = {
    "KERNEL": NAME.format("demangledName"),
    "MEMCPY": f"'[CUDA memcpy ' || {labelled('copyKind', COPY_KINDS)} || ']'",
    "MEMSET": "'[CUDA memset]'",
    "GRAPH_TRACE": "'[CUDA graph ' || graphId || ']'",
}
PID = "((globalPid >> 24) & 0xFFFFFF)"

INSIDE = """
SELECT n.rowid, n.start, n."end", CASE n.eventType WHEN 59 THEN 'PushPop' ELSE 'StartEnd' END,
       CASE WHEN n.domainId THEN coalesce(d.text, 'domain ' || n.domainId) ELSE '' END || ':' || coalesce(s.value, n.text, ''),
       (n.globalTid >> 24) & 0xFFFFFF, n.globalTid & 0xFFFFFF, r.correlationId
FROM NVTX_EVENTS n JOIN CUPTI_ACTIVITY_KIND_RUNTIME r
  ON r.globalTid = n.globalTid AND r.start >= n.start AND r.start <= n."end" AND r."end" <= n."end"
LEFT JOIN StringIds s ON s.id = n.textId
LEFT JOIN NVTX_EVENTS d ON d.eventType = 75 AND d.domainId = n.domainId AND d.globalTid >> 24 = n.globalTid >> 24
WHERE n.eventType IN (59, 60) AND coalesce(n.endGlobalTid, n.globalTid) = n.globalTid AND {}
"""


class Both:
    """An export: as a report, and as nsys wrote it."""

    def __init__(self, report: Report, original: sqlite3.Connection) -> None:
        self.report, self._original = report, original
        self.calls, self.projected = cache(self._calls), cache(self._projected)

    def stat(self, name: str, **options: Any) -> list[Row]:
        found: list[Row] = (
            catalog.find("stats.tables", name).load().table(self.report, Selection(), **options).to_pylist()
        )
        return found

    def has(self, table: str) -> bool:
        return bool(self._original.execute("SELECT 1 FROM sqlite_master WHERE name = ?", [table]).fetchone())

    def sql(self, text: str) -> list[tuple[Any, ...]]:
        return [tuple(row) for row in self._original.execute(text)]

    def work(self, columns: dict[str, str] | str) -> list[tuple[Any, ...]]:
        """What GPUs did: pid, device, start, end, correlation, category, name, then a column more, for each table by its own text."""
        selects = []
        for kind in LABEL:
            if self.has(f"CUPTI_ACTIVITY_KIND_{kind}"):
                more = columns if isinstance(columns, str) else columns.get(kind, "NULL")
                selects.append(
                    f'SELECT {PID}, deviceId, start, "end", nullif(correlationId, 0), {GPU[kind]}, {LABEL[kind]}, {more} '
                    f"FROM CUPTI_ACTIVITY_KIND_{kind} t"
                )
        return self.sql(" UNION ALL ".join(selects))

    def _calls(self) -> dict[tuple[int, int], tuple[int, int, int, str]]:
        """Calls by pid and correlation: tid, start, end, name."""
        text = f'SELECT globalTid, correlationId, start, "end", {NAME.format("nameId")} FROM CUPTI_ACTIVITY_KIND_RUNTIME'
        return {
            ((tid >> 24) & 0xFFFFFF, correlation): (tid & 0xFFFFFF, start, end, re.sub(r"_v\d+$", "", name))
            for tid, correlation, start, end, name in self.sql(text)
        }

    def _projected(self) -> dict[int, tuple[Any, ...]]:
        """By the original's row of a range: start, end, style, name, pid, tid, and what was launched in it: start, end, name, category."""
        work: dict[tuple[int, int], list[tuple[int, int, str, str]]] = defaultdict(list)
        for pid, _, start, end, correlation, category, name, _ in self.work({}):
            if correlation is not None:
                work[pid, correlation].append((start, end, name, category))
        found: dict[int, tuple[Any, ...]] = {}
        for number, *about, correlation in self.sql(INSIDE.format("true")) if self.has("NVTX_EVENTS") else ():
            pid = about[4]
            if work.get((pid, correlation)):
                found.setdefault(number, (*about, []))[-1].extend(work[pid, correlation])
        return found


def block(values: Iterable[int], scale: float = 1) -> tuple[Any, ...]:
    """Total, count, mean, median, least, greatest, deviation."""
    known = [value / scale for value in values] if scale != 1 else list(values)
    deviation = statistics.stdev(known) if len(known) > 1 else 0.0
    return (
        sum(known),
        len(known),
        statistics.fmean(known),
        statistics.median(known),
        min(known),
        max(known),
        deviation,
    )


def groups(pairs: Iterable[tuple[Any, int]]) -> dict[Any, list[int]]:
    found: dict[Any, list[int]] = defaultdict(list)
    for key, value in pairs:
        found[key].append(value)
    return found


def keyed(rows: list[Row], keys: list[str]) -> dict[Any, Row]:
    """Rows by their keys, those that a table leaves out being None; a device is its number."""
    found = {}
    for row in rows:
        device = re.search(r"\((\d+)\)$", row.get("Device") or "")
        values = {**row, "Device": int(device[1]) if device else None}
        found[tuple(values.get(key) for key in keys)] = row
    assert len(found) == len(rows)
    return found


def compare(
    rows: list[Row],
    keys: list[str],
    expected: dict[Any, list[int]],
    *,
    count: str,
    scale: float = 1,
    unit: str = "ns",
    shares: bool = True,
) -> None:
    """The rows of a summary against the values of each group. Shares are of the rows with the same PID and device."""
    figures = ["Total Time (ns)" if unit == "ns" else "Total (MB)", count]
    figures += [f"{name} ({unit})" for name in ("Avg", "Med", "Min", "Max", "StdDev")]
    # keys by which the table does not tell rows apart are not in it
    kept = [number for number, key in enumerate(keys) if key in rows[0] or key not in ("PID", "Device")]
    keys = [keys[number] for number in kept]
    expected = {tuple(key[number] for number in kept): values for key, values in expected.items()}
    found = keyed(rows, keys)
    assert found.keys() == expected.keys()
    for key, values in expected.items():
        assert [found[key][name] for name in figures] == pytest.approx(block(values, scale), rel=1e-9), key
    for where in {(row.get("PID"), row.get("Device")) for row in rows} if shares else ():
        mine = [row for row in rows if (row.get("PID"), row.get("Device")) == where]
        whole = sum(row["Total Time (ns)"] for row in mine)
        assert [row["Total Time (ns)"] for row in mine] == sorted(
            (row["Total Time (ns)"] for row in mine), reverse=True
        )
        assert [row["Time (%)"] for row in mine] == pytest.approx(
            [100 * row["Total Time (ns)"] / whole for row in mine]
        )


def kernels(both: Both, name: str, *more: str) -> list[tuple[Any, ...]]:
    """Pid, device, duration, name and what else is asked for, of each kernel."""
    columns = ", ".join((NAME.format(name), *more))
    return both.sql(f'SELECT {PID}, deviceId, "end" - start, {columns} FROM CUPTI_ACTIVITY_KIND_KERNEL')
