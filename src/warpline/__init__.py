"""warpline shows where the time of a GPU program goes.

    import warpline
    report = warpline.open("report1.warpline")
    report.table("nvtx_ranges")            # Arrow
    report.sql("SELECT message, count(*) FROM nvtx_ranges GROUP BY 1")
    report.stats("cuda_gpu_kern_sum").to_pandas()
    report.findings()                      # what costs time, why, and what to do

`warpline.nvtx` annotates a program; `with warpline.record("report1"):` records it without a launcher.
Importing `warpline` alone loads nothing heavy: each name is loaded when it is used.
"""

from __future__ import annotations

from warpline._version import __version__

# `typing` and `importlib` would be most of what `import warpline.nvtx` costs a program: type checkers know this name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warpline import nvtx
    from warpline.capture.marking import capture
    from warpline.capture.prepare import prepare
    from warpline.capture.profiler_api import CudaProfiler
    from warpline.capture.record import record, start, stop
    from warpline.errors import (
        CaptureError,
        MissingData,
        NewerReport,
        NotAReport,
        QueryError,
        ReportError,
        SpoolError,
        UsageError,
        WarplineError,
    )
    from warpline.flows.answers import Report
    from warpline.flows.differing import diff
    from warpline.flows.foreign import open
    from warpline.query import Selection

__all__ = [
    "CaptureError",
    "CudaProfiler",
    "MissingData",
    "NewerReport",
    "NotAReport",
    "QueryError",
    "Report",
    "ReportError",
    "Selection",
    "SpoolError",
    "UsageError",
    "WarplineError",
    "__version__",
    "capture",
    "diff",
    "nvtx",
    "open",
    "prepare",
    "record",
    "start",
    "stop",
]

_HOMES = {
    "CudaProfiler": "warpline.capture.profiler_api",
    "Report": "warpline.flows.answers",
    "Selection": "warpline.query",
    "diff": "warpline.flows.differing",
    "open": "warpline.flows.foreign",
    "prepare": "warpline.capture.prepare",
    "record": "warpline.capture.record",
    "start": "warpline.capture.record",
    "stop": "warpline.capture.record",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("capture", "nvtx"):
        return import_module(f"warpline.{name}")
    if name in __all__:
        value = getattr(import_module(_HOMES.get(name, "warpline.errors")), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'warpline' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
