"""Encodes CUDA options as `CudaSettings` flags (format.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.recording.agent.library import CudaSettings
from warplens.recording.options.cuda import BACKTRACE_CATEGORIES

if TYPE_CHECKING:
    from warplens.recording.options.capture import CaptureOptions

TRACE, ALL_APIS, GRAPH_NODES, MEMORY, UM, UM_CPU_FAULTS, UM_GPU_FAULTS, EVENTS, TOGGLE = (
    1 << bit for bit in range(9)
)
_LONGEST_NS = 0xFFFFFFFF


def cuda_settings(options: CaptureOptions) -> CudaSettings:
    """Return the CUDA settings of the control file; all off unless `trace` names CUDA."""
    if "cuda" not in options.trace:
        return CudaSettings(flush_ms=0)
    cuda = options.cuda
    chosen = {
        TRACE: True,
        ALL_APIS: cuda.all_apis,
        GRAPH_NODES: cuda.graph_nodes,
        MEMORY: cuda.memory,
        UM: cuda.um_migrations or cuda.um_cpu_faults or cuda.um_gpu_faults,
        UM_CPU_FAULTS: cuda.um_cpu_faults,
        UM_GPU_FAULTS: cuda.um_gpu_faults,
        EVENTS: cuda.events,
        TOGGLE: begins_later(options),
    }
    thresholds = dict(cuda.backtrace)
    return CudaSettings(
        flags=sum(flag for flag, on in chosen.items() if on),
        flush_ms=cuda.flush_ms,
        backtrace=sum(1 << bit for bit, name in enumerate(BACKTRACE_CATEGORIES) if name in thresholds),
        backtrace_ns=_four([min(thresholds.get(name, 0), _LONGEST_NS) for name in BACKTRACE_CATEGORIES]),
    )


def begins_later(options: CaptureOptions) -> bool:
    """Say whether windows open while the program runs: until the first one, CUPTI need not work.

    What happens when a window closes is for the agent to decide: CUPTI 13.0 gets launches of graphs wrong after a pause, so where
    other windows may follow, it leaves that one on.
    """
    return options.start_later or options.delay > 0 or options.capture_range != "none"


def _four(values: list[int]) -> tuple[int, int, int, int]:
    first, second, third, fourth = values
    return first, second, third, fourth
