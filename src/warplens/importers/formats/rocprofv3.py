"""Output of rocprofv3, the profiler of AMD's GPUs: its JSON, its CSV files, or a folder of either.

## Made by
`rocprofv3 --hip-trace --kernel-trace --memory-copy-trace --marker-trace --output-format json csv --
./program` of ROCm 6.2 and later. One JSON file holds everything. CSV has one file for each kind of
record, so import the folder.

## What maps to what
| there | here |
|---|---|
| `kernel_dispatch`, `*_kernel_trace.csv` | `kernels`; the grid is in blocks, as in CUDA |
| `memory_copy`, `*_memory_copy_trace.csv` | `memcpys` |
| `hip_api`, `hsa_api` | `cuda_api`: HIP as `runtime`, HSA as `driver` |
| `rccl_api`, `rocdecode_api`, `rocjpeg_api` | `nvtx_ranges` of the domain of the library |
| `marker_api` (ROCTx) | `nvtx_ranges`, `nvtx_marks` |
| `memory_allocation` | `gpu_memory` |
| agents, queues or streams | `devices`, `streams`, with a context for each device |
| processes of one JSON, files of one process id | `processes` of one part |

## What is dropped
Counters, samples of the program counter, scratch memory, sums, and calls that only name or control
markers; `diagnostics` counts them. CSV files contain neither the sizes of copies nor the errors of
calls.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from warplens.errors import NotAReport, ReportError
from warplens.importers.file_names import in_order, rank_in
from warplens.importers.rocprof import csv_files, json_file
from warplens.importers.rocprof.tables import RocmTables
from warplens.importers.rows import whole_window
from warplens.storage.writer import Facts

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.importers.rocprof.records import RocmProcess
    from warplens.storage.writer import PartWriter

SUFFIXES = ("_results.json", "_trace.csv")
CONTENT = "output of rocprofv3"
DROPS: tuple[str, ...] = ("counters", "samples of the program counter", "scratch memory", "sums")
_HEAD = 4096
_BEGIN = re.compile(rb'\s*\{\s*"' + json_file.ROOT.encode() + rb'"\s*:')
_HOST = "rocprofv3"
_LATEST = 1 << 62


def recognises(path: Path) -> bool:
    """Say whether the file is JSON or CSV of rocprofv3, or the folder holds such files."""
    if path.is_dir():
        return bool(_files(path))
    return _is_json(path) or bool(csv_files.kind_of(path))


def _is_json(path: Path) -> bool:
    with open(path, "rb") as file:
        return bool(_BEGIN.match(file.read(_HEAD)))


def _files(folder: Path) -> list[Path]:
    """Return the files of a folder that rocprofv3 wrote. Raises OSError."""
    return in_order(
        path
        for path in folder.iterdir()
        if path.suffix in (".csv", ".json") and path.is_file() and recognises(path)
    )


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError for a file that is broken, NotAReport if nothing in it has a time.
    """
    files = _files(source) if source.is_dir() else [source]
    whole = [path for path in files if path.suffix == ".json"]
    # Where both are in a folder, JSON has all that CSV has.
    processes: list[RocmProcess] = []
    for path in whole:
        processes += json_file.read(path)
        processes[-1].rank = rank_in(path.name)
    if not whole:
        processes = csv_files.read(files)
    progress("read", 0.5)
    written: list[RocmTables] = []
    for process in processes:
        tables = RocmTables(part, process, len(written))
        if any(rows.num_rows for rows in process.tables.values()):
            if abs(tables.begin) > _LATEST or abs(tables.end) > _LATEST:
                raise ReportError(f"{source} is broken: it has events at impossible times.")
            tables.write()
            written.append(tables)
    if not written:
        dropped = ", ".join(sorted({kind for process in processes for kind in process.dropped}))
        raise NotAReport(
            f"{source} contains no calls, kernels, copies or "
            f"markers{f', only {dropped}' if dropped else ''}; "
            "record with `rocprofv3 --sys-trace`, or import the whole folder."
        )
    described = [tables.described(_HOST) for tables in written]
    part.write("processes", [row for row, _ in described])
    part.write("threads", [row for _, rows in described for row in rows])
    origin, end = min(tables.begin for tables in written), max(tables.end for tables in written)
    part.write("capture_windows", whole_window(part.part, _HOST, begin=origin, end=end))
    part.write("targets", [_target(part)])
    notes = [(tables.key, *note) for tables in written for note in tables.notes]
    notes += [
        (tables.key, "info", f"{kind} have no place in a report", count)
        for tables in written
        for kind, count in tables.process.dropped.items()
    ]
    part.write(
        "diagnostics",
        [
            {
                "severity": severity,
                "code": "not-imported" if severity == "info" else "incomplete",
                "source": "rocprofv3",
                "message": text,
                "count": count,
                "process": key,
            }
            for key, severity, text, count in notes
        ],
    )
    progress("write", 1.0)
    sources = {"cuda": {"on": True, "by": "rocprofv3"}, "nvtx": {"on": True, "by": "rocprofv3"}}
    return Facts(
        id=part.id,
        host=_HOST,
        boot_id=part.id,
        command=[written[0].process.name or source.name],
        origin=origin,
        end=end,
        clock="rocprofv3",
        sources=sources,
    )


def _target(part: PartWriter) -> dict[str, object]:
    texts = dict.fromkeys(("os", "kernel", "machine", "cpu"), "")
    return {"host": _HOST, "boot_id": part.id, **texts, "cpus": 0, "memory": 0}
