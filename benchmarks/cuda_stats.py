"""Times each CUDA table of `stats` on a report of 10^6 kernels, launches and NVTX ranges."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from _cuda_reports import make_cuda_report
from harness import Row, quickest
from warplens import catalog
from warplens.report import Selection
from warplens.report import open as open_report

KERNELS = 1_000_000
BUDGET_S = 1.0
_SUMS = (
    "cuda_api_sum",
    "cuda_gpu_kern_sum",
    "cuda_gpu_kern_gb_sum",
    "cuda_gpu_mem_time_sum",
    "cuda_gpu_mem_size_sum",
    "cuda_gpu_sum",
)
_JOINED = ("cuda_api_gpu_sum", "cuda_kern_exec_sum", "nvtx_gpu_proj_sum", "nvtx_kern_sum")
_TRACES = ("cuda_api_trace", "cuda_gpu_trace", "cuda_kern_exec_trace", "nvtx_gpu_proj_trace")
_TIME = (
    "gpu_utilization",
    "temporal_breakdown",
    "comm_comp_overlap",
    "kernel_breakdown",
    "queue_length",
    "launch_latency",
    "memory_bandwidth",
)
_BARE = 'SELECT demangled, count(*), sum("end" - start) FROM kernels GROUP BY demangled'


def run(quick: bool) -> list[Row]:
    """Time every table against DuckDB's bare count and sum of the kernels, in turn; the best of three."""
    kernels = KERNELS // 10 if quick else KERNELS
    with tempfile.TemporaryDirectory(prefix="warplens-bench-") as directory:
        report = open_report(make_cuda_report(Path(directory) / "bench.warplens", kernels))
        work: dict[str, Callable[[], object]] = {"": partial(report.sql, _BARE)}
        for name in (*_SUMS, *_JOINED, *_TRACES, *_TIME):
            work[name] = partial(catalog.find("stats.tables", name).load().table, report, Selection())
        best = quickest(work)
        report.close()
    budget = None if quick else BUDGET_S
    what = f"of {kernels:,} kernels"
    return [
        Row(f"{name} {what}", best[name], "s", "DuckDB count and sum alone", best[""], budget, "value")
        for name in work
        if name
    ]
