r"""Runs the program in our terminal and process group: passes on signals, returns its exit code.

The signals that mean something to programs are blocked and read one by one, which tells who sent them: what the terminal
sends (Ctrl-C, Ctrl-\, hang-up) the program has got itself, and so it has what another process sends to the whole group
(a witness shows that); what another process sent only to us is passed on.
"""

from __future__ import annotations

import ctypes
import errno
import os
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from warplens.errors import NotStarted
from warplens.recording.launch.program import NOT_EXECUTABLE, NOT_FOUND
from warplens.recording.launch.witness import Witness
from warplens.recording.options.capture import Wait

_PR_SET_CHILD_SUBREAPER = 36
_SI_KERNEL = 0x80
_STOPPING = frozenset((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT))
# Ours alone: faults, job control, and what the kernel says about our own files and CPU time. All others may be meant for
# the program: batch systems announce the end of a job with SIGUSR1, real-time signals and others.
_OURS = frozenset(
    getattr(signal, f"SIG{name}")
    for name in "KILL STOP CONT TSTP TTIN TTOU SEGV BUS FPE ILL ABRT TRAP SYS PIPE XFSZ XCPU".split()  # noqa: SIM905
)
_WATCHED = frozenset(signal.valid_signals()) - _OURS
# Python ignores these two; the program gets the usual meaning back.
_RESET = (signal.SIGPIPE, signal.SIGXFSZ)
_GRACE_S = 5.0
_PATIENCE_S = 1.0
_ROUNDS = 20


def children() -> list[int]:
    """Return the ids of our direct children.

    With the subreaper set, also those of orphans of their descendants.
    """
    return _children_of("self")


def _children_of(process: int | str) -> list[int]:
    pids: list[int] = []
    tasks = f"/proc/{process}/task"
    try:
        threads = os.listdir(tasks)
    except OSError:
        return pids
    for thread in threads:
        try:
            with open(f"{tasks}/{thread}/children", "rb") as file:  # several times as fast as pathlib
                pids += map(int, file.read().split())
        except OSError:
            continue
    return pids


def exit_status(wait_status: int) -> int:
    """Return a shell's exit status: the exit code, or 128 + the signal."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


class Child:
    """One program, from `start` to `wait`.

    Use from the main thread, before other threads start: it blocks signals.

    `reaped` hears the ids and exit statuses of the program and of orphans that it left behind.
    """

    def __init__(self, reaped: Callable[[int, int], None] = lambda pid, status: None) -> None:
        self.pid = 0
        self.usage: dict[str, int] = {}  # of the program and all that it, and we, waited for
        self._reaped = reaped
        self.status: int | None = None
        self.end_ns = 0
        self.killed_by = 0
        self.killed_all_by = 0
        self._kill_deadline: float | None = None
        self._interrupts = 0
        self._deadline: float | None = None
        self._hears: dict[int, Callable[[], None]] = {}
        self._starting = threading.Lock()
        self._ours = set(children())
        self._ignored = {number for number in _STOPPING if signal.getsignal(number) == signal.SIG_IGN}
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
        self._witness = Witness()
        if self._witness.pid:
            self._ours.add(self._witness.pid)
        if signal.getsignal(signal.SIGCHLD) == signal.SIG_IGN:
            signal.signal(
                signal.SIGCHLD, signal.SIG_DFL
            )  # ignored, the kernel would keep the exit status to itself

    def start(self, path: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        """Run `command` from the file `path`; NotStarted where the system refuses."""
        # orphans of the program become ours, so that their end can be awaited
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            try:
                self.pid = self._spawn(path, command, environment)
            except OSError as error:
                if error.errno != errno.ENOEXEC:
                    raise
                self.pid = self._spawn(
                    "/bin/sh", ["sh", path, *command[1:]], environment
                )  # as shells do without "#!"
        except OSError as error:
            code = NOT_FOUND if error.errno == errno.ENOENT else NOT_EXECUTABLE
            reason = (
                "its interpreter, named in its first line, does not exist"
                if code == NOT_FOUND
                else error.strerror
            )
            raise NotStarted(f"Cannot run {path}: {reason}.", code) from error

    def wait(
        self, mode: Wait, waiting: Callable[[list[int]], None], over: Callable[[], bool] = lambda: False
    ) -> list[int]:
        """Wait for the program, with `mode` "all" for its descendants too.

        Return what still runs of them, the program first.

        `waiting` is called once, when descendants outlive the program by more than a second. A second Ctrl-C then ends the
        waiting; after a SIGTERM or hang-up it ends within five seconds. Once `over` says so, the waiting ends, of what was
        killed after five seconds at the latest; `wake` makes it look.
        """
        told = False
        while True:
            if not self._reap():
                return []
            if over() and (self._kill_deadline is None or time.monotonic() > self._kill_deadline):
                return ([self.pid] if self.status is None else []) + self._others()
            if self.status is not None:
                if mode == "primary" or self._enough():
                    return self._others()
                if not told and time.monotonic_ns() - self.end_ns > _PATIENCE_S * 1e9:
                    told = True
                    waiting(self._others())
            soon = self.status is not None or self._kill_deadline is not None
            info = signal.sigtimedwait(_WATCHED, 0.2 if soon else 3600.0)
            if info is None or info.si_signo == signal.SIGCHLD:
                continue
            if info.si_signo in self._hears:
                self._hears[info.si_signo]()
            else:
                self._pass_on(info)

    def kill(self, number: int) -> None:
        """Send a signal to the program and all its descendants, from any thread.

        `killed_by` is it if the program had not ended yet.
        """
        self._kill_deadline = time.monotonic() + _GRACE_S
        self.killed_all_by = number
        if self.status is None:
            self.killed_by = number
        sent: set[int] = set()
        for _ in range(
            _ROUNDS if number == signal.SIGKILL else 1
        ):  # what dies of it cannot start others: soon there are none
            new = [pid for pid in self.descendants() if pid not in sent]
            if not new:
                break
            for pid in new:
                try:
                    os.kill(pid, number)
                except (ProcessLookupError, PermissionError):
                    continue
            sent.update(new)

    def hear(self, number: int, call: Callable[[], None]) -> None:
        """Have `wait` call `call` for the signal `number`, instead of passing it on."""
        self._hears[number] = call

    @contextmanager
    def aside(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes the pid of a child of this process, started by the block.

        Such a child does not count as the program's. From any thread.
        """
        with self._starting:
            yield self._ours.add

    @staticmethod
    def wake() -> None:
        """Make `wait` look at what has changed; may be called from any thread."""
        os.kill(os.getpid(), signal.SIGCHLD)

    def release(self) -> None:
        """Take the signals that are left and let them through again."""
        self._witness.close()
        while signal.sigtimedwait(_WATCHED, 0) is not None:
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)

    def _spawn(self, path: str, command: Sequence[str], environment: Mapping[str, str]) -> int:
        return os.posix_spawn(path, list(command), dict(environment), setsigmask=self._mask, setsigdef=_RESET)

    def _others(self) -> list[int]:
        with self._starting:
            return [pid for pid in children() if pid != self.pid and pid not in self._ours]

    def descendants(self) -> list[int]:
        """Return the processes that come of the program and run, parents before their children.

        From any thread.
        """
        with self._starting:
            found = [pid for pid in children() if pid not in self._ours]
        for pid in found:
            found += [child for child in _children_of(pid) if child not in found]
        return found

    def _reap(self) -> bool:
        while True:
            try:
                pid, status, used = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return self.status is None or not self._ours or bool(self._others())
            with self._starting:
                ours = pid in self._ours
                self._ours.discard(pid)  # another process may get the number
            if not ours:
                self._add_usage(used)
                self._reaped(pid, exit_status(status))
            if pid == self.pid:
                self._add_size(used)
                self.status = exit_status(status)
                self.end_ns = time.monotonic_ns()
                if self._deadline is not None:
                    self._deadline = time.monotonic() + _GRACE_S

    def _add_usage(self, used: resource.struct_rusage) -> None:
        sums = {
            "user_ns": round(used.ru_utime * 1e9),
            "system_ns": round(used.ru_stime * 1e9),
            "minor_faults": used.ru_minflt,
            "major_faults": used.ru_majflt,
            "waits": used.ru_nvcsw,
            "preemptions": used.ru_nivcsw,
        }
        for name, value in sums.items():
            self.usage[name] = self.usage.get(name, 0) + value

    def _add_size(self, used: resource.struct_rusage) -> None:
        """Note the peak memory and the waits of the program.

        It began as a copy of this process: memory up to our size is ours.

        Our own `ru_maxrss` says too much: it continues through `exec`, so that it may be the size of the process that started us.
        """
        if used.ru_maxrss > _peak():
            self.usage["max_rss"] = used.ru_maxrss * 1024

    def _pass_on(self, info: signal.struct_siginfo) -> None:
        number = info.si_signo
        if number in _STOPPING - self._ignored:  # nohup, and jobs in the background of scripts, ignore some
            if number == signal.SIGINT:
                self._interrupts += 1
            elif self._deadline is None:
                self._deadline = time.monotonic() + _GRACE_S
        # a terminal that hangs up tells only the leader of its session
        if info.si_code == _SI_KERNEL and not (number == signal.SIGHUP and os.getsid(0) == os.getpid()):
            return
        if info.si_code != _SI_KERNEL and self._witness.has(number):
            return
        for pid in [self.pid] if self.status is None else self._others():
            try:
                os.kill(pid, number)
            except (ProcessLookupError, PermissionError):
                continue

    def _enough(self) -> bool:
        return self._interrupts > 1 or (self._deadline is not None and time.monotonic() > self._deadline)


def _peak() -> int:
    """Return the most memory that this process had since it was started, KiB."""
    for line in Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
