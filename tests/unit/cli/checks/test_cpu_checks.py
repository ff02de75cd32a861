"""What `doctor` says of the CPU side, with kernels that deny a part of it, and with the one that is here."""

from __future__ import annotations

import errno
import json
import subprocess
import sys

import pytest

from tests.support.programs.launching import environment
from warplens.cli.checks.cpu import cpu_findings
from warplens.cli.checks.kernel import Event, Kernel


class Answers(Kernel):
    """A kernel that allows everything but what the arguments say."""

    def __init__(
        self,
        *,
        events: dict[tuple[Event, bool], int] | int = 0,
        paranoid: int | None = 2,
        rate: int = 100_000,
        filtered: bool = False,
        counts: bool = True,
        readv: int = 0,
        file: bool = True,
        addresses: bool = True,
    ) -> None:
        self._events, self._settings = (
            events,
            {"perf_event_paranoid": paranoid, "perf_event_max_sample_rate": rate},
        )
        self._is_filtered, self._counts, self._readv, self._file = filtered, counts, readv, file
        self._addresses = addresses

    def open_event(self, event: Event, hz: int, *, with_kernel: bool) -> int:
        return self._events if isinstance(self._events, int) else self._events.get((event, with_kernel), 0)

    def read_memory(self) -> int:
        return self._readv

    def read_memory_file(self) -> bool:
        return self._file

    def shows_addresses(self) -> bool:
        return self._addresses

    def setting(self, name: str) -> int | None:
        return self._settings[name]

    def filtered(self) -> bool:
        return self._is_filtered

    def counts_time(self) -> bool:
        return self._counts


def _found(kernel: Kernel) -> dict[str, tuple[str, str]]:
    return {name: (state, text) for name, state, text in cpu_findings(kernel)}


def test_all_is_allowed() -> None:
    found = _found(Answers(paranoid=1))
    sampled = (
        "native stacks are sampled by the processor's cycles, 1,000 a second, time in the kernel "
        "and its frames included"
    )
    assert found["perf"] == ("ok", sampled)
    assert found["thread states"] == ("ok", "each context switch is recorded")
    assert found["python stacks"] == ("ok", "Python stacks are read by process_vm_readv")


def test_a_kernel_that_hides_its_functions() -> None:
    state, text = _found(Answers(addresses=False))["perf"]
    assert state == "ok"
    first, last = text.splitlines()
    assert first.endswith("1,000 a second, time in the kernel included")
    assert (
        last
        == "frames of the kernel are left out: sysctl kernel.kptr_restrict=0 kernel.perf_event_paranoid=1 adds them"
    )


def test_an_ordinary_user_does_without_the_kernel() -> None:
    events = {(event, True): errno.EACCES for event in Event}
    state, text = _found(Answers(events=events))["perf"]
    assert state == "ok"
    assert text.splitlines()[0].endswith("cycles, 1,000 a second")
    assert (
        text.splitlines()[1] == "time in the kernel is left out: sysctl kernel.perf_event_paranoid=1 adds it"
    )


@pytest.mark.parametrize(
    ("rate", "said"),
    [(100_000, "in most virtual machines"), (500, "sysctl kernel.perf_event_max_sample_rate=1000")],
)
def test_a_timer_stands_in_for_counters(rate: int, said: str) -> None:
    events = {(Event.CYCLES, with_kernel): errno.ENOENT for with_kernel in (True, False)}
    state, text = _found(Answers(events=events, rate=rate))["perf"]
    assert state == "ok"
    assert "by a timer, 250 a second" in text
    assert said in text
    assert "left out" not in text


@pytest.mark.parametrize(
    ("error", "paranoid", "filtered", "said", "unsaid"),
    [
        (
            errno.EACCES,
            3,
            False,
            "sysctl kernel.perf_event_paranoid=2 on the host allows it (it is 3)",
            "docker",
        ),
        (errno.EACCES, 4, True, "sysctl kernel.perf_event_paranoid=2 on the host", "SELinux"),
        (errno.EPERM, 4, True, "docker run --cap-add PERFMON", "SELinux"),
        (errno.EPERM, 2, True, "docker run --cap-add PERFMON (or --security-opt seccomp=", "sysctl"),
        (errno.EPERM, None, True, "--cap-add PERFMON", "sysctl"),
        (errno.EACCES, 2, False, "SELinux", "docker"),
        (errno.ENOSYS, None, False, "has no perf events", "docker"),
        (errno.EINVAL, 2, True, "Linux 5.13", "docker"),
        (errno.EMFILE, 2, False, "ulimit -n", "docker"),
    ],
)
def test_a_refused_source_comes_with_the_setting_that_allows_it(
    error: int, paranoid: int | None, filtered: bool, said: str, unsaid: str
) -> None:
    found = _found(Answers(events=error, paranoid=paranoid, filtered=filtered))
    for name in ("perf", "thread states"):
        state, text = found[name]
        assert state == "note"
        assert f"perf_event_open was refused ({errno.errorcode[error]})" in text
        assert said in text
        assert unsaid not in text
    assert found["thread states"][1].startswith("only sums are exact, from the scheduler's counters")
    assert found["python stacks"][0] == "ok"


def test_states_without_any_source() -> None:
    state, text = _found(Answers(events=errno.EPERM, filtered=True, counts=False))["thread states"]
    assert state == "note"
    assert text.startswith("context switches cannot be recorded")


def test_memory_is_read_by_the_way_that_is_left() -> None:
    assert _found(Answers(readv=errno.EPERM))["python stacks"] == (
        "ok",
        "Python stacks are read through /proc/self/mem: process_vm_readv was refused (EPERM)",
    )
    state, text = _found(Answers(readv=errno.ENOSYS, file=False))["python stacks"]
    assert state == "note"
    assert "process_vm_readv (ENOSYS)" in text
    assert "docker run --cap-add SYS_PTRACE" in text


# Forbids this process two system calls, as a container's filter does, and says what it finds then.
_FORBIDDEN = """
import ctypes, json, struct, sys
numbers, error = json.loads(sys.argv[1]), 1
program = [(0x20, 0, 0, 0)]  # the number of the call
program += [(0x15, len(numbers) - index, 0, number) for index, number in enumerate(numbers)]  # one of these: to the end
program += [(0x06, 0, 0, 0x7fff0000), (0x06, 0, 0, 0x00050000 | error)]  # allowed; that error
code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *one) for one in program))
libc = ctypes.CDLL(None, use_errno=True)
filter = ctypes.create_string_buffer(struct.pack("@HP", len(program), ctypes.addressof(code)))
if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, filter, 0, 0):
    sys.exit(77)
from warplens.cli.checks.cpu import cpu_findings
print(json.dumps(list(cpu_findings())))
"""


def test_here() -> None:
    kernel = Kernel()
    assert kernel.read_memory() in (0, errno.EPERM, errno.EACCES, errno.ENOSYS)
    found = _found(kernel)
    allowed = kernel.open_event(Event.SWITCHES, 1000, with_kernel=False) == 0
    assert (found["thread states"][0] == "ok") == allowed
    assert (found["python stacks"][0] == "ok") == (kernel.read_memory() == 0 or kernel.read_memory_file())
    assert all(text and state in ("ok", "note") for state, text in found.values())


def test_here_with_calls_forbidden() -> None:
    calls = [number for number in (Kernel()._open, Kernel()._read) if number > 0]
    if not calls:
        pytest.skip("no system calls are known for this machine")
    command = [sys.executable, "-c", _FORBIDDEN, json.dumps(calls)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 77:
        pytest.skip("no seccomp filter can be had here")
    found = {name: (state, text) for name, state, text in json.loads(done.stdout)}
    for name in ("perf", "thread states"):
        assert found[name][0] == "note"
        assert "refused (EPERM)" in found[name][1]
        assert "docker run --cap-add PERFMON" in found[name][1]
    assert found["python stacks"] == (
        "ok",
        "Python stacks are read through /proc/self/mem: process_vm_readv was refused (EPERM)",
    )
