"""Checks the kernel's permissions by the system calls that the agent makes."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from enum import Enum
from pathlib import Path

_CALLS = {"x86_64": (298, 310), "aarch64": (241, 270)}  # perf_event_open, process_vm_readv
_CLOSE_ON_EXEC = 8
_MONOTONIC = 1
_HARDWARE, _SOFTWARE = 0, 1


class Event(Enum):
    """The perf events that are opened: type and number of each."""

    CYCLES = (_HARDWARE, 0)
    CLOCK = (_SOFTWARE, 0)
    SWITCHES = (_SOFTWARE, 9)  # a dummy: what counts are the records beside it


class _Attributes(ctypes.Structure):
    """perf_event_attr, up to what Linux 4.1 knew; later fields are zero."""

    _fields_ = (
        ("type", ctypes.c_uint32),
        ("size", ctypes.c_uint32),
        ("config", ctypes.c_uint64),
        ("period_or_freq", ctypes.c_uint64),
        ("sample_type", ctypes.c_uint64),
        ("read_format", ctypes.c_uint64),
        ("flags", ctypes.c_uint64),
        ("wakeup", ctypes.c_uint32),
        ("bp_type", ctypes.c_uint32),
        ("config1", ctypes.c_uint64),
        ("config2", ctypes.c_uint64),
        ("branch_sample_type", ctypes.c_uint64),
        ("sample_regs_user", ctypes.c_uint64),
        ("sample_stack_user", ctypes.c_uint32),
        ("clockid", ctypes.c_int32),
        ("sample_regs_intr", ctypes.c_uint64),
        ("aux_watermark", ctypes.c_uint32),
        ("sample_max_stack", ctypes.c_uint32),
    )


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


_DISABLED, _INHERIT, _NO_KERNEL, _NO_HYPERVISOR, _FREQ, _CLOCKID, _SWITCHES, _INHERIT_THREAD = (
    0,
    1,
    5,
    6,
    10,
    25,
    26,
    35,
)


class _Span(ctypes.Structure):
    """iovec."""

    _fields_ = (("base", ctypes.c_void_p), ("size", ctypes.c_size_t))


class Kernel:
    """The kernel that runs this process. Answers are 0 or numbers of errors (`errno`)."""

    def __init__(self) -> None:
        # Elsewhere the numbers would be those of other calls.
        self._open, self._read = (
            _CALLS.get(platform.machine(), (-1, -1)) if sys.maxsize > 1 << 32 else (-1, -1)
        )
        self._libc = ctypes.CDLL(None, use_errno=True)

    def open_event(self, event: Event, hz: int, *, with_kernel: bool) -> int:
        """Open an event of this process as the agent does, without starting it, and close it again."""
        kind, number = event.value
        flags = [_DISABLED, _INHERIT, _INHERIT_THREAD, _NO_HYPERVISOR, _CLOCKID]
        flags += [] if with_kernel else [_NO_KERNEL]
        flags += {Event.CYCLES: [_FREQ], Event.CLOCK: [], Event.SWITCHES: [_SWITCHES]}[event]
        period = {Event.CYCLES: hz, Event.CLOCK: 1_000_000_000 // hz, Event.SWITCHES: 0}[event]
        attributes = _Attributes(
            type=kind,
            size=ctypes.sizeof(_Attributes),
            config=number,
            period_or_freq=period,
            flags=_bits(*flags),
            clockid=_MONOTONIC,
        )
        cpu = min(os.sched_getaffinity(0))
        file = self._call(self._open, ctypes.byref(attributes), 0, cpu, -1, ctypes.c_ulong(_CLOSE_ON_EXEC))
        if file < 0:
            return ctypes.get_errno()
        os.close(file)
        return 0

    def read_memory(self) -> int:
        """Read a number of this process by process_vm_readv."""
        known, got = ctypes.c_uint32(0x77617270), ctypes.c_uint32()
        source, target = (_Span(ctypes.addressof(value), ctypes.sizeof(value)) for value in (known, got))
        one = ctypes.c_ulong(1)
        done = self._call(
            self._read, os.getpid(), ctypes.byref(target), one, ctypes.byref(source), one, ctypes.c_ulong(0)
        )
        if done < 0:
            return ctypes.get_errno()
        return 0 if got.value == known.value else errno.EIO

    def read_memory_file(self) -> bool:
        """Tell whether /proc/self/mem reads a number of this process."""
        known = ctypes.c_uint32(0x6C696E65)
        try:
            with Path("/proc/self/mem").open("rb", buffering=0) as file:
                file.seek(ctypes.addressof(known))
                return file.read(ctypes.sizeof(known)) == bytes(known)
        except (OSError, OverflowError, ValueError):
            return False

    def shows_addresses(self) -> bool:
        """Tell whether /proc/kallsyms says where the kernel's functions are.

        Hidden ones are all zero.
        """
        try:
            with Path("/proc/kallsyms").open("rb") as file:
                lines = file.read(4096).splitlines()
        except OSError:
            return False
        return any(line.split()[0].strip(b"0") for line in lines if line.split())

    def setting(self, name: str) -> int | None:
        """Return the number of the sysctl `kernel.name`.

        None if there is none, or it is hidden.
        """
        try:
            return int(Path("/proc/sys/kernel", name).read_text(encoding="ascii"))
        except (OSError, ValueError):
            return None

    def filtered(self) -> bool:
        """Tell whether a seccomp filter looks at the system calls of this process."""
        try:
            lines = Path("/proc/self/status").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return False
        return any(line.split() == ["Seccomp:", "2"] for line in lines)

    def counts_time(self) -> bool:
        """Tell whether the scheduler says how long threads ran and waited (schedstat)."""
        try:
            return len(Path("/proc/self/schedstat").read_text(encoding="ascii").split()) >= 2
        except (OSError, ValueError):
            return False

    def _call(self, number: int, *arguments: object) -> int:
        if number < 0:
            ctypes.set_errno(errno.ENOSYS)
            return -1
        return int(self._libc.syscall(ctypes.c_long(number), *arguments))
