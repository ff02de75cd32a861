"""Compares our findings with the documented rules of `nsys analyze`, for docs/dev/findings.md.

usage: PYTHON tools/documented_rules.py TRACE…

Six rules of the guide are about CUDA: asynchronous copies of pageable memory, copies and memsets that block the host, calls that wait
for all work, gaps of a GPU above 500 ms, and of 30 equal parts of a GPU's time those in which it worked less than half. They list rows;
none says what a fix wins. This counts the rows that they would list.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "src")]

from warplens.errors import MissingData  # noqa: E402
from warplens.importers.importing import import_file  # noqa: E402
from warplens.model.words import duration  # noqa: E402
from warplens.report import Report, Selection  # noqa: E402
from warplens.report import open as open_report  # noqa: E402
from warplens.rules.gpus import gpus  # noqa: E402
from warplens.rules.judging import judge  # noqa: E402

_GAP, _CHUNKS, _BUSY = 500_000_000, 30, 0.5
_COPY = "memcpys m JOIN cuda_api a ON m.api = a.id WHERE a.name"
_CALLS = {
    "cuda_memcpy_async": f"{_COPY} ILIKE '%Async%' AND 'Pageable' IN (m.source_kind, m.destination_kind)",
    "cuda_memcpy_sync": f"{_COPY} NOT ILIKE '%Async%' AND m.kind <> 'Device-to-Device'",
    "cuda_memset_sync": "memsets m JOIN cuda_api a ON m.api = a.id "
    "WHERE a.name NOT ILIKE '%Async%' AND m.memory_kind IN ('Pinned', 'Managed')",
    "cuda_api_sync": "cuda_api a WHERE a.name SIMILAR TO '(cuda|hip)(Device|Stream)Synchronize'",
}


def main() -> int:
    """Print a row for each trace."""
    names = [*_CALLS, "gpu_gaps", "gpu_time_util"]
    print(f"| trace | {' | '.join(names)} | what warplens says first |")
    print("|---|" + "--:|" * len(names) + "---|")
    for path in map(Path, sys.argv[1:]):
        with tempfile.TemporaryDirectory() as folder:
            report_path = Path(folder) / "run.warplens"
            import_file(path, report_path)
            with open_report(report_path) as report:
                print(
                    f"| {path.name.partition('.')[0]} | {' | '.join(map(str, _rows(report)))} | {_first(report)} |"
                )
    return 0


def _rows(report: Report) -> list[int]:
    counts = [
        int(report.sql(f"SELECT count(*) AS n FROM {text}").to_pylist()[0]["n"]) for text in _CALLS.values()
    ]
    gaps = low = 0
    try:
        devices = gpus(report, Selection())
    except MissingData:
        devices = ()
    for gpu in devices:
        idle = gpu.idle.end - gpu.idle.start
        gaps += int((idle > _GAP).sum())
        edges = np.linspace(gpu.begin, gpu.finish, _CHUNKS + 1).astype(np.int64)
        part = gpu.busy.within(edges[:-1], edges[1:]) / np.maximum(np.diff(edges), 1)
        low += int((part < _BUSY).sum())
    return [*counts, gaps, low]


def _first(report: Report) -> str:
    findings = judge(report, Selection()).distinct
    if not findings or findings[0].severity not in ("high", "medium"):
        return "nothing of weight"
    first = findings[0]
    return f"`{first.rule}`, {duration(first.estimate if first.estimate is not None else first.bound or 0)}"


if __name__ == "__main__":
    sys.exit(main())
