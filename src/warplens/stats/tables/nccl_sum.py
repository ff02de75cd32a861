"""NCCL Summary.

## What it shows
Calls, data volume and number of ranks of each NCCL function: one row per function, reduction and
size of the communicator.

## Columns
- Time (%): the row's share of the Total Time of all rows. Total Time, Avg, Med, Min, Max (ns):
  durations of the calls on the host.
- Calls: number of calls.
- Total (MB), Avg (MB), Min (MB), Max (MB): sizes of the messages in 10^6 bytes, as NCCL reports
  them; empty if a call moves nothing.
- Ranks: number of ranks in the communicator; empty if its creation was not recorded. Operation: the
  reduction, e.g. `Sum`.
- Name: the function, e.g. `ncclAllReduce`.

## How it is computed
From the ranges that NCCL itself writes into the NVTX domain `NCCL`, and their payloads. Calls that
overlap the selected time count with their full duration. The largest total comes first.

## Traps
- A call puts work into a stream and returns: its time is not that of the transfer.
  nvtx_gpu_proj_sum shows its GPU time.
- Sizes are those of one rank's call: the sum over all ranks counts a message once for each of them.
- A report of several ranks sums over them; nccl_trace lists them separately.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.nccl import calls
from warplens.stats.sums import MEGABYTE

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_KEYS = ("ranks", "operation", "name")


def table(report: Report, selection: Selection) -> pa.Table:
    """Return the summary; raises MissingData if NCCL was not recorded."""
    rows = calls(report, selection)
    rows = rows.append_column("duration", pc.subtract(rows.column("end"), rows.column("start")))
    rows = rows.sort_by([(name, "ascending") for name in (*_KEYS, "duration")])
    durations = rows.column("duration").to_numpy()
    spent = max(int(durations.sum()), 1)
    groups = [
        _group(rows.slice(begin, end - begin), durations[begin:end], spent) for begin, end in _groups(rows)
    ]
    groups.sort(key=lambda row: -row["Total Time (ns)"])
    sizes = [(name, pa.float64()) for name in ("Total (MB)", "Avg (MB)", "Min (MB)", "Max (MB)")]
    times = [("Med (ns)", pa.float64()), ("Min (ns)", pa.int64()), ("Max (ns)", pa.int64())]
    first = [
        ("Time (%)", pa.float64()),
        ("Total Time (ns)", pa.int64()),
        ("Calls", pa.int64()),
        ("Avg (ns)", pa.float64()),
    ]
    last = [("Ranks", pa.int64()), ("Operation", pa.string()), ("Name", pa.string())]
    return pa.Table.from_pylist(groups, pa.schema([*first, *times, *sizes, *last]))


def _groups(rows: pa.Table) -> list[tuple[int, int]]:
    """Begin and end of each group of sorted rows."""
    changes = np.zeros(max(rows.num_rows - 1, 0), bool)
    for name in _KEYS:
        codes = (
            rows.column(name)
            .combine_chunks()
            .dictionary_encode(null_encoding="encode")
            .indices.to_numpy(zero_copy_only=False)
        )
        changes |= np.diff(codes) != 0
    edges = [0, *(np.flatnonzero(changes) + 1).tolist(), rows.num_rows]
    return list(itertools.pairwise(edges))


def _group(rows: pa.Table, durations: np.ndarray[Any, np.dtype[np.int64]], spent: int) -> dict[str, Any]:
    total = int(durations.sum())
    sizes = pc.cast(rows.column("bytes"), pa.float64())
    figures = {
        name: call(sizes).as_py()
        for name, call in (("Total", pc.sum), ("Avg", pc.mean), ("Min", pc.min), ("Max", pc.max))
    }
    return {
        "Time (%)": 100 * total / spent,
        "Total Time (ns)": total,
        "Calls": rows.num_rows,
        "Avg (ns)": total / rows.num_rows,
        "Med (ns)": float(np.median(durations)),
        "Min (ns)": int(durations[0]),
        "Max (ns)": int(durations[-1]),
        **{f"{name} (MB)": None if value is None else value / MEGABYTE for name, value in figures.items()},
        **{name.capitalize(): rows.column(name)[0].as_py() for name in _KEYS},
    }
