"""Offsets in a control file, for launcher and reader.

Those of `ControlPage` and `CaptureWindow` in native/include/warplens/format.h.
"""

from __future__ import annotations

import struct

PAGE = 4096  # kPage: the same on every machine, whatever its memory pages are
VERSION = 5  # of the control file
HAS_SPACE = 12
PROCESSES = 48
FAILED = 56
ERROR = 64
LOST = 72
NOT_CHAINED = 84
GATE = 88
TRIGGER = 92
LIMITS = 120  # keep_ns, max_bytes, bytes, over
OVER = 144
CUDA = struct.Struct("<8I")  # CudaSettings: flags, flush_ms, backtrace, backtrace_ns[4], nothing
CUDA_AT = 152
CPU = struct.Struct(
    "<6I2Q"
)  # CpuSettings: flags, backtrace, python_hz, native_hz, stack_depth, gil_threshold_ns, os_threshold_ns, os_backtrace_ns
CPU_AT = CUDA_AT + CUDA.size
PAGE_END = CPU_AT + CPU.size
WINDOW = struct.Struct("<QQIIII")  # begin, end, causes of both, process, nothing
MOST_WINDOWS = 8192
WINDOWS = 2 * PAGE
FILE_SIZE = WINDOWS + MOST_WINDOWS * WINDOW.size
CAUSES = ("none", "start", "time", "nvtx", "cudaProfilerApi", "command", "max-size", "keep", "end")


def cause(number: int) -> str:
    """Return the name of a Cause; `none` for a number that means nothing here."""
    return CAUSES[number] if number < len(CAUSES) else CAUSES[0]
