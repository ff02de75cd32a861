"""CPU recording options and their defaults."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Backtrace = Literal["auto", "fp", "dwarf", "none"]

# Names of `-t` that belong to the CPU side.
CPU_TRACES = ("osrt", "gc", "gil", "import", "python", "python-events")


@dataclass(frozen=True, slots=True)
class CpuOptions:
    """CPU recording options beside the `CPU_TRACES` in `CaptureOptions.trace`.

    `sample`: native stacks by perf. `backtrace`: how they are found. `native_hz`: samples a second of each CPU, 0 = what suits the
    machine. `states`: when threads ran, waited for a CPU, or were blocked. `python_sample`: stacks of Python, `python_hz` times a
    second for each thread; `python_opcodes`: with the instruction. `os_threshold_ns`: shorter OS calls are not recorded;
    `os_backtrace_ns`: longer ones with their stack, of `os_backtrace_depth` frames at most. `file_access`: calls on files whatever they
    take. `gil_threshold_ns`: shorter holds and waits are only summed up. `python_only`: all of this in processes
    that begin with CPython in them, and nothing in others. `torch_inputs`: operators of PyTorch with shapes
    and types of their inputs. `functions`: a file in nsys's format that names Python functions to trace.
    """

    sample: bool = False
    backtrace: Backtrace = "auto"
    native_hz: int = 0
    states: bool = False
    python_sample: bool = False
    python_hz: int = 1000
    python_opcodes: bool = False
    os_threshold_ns: int = 1000
    os_backtrace_ns: int = 80_000
    os_backtrace_depth: int = 24
    file_access: bool = False
    gil_threshold_ns: int = 10_000
    python_only: bool = False
    torch_inputs: bool = False
    functions: Path | None = None
