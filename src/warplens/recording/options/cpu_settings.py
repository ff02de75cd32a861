"""Encodes CPU options as `CpuSettings` flags (format.h)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.recording.agent.library import CpuSettings

if TYPE_CHECKING:
    from warplens.recording.options.capture import CaptureOptions

(
    PYTHON_SAMPLES,
    NATIVE_SAMPLES,
    STATES,
    OS_CALLS,
    FILE_ACCESS,
    GIL,
    GC,
    IMPORTS,
    FUNCTIONS,
    PYTHON_CALLS,
    PYTHON_EVENTS,
    PYTHON_OPCODES,
    OPS,
    OP_INPUTS,
) = (1 << bit for bit in range(14))
WRAPPED = OS_CALLS | FILE_ACCESS | GIL  # what the wrappers of the larger stub see
_BACKTRACES = {"none": 0, "auto": 1, "fp": 2, "dwarf": 3}


def cpu_settings(options: CaptureOptions) -> CpuSettings:
    """Return the CPU settings of the control file."""
    cpu, trace = options.cpu, options.trace
    chosen = {
        PYTHON_SAMPLES: cpu.python_sample,
        NATIVE_SAMPLES: cpu.sample,
        STATES: cpu.states,
        OS_CALLS: "osrt" in trace or cpu.file_access,
        FILE_ACCESS: cpu.file_access,
        GIL: "gil" in trace,
        GC: "gc" in trace,
        IMPORTS: "import" in trace,
        FUNCTIONS: cpu.functions is not None,
        PYTHON_CALLS: "python" in trace,
        PYTHON_EVENTS: "python-events" in trace,
        PYTHON_OPCODES: cpu.python_opcodes,
        OPS: "torch" in trace,
        OP_INPUTS: "torch" in trace and cpu.torch_inputs,
    }
    return CpuSettings(
        flags=sum(flag for flag, on in chosen.items() if on),
        backtrace=_BACKTRACES[cpu.backtrace],
        python_hz=cpu.python_hz,
        native_hz=cpu.native_hz,
        stack_depth=cpu.os_backtrace_depth,
        gil_threshold_ns=cpu.gil_threshold_ns,
        os_threshold_ns=cpu.os_threshold_ns,
        os_backtrace_ns=cpu.os_backtrace_ns,
    )
