"""Recording options and their defaults."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from warplens.recording.options.cpu import CpuOptions
from warplens.recording.options.cuda import CudaOptions
from warplens.recording.options.gpu import GpuMetrics

Wait = Literal["primary", "all"]
Trigger = Literal["none", "nvtx", "cudaProfilerApi"]
# What happens when the trigger's range ends: nothing; no more windows; that, and the recording is over; the next one counts again.
RangeEnd = Literal["none", "stop", "stop-shutdown", "repeat", "repeat-shutdown"]


Convert = Literal["during", "end"]


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """One recording.

    `trace` names the sources that record; `environment` is added to the program's environment; `wait` says whether the
    recording ends with the launched process (`primary`) or with its last descendant (`all`); `spool_dir` overrides the
    choice of a node-local directory; `keep_raw` keeps the spool in the report; `convert` says when the report is written.

    Recording begins at once unless `start_later`, `delay` (s) or `capture_range` says otherwise; `duration` (s) ends it. `nvtx_capture`
    is MESSAGE, MESSAGE@DOMAIN or MESSAGE@*. `range_count` windows are recorded with the two `repeat`s, 0 = any number. `kill` is the
    signal that the program gets when the recording is over before it is, 0 = none. In `domains_included` and `domains_excluded` ""
    is the default domain. `keep_last` (s) makes it a flight recorder; `max_size` (bytes) bounds the spool; `session` is the name by
    which other commands find the recording. `cuda` says what of CUDA is recorded where `trace` names it, `cpu` what of the CPU side,
    `gpu_metrics` what a launcher samples of the GPUs.
    """

    trace: tuple[str, ...] = ("cuda", "nvtx")
    environment: tuple[tuple[str, str], ...] = ()
    wait: Wait = "all"
    spool_dir: Path | None = None
    keep_raw: bool = False
    convert: Convert = "during"
    start_later: bool = False
    delay: float = 0.0
    duration: float | None = None
    capture_range: Trigger = "none"
    nvtx_capture: str | None = None
    range_end: RangeEnd = "stop"
    range_count: int = 0
    kill: int = 0
    domains_included: tuple[str, ...] = ()
    domains_excluded: tuple[str, ...] = ()
    keep_last: float | None = None
    max_size: int | None = None
    session: str | None = None
    cuda: CudaOptions = field(default_factory=CudaOptions)
    cpu: CpuOptions = field(default_factory=CpuOptions)
    gpu_metrics: GpuMetrics = field(default_factory=GpuMetrics)


# The one place where the defaults are written down: what a user gets without any option.
DEFAULTS = CaptureOptions()
