"""Reads the CSV files of rocprofv3: one for each kind of record, with the process id before the kind in the name."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from warplens.errors import ReportError
from warplens.importers.rocprof.records import NUMBERS, TEXTS, RocmAgent, RocmProcess, normalised

_HEAD = 4096
# By which columns each kind is known, the first that fits; None: counted, but not taken over.
_KINDS: tuple[tuple[str, tuple[str, ...], bool], ...] = (
    ("counters", ("Counter_Name", "Counter_Value"), False),
    ("kernels", ("Kernel_Name", "Workgroup_Size_X", "Start_Timestamp"), True),
    ("copies", ("Direction", "Source_Agent_Id", "Start_Timestamp"), True),
    ("allocations", ("Allocation_Size", "Address", "Start_Timestamp"), True),
    ("scratch memory", ("Alloc_Flags", "Start_Timestamp"), False),
    ("calls", ("Domain", "Function", "Correlation_Id", "Start_Timestamp"), True),
    ("samples of the program counter", ("Sample_Timestamp", "Exec_Mask"), False),
    ("agents", ("Node_Id", "Agent_Type", "Cu_Count"), True),
    ("sums", ("Name", "Calls", "TotalDurationNs"), False),
)
_RUN = re.compile(
    r"_?(?=(?:hip|hsa|kernel|marker|memory|scratch|rccl|roc(?:decode|jpeg)|agent|counter|domain|pc_sampling)_)"
)
_MARKER = "MARKER"
_MARKER_CALLS = ("MARKER_CONTROL_API", "MARKER_NAME_API")


def kind_of(path: Path) -> str:
    """Return the kind of record in a CSV file, empty if rocprofv3 did not write it. Raises OSError."""
    with open(path, "rb") as file:
        line = file.read(_HEAD).partition(b"\n")[0].decode(errors="replace")
    columns = {name.strip().strip('"') for name in line.split(",")}
    return next((kind for kind, needed, _ in _KINDS if columns.issuperset(needed)), "")


def run_of(path: Path) -> str:
    """Return the part of a file's name that all files of one process share, such as `717` of `717_hip_api_trace.csv`."""
    return _RUN.split(path.name, maxsplit=1)[0] if _RUN.search(path.name) else path.stem


def read(paths: Iterable[Path]) -> list[RocmProcess]:
    """Return the processes of these files. Raises ReportError, which names the file that is broken."""
    processes: dict[str, RocmProcess] = {}
    for path in paths:
        run = run_of(path)
        process = processes.setdefault(run, RocmProcess(int(run) if run.isdigit() else 0, name=run))
        kind = kind_of(path)
        rows, lost = _rows(path, kind)
        process.drop("lines that are not records", lost)
        if kind == "agents":
            process.gpus += _gpus(rows)
        elif kind == "calls":
            _calls(process, rows)
        elif kind in NUMBERS:
            process.add(kind, rows)
        else:
            process.drop(kind, rows.num_rows)
    return list(processes.values())


def _rows(path: Path, kind: str) -> tuple[pa.Table, int]:
    """Return the rows of a file, and how many lines were left out for having other columns."""
    lost = 0

    def skip(row: pa.csv.InvalidRow) -> str:
        nonlocal lost
        lost += 1
        return "skip"

    types = {name: pa.int64() for name in NUMBERS.get(kind, ())} | {
        name: pa.string() for name in TEXTS.get(kind, ())
    }
    try:
        rows = pa.csv.read_csv(
            path,
            parse_options=pa.csv.ParseOptions(newlines_in_values=True, invalid_row_handler=skip),
            convert_options=pa.csv.ConvertOptions(column_types=types),
        )
    except pa.ArrowInvalid as error:
        raise ReportError(
            f"{path} is broken: {str(error).splitlines()[0]}. Record it again, or take the file "
            "out of the folder."
        ) from error
    if kind not in NUMBERS:
        return rows, lost
    return normalised(kind, {name: rows.column(name) for name in rows.column_names}), lost


def _calls(process: RocmProcess, rows: pa.Table) -> None:
    """Divide calls from markers, which have the same columns."""
    domains = rows.column("Domain").to_pylist()
    if not process.pid and rows.num_rows:
        process.pid = rows.column("Process_Id")[0].as_py()
    marked = pa.array([domain.startswith(_MARKER) for domain in domains], pa.bool_())
    about = pa.array([domain in _MARKER_CALLS for domain in domains], pa.bool_())
    process.add("calls", rows.filter(pa.compute.invert(marked)))
    process.drop("calls that control or name markers", pa.compute.sum(about).as_py() or 0)
    markers = rows.filter(pa.compute.and_not(marked, about))
    if markers.num_rows:
        process.add(
            "markers", normalised("markers", {name: markers.column(name) for name in rows.column_names})
        )


def _gpus(rows: pa.Table) -> list[RocmAgent]:
    """Return the GPUs among the agents, in the order of their nodes."""
    gpus = [row for row in rows.to_pylist() if row["Agent_Type"] == "GPU"]
    gpus.sort(key=lambda row: row["Node_Id"])
    return [
        RocmAgent(
            (f"{row['Node_Id']}", f"Agent {row['Node_Id']}", f"GPU {number}"),
            str(row.get("Product_Name") or row.get("Name") or f"GPU {number}"),
            units=row.get("Cu_Count"),
        )
        for number, row in enumerate(gpus)
    ]
