"""Reads the capture windows from a control file, and the limits that applied.

Nothing in it is trusted.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

from warplens.handover.control_layout import (
    CUDA,
    CUDA_AT,
    FILE_SIZE,
    GATE,
    LIMITS,
    MOST_WINDOWS,
    PAGE,
    VERSION,
    WINDOW,
    WINDOWS,
    cause,
)
from warplens.handover.untrusted import read
from warplens.spool.layout import CONTROL_MAGIC

_HEAD = struct.Struct("<8sI")
_GATE = struct.Struct("<I")
_LIMITS = struct.Struct("<QQQQ")
_TRACE, _ALL_APIS, _NO_API = 1, 2, 512  # kCudaTrace, kCudaAllApis, kCudaNoApi
_LATEST = 1 << 62


@dataclass(frozen=True)
class Window:
    """Begin and end in ns on the spool's clock; `end` 0: nobody closed it.

    `pid` 0: the launcher opened it.
    """

    number: int
    start: int
    end: int
    opened_by: str
    closed_by: str
    pid: int


@dataclass(frozen=True)
class CaptureWindows:
    """`keep_ns`: length of the kept end of the run, 0 = all.

    `over`: how often `max_bytes` kept a file from growing.

    `full`: there was no room for another window. `damaged`: number of invalid windows, which are left out.
    Of CUDA: `all_apis`, whether calls were wanted that other calls make; `flush_ms`, how often CUPTI was requested records, 0 = never;
    `calls`, whether calls were recorded.
    """

    windows: tuple[Window, ...] = ()
    keep_ns: int = 0
    max_bytes: int = 0
    over: int = 0
    full: bool = False
    damaged: int = 0
    all_apis: bool = False
    flush_ms: int = 0
    calls: bool = False


def read_file(path: Path) -> bytes:
    """Return what of a control file has a meaning.

    Empty if there is none, or something else of that name.
    """
    try:
        return read(path, FILE_SIZE)
    except OSError:
        return b""


def read_capture(data: bytes) -> CaptureWindows | None:
    """Read a control file; None if it is none, or one of another version."""
    if len(data) < PAGE or _HEAD.unpack_from(data) != (CONTROL_MAGIC, VERSION):
        return None
    (gate,) = _GATE.unpack_from(data, GATE)
    keep_ns, max_bytes, _, over = _LIMITS.unpack_from(data, LIMITS)
    known = min((gate + 1) // 2, (len(data) - WINDOWS) // WINDOW.size, MOST_WINDOWS)
    cuda_flags, flush_ms, *_ = CUDA.unpack_from(data, CUDA_AT)
    windows: list[Window] = []
    damaged = 0
    for index in range(max(known, 0)):
        start, end, opener, closer, pid, _ = WINDOW.unpack_from(data, WINDOWS + index * WINDOW.size)
        last = index == known - 1
        # One that is closed by nobody is followed by no other.
        if not 0 < start <= _LATEST or not (start <= end <= _LATEST or (end == 0 and last)):
            damaged += 1
            continue
        windows.append(
            Window(
                index + 1,
                start,
                end,
                opened_by=cause(opener),
                closed_by=cause(closer) if end else "",
                pid=pid,
            )
        )
    return CaptureWindows(
        tuple(windows),
        keep_ns=min(keep_ns, _LATEST),
        max_bytes=max_bytes,
        over=over,
        full=gate >= 2 * MOST_WINDOWS,
        damaged=damaged,
        all_apis=bool(cuda_flags & _ALL_APIS),
        flush_ms=flush_ms,
        calls=cuda_flags & (_TRACE | _NO_API) == _TRACE,
    )
