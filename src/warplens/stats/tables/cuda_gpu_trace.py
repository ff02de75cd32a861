"""CUDA GPU Trace.

## What it shows
Every operation of the GPUs, in order of start: kernels, copies, memsets, graphs.

## Columns
- Start (ns): time since the start of the report. Duration (ns).
- CorrId: number of the call that launched it (CorrID in cuda_api_trace); unique within the process.
- GrdX, GrdY, GrdZ, BlkX, BlkY, BlkZ: size of the grid (in blocks) and of a block (in threads).
  Reg/Trd: registers per thread.
- StcSMem, DymSMem (MB): shared memory per block in 10^6 bytes: declared by the kernel, and
  requested by the launch.
- Bytes (MB), Throughput (MB/s): of copies and memsets, in 10^6 bytes.
- SrcMemKd, DstMemKd: kind of memory that a copy read and wrote, or that a memset set.
- Host, Rank, PID: the process. Each is shown only if rows differ in it.
- Device: `name (number)`, with CUDA's number in the process. Ctx, GreenCtx, Strm: number of the
  context, the green context (not recorded) and the stream.
- Name: the kernel's full name (`:base`, `:mangled`: as in cuda_gpu_kern_sum),
  `[CUDA memcpy Host-to-Device]`, `[CUDA memset]`, `[CUDA graph 3]`.

## How it is computed
The rows of `kernels`, `memcpys`, `memsets`, `graphs` and the migrations of `um_events`, sorted by
time. With a filter, operations that overlap the selected time.

## Traps
- Rows of several streams and GPUs overlap: the time between two rows is not a gap.
- One line per operation: millions make a long text. Use --filter-time or --filter-nvtx, or SQL.
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
    """Return the trace; raises MissingData if no GPU did anything.

    Args:
        report: the report.
        selection: the part to use.
        nvtx_name: put the innermost NVTX push/pop range around the launch before the kernel's name,
            with a slash.
        base: print the function name alone, without namespaces, template arguments and parameters.
        mangled: print the name in the binary.
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
