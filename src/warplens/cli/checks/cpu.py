"""Checks of `doctor` for the CPU side: perf events, thread states, the memory of Python.

And the line that allows what is denied.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator

from warplens.cli.checks.kernel import Event, Kernel

Finding = tuple[str, str, str]  # name, ok or note, text

_HZ, _HZ_WITHOUT_COUNTERS = 1000, 250  # as the agent samples
_SHOWN = "kernel.kptr_restrict=0 kernel.perf_event_paranoid=1"  # where the functions of the kernel are
_OWN, _EVERYTHING = (
    2,
    1,
)  # kernel.perf_event_paranoid: the most that allows one's own code, and the kernel's for it


def cpu_findings(kernel: Kernel | None = None) -> Iterator[Finding]:
    """Yield the checks of the CPU side; `kernel` defaults to the running one.

    What it opens is closed at once.
    """
    kernel = kernel or Kernel()
    yield "perf", *_samples(kernel)
    yield "thread states", *_states(kernel)
    yield "python stacks", *_memory(kernel)


def _samples(kernel: Kernel) -> tuple[str, str]:
    """In the agent's order: the processor's cycles, else a timer.

    With the time in the kernel, else without.
    """
    error = errno.ENOSYS
    for event, hz, how in (
        (Event.CYCLES, _HZ, f"by the processor's cycles, {_HZ:,} a second"),
        (Event.CLOCK, _HZ_WITHOUT_COUNTERS, f"by a timer, {_HZ_WITHOUT_COUNTERS} a second"),
    ):
        for with_kernel in (True, False):
            error = kernel.open_event(event, hz, with_kernel=with_kernel)
            if not error:
                lines = [f"native stacks are sampled {how}{_in_kernel(kernel) if with_kernel else ''}"]
                if event is Event.CLOCK:
                    lines.append(_why_no_counters(kernel))
                if not with_kernel:
                    lines.append(
                        "time in the kernel is left out: sysctl "
                        f"kernel.perf_event_paranoid={_EVERYTHING} adds it"
                    )
                elif not kernel.shows_addresses():
                    lines.append(f"frames of the kernel are left out: sysctl {_SHOWN} adds them")
                return "ok", "\n".join(lines)
            if error not in (errno.EACCES, errno.EPERM):
                break
    return "note", "\n".join(
        [f"no native stacks: perf_event_open was refused ({_name(error)})", *_remedy(kernel, error)]
    )


def _in_kernel(kernel: Kernel) -> str:
    return f", time in the kernel{' and its frames' if kernel.shows_addresses() else ''} included"


def _why_no_counters(kernel: Kernel) -> str:
    rate = kernel.setting("perf_event_max_sample_rate")
    if rate is not None and rate < _HZ:
        return (
            f"sysctl kernel.perf_event_max_sample_rate={_HZ} allows the processor's counters, if "
            f"it has any (it is {rate})"
        )
    return "no access to the processor's counters, as in most virtual machines"


def _states(kernel: Kernel) -> tuple[str, str]:
    error = kernel.open_event(Event.SWITCHES, _HZ, with_kernel=False)
    if not error:
        return "ok", "each context switch is recorded"
    lines = [
        f"context switches cannot be recorded: perf_event_open was refused ({_name(error)})",
        *_remedy(kernel, error),
    ]
    if kernel.counts_time():
        lines[0] = (
            "only sums are exact, from the scheduler's counters: perf_event_open was refused "
            f"({_name(error)})"
        )
    return "note", "\n".join(lines)


def _memory(kernel: Kernel) -> tuple[str, str]:
    error = kernel.read_memory()
    if not error:
        return "ok", "Python stacks are read by process_vm_readv"
    if kernel.read_memory_file():
        return (
            "ok",
            f"Python stacks are read through /proc/self/mem: process_vm_readv was refused ({_name(error)})",
        )
    return "note", (
        f"no Python stacks: neither process_vm_readv ({_name(error)}) nor /proc/self/mem reads a "
        "process's own memory\n"
        "allow one of them in the seccomp profile: docker run --cap-add SYS_PTRACE allows the first"
    )


def _remedy(kernel: Kernel, error: int) -> Iterator[str]:
    """Yield the lines that say how to get what was refused.

    The same for samples and for switches.
    """
    paranoid = kernel.setting("perf_event_paranoid")
    if error == errno.EINVAL:
        yield "Linux 5.13 or later is needed, which can follow threads without following processes"
    elif error == errno.ENOSYS:
        yield "this kernel, or the sandbox (gVisor, say), has no perf events"
    elif error == errno.EMFILE:
        yield "too many files are open: ulimit -n takes a larger number"
    elif paranoid is not None and paranoid > _OWN:
        yield f"sysctl kernel.perf_event_paranoid={_OWN} on the host allows it (it is {paranoid})"
        if kernel.filtered():
            yield _container()
    elif kernel.filtered():
        yield _container()
    elif error in (errno.EACCES, errno.EPERM):
        yield "a security module such as SELinux forbids it: ask the administrator"


def _container() -> str:
    return (
        "seccomp filters system calls here, as in containers: docker run --cap-add PERFMON (or "
        "--security-opt seccomp=PROFILE) allows it"
    )


def _name(error: int) -> str:
    return errno.errorcode.get(error, f"error {error}")
