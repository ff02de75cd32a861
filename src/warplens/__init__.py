"""warplens shows where the time of a GPU program goes.

    import warplens
    report = warplens.open("report1.warplens")
    report.table("nvtx_ranges")            # Arrow
    report.sql("SELECT message, count(*) FROM nvtx_ranges GROUP BY 1")
    report.stats("cuda_gpu_kern_sum").to_pandas()
    report.findings()                      # what costs time, why, and what to do

`warplens.nvtx` annotates a program; `with warplens.record("report1"):` records it without a launcher, `warplens.torch.profile` its
training steps.
Importing `warplens` alone loads nothing heavy: each name is loaded when it is used.
"""

from __future__ import annotations

from warplens._version import __version__

# `typing` and `importlib` would be most of what `import warplens.nvtx` costs a program: type checkers know this name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warplens import nvtx
    from warplens.errors import (
        CaptureError,
        MissingData,
        NewerReport,
        NotAReport,
        QueryError,
        ReportError,
        SpoolError,
        UsageError,
        WarplensError,
    )
    from warplens.flows.answers import Report
    from warplens.flows.differing import diff
    from warplens.flows.foreign import open
    from warplens.recording.agent.prepare import prepare
    from warplens.recording.own_process import record, start, stop
    from warplens.recording.windows.marking import capture
    from warplens.recording.windows.profiler_api import CudaProfiler
    from warplens.report import Selection

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
    "WarplensError",
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
    "CudaProfiler": "warplens.recording.windows.profiler_api",
    "Report": "warplens.flows.answers",
    "Selection": "warplens.report",
    "capture": "warplens.recording.windows.marking",
    "diff": "warplens.flows.differing",
    "open": "warplens.flows.foreign",
    "prepare": "warplens.recording.agent.prepare",
    "record": "warplens.recording.own_process",
    "start": "warplens.recording.own_process",
    "stop": "warplens.recording.own_process",
}


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in ("nvtx", "torch"):
        return import_module(f"warplens.{name}")
    if name in __all__:
        value = getattr(import_module(_HOMES.get(name, "warplens.errors")), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'warplens' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
