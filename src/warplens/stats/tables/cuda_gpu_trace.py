"""CUDA GPU Trace.

## What it shows
Everything the GPUs did, in the order it began: kernels, copies, memsets, graphs.

## Columns
- Start (ns): from the begin of the report. Duration (ns).
- CorrId: CorrID of the call in cuda_api_trace that launched it; unique in its process.
- GrdX, GrdY, GrdZ, BlkX, BlkY, BlkZ: sizes of the grid (in blocks) and of a block (in threads). Reg/Trd: registers of each thread.
- StcSMem, DymSMem (MB): shared memory of each block, as the kernel declares and as the launch asks for; in 10^6 bytes.
- Bytes (MB), Throughput (MB/s): of copies and memsets, in 10^6 bytes.
- SrcMemKd, DstMemKd: memory that a copy came from and went to, or that was set.
- Host, Rank, PID: of the process; each only where the rows differ in it.
- Device: `name (number)`, as CUDA numbers them in the process. Ctx, GreenCtx, Strm: numbers of context, green context (not recorded)
  and stream.
- Name: the kernel's full name (`:base`, `:mangled`: as in cuda_gpu_kern_sum), `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`,
  `[CUDA graph 3]`.

## How it is computed
The rows of `kernels`, `memcpys`, `memsets`, `graphs` and the migrations of `um_events`, sorted by time. With a filter, operations that
overlap the selected time.

## Traps
- Rows of several streams and GPUs overlap; the time from one row to the next is no gap.
- One line per operation: millions make a long text. Take --filter-time or --filter-nvtx, or SQL.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.gpu.ops import during, operations
from warplens.errors import MissingData
from warplens.stats.places import device_names, places
from warplens.stats.sums import megabytes, naming

if TYPE_CHECKING:
    from warplens.report import Report, Selection

DEFAULT = False  # `warplens stats` prints it only when asked by name
_SHORT = {"Grd": "grid", "Blk": "block"}


def table(
    report: Report,
    selection: Selection,
    *,
    nvtx_name: bool = False,
    base: bool = False,
    mangled: bool = False,
) -> pa.Table:
    """Return the trace; MissingData where no GPU did anything.

    Args:
        report: the report.
        selection: which part of it.
        nvtx_name: put the innermost NVTX push/pop range around the launch before a kernel's name, with a slash.
        base: the function's name alone, without namespaces, template arguments and parameters.
        mangled: the name as in the binary.
    """
    relation = operations(naming(base, mangled), nvtx_name, details=True)
    rows = report.sql(
        f'SELECT * FROM {relation} WHERE {during(report, selection)} ORDER BY "start", process, device, stream, id'
    )
    if not rows.num_rows:
        raise MissingData(f"does not contain CUDA kernel or GPU memory data{selection.place(report)}.")
    process, device = rows.column("process"), rows.column("device")
    duration = pc.subtract(rows.column("end"), rows.column("start"))
    size = megabytes(rows.column("bytes"))
    seconds = pc.divide(
        pc.cast(pc.if_else(pc.greater(duration, 0), duration, None), pa.float64(), safe=False), 1e9
    )
    return pa.table(
        {
            "Start (ns)": pc.subtract(rows.column("start"), report.origin),
            "Duration (ns)": duration,
            "CorrId": rows.column("correlation"),
            **{
                f"{short}{axis.upper()}": rows.column(f"{what}_{axis}")
                for short, what in _SHORT.items()
                for axis in "xyz"
            },
            "Reg/Trd": rows.column("registers"),
            "StcSMem (MB)": megabytes(rows.column("static_shared")),
            "DymSMem (MB)": megabytes(rows.column("dynamic_shared")),
            "Bytes (MB)": size,
            "Throughput (MB/s)": pc.divide(size, seconds),
            "SrcMemKd": rows.column("source_kind"),
            "DstMemKd": rows.column("destination_kind"),
            **places(report, process),
            "Device": device_names(report, process, device),
            "Ctx": rows.column("context"),
            "GreenCtx": pa.nulls(rows.num_rows, pa.int64()),
            "Strm": rows.column("stream"),
            "Name": rows.column("operation"),
        }
    )
