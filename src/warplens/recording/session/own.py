"""One recording that a process makes of itself, from the first step to the handover."""

from __future__ import annotations

import errno
import os
import sys
import time
from pathlib import Path

from warplens.errors import CaptureError
from warplens.handover import pending
from warplens.handover.wording import PYTHON
from warplens.recording.agent.announce import AGENT, CHAIN, INJECTION, Announcement
from warplens.recording.agent.control_file import holds_events
from warplens.recording.agent.library import Agent, ClockSample, load_agent
from warplens.recording.agent.prepare import loaded_libraries, prepared
from warplens.recording.finishing.finisher import Finisher
from warplens.recording.launch import job as jobs
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.run import Run
from warplens.recording.run_facts import RunFacts
from warplens.recording.spool.place import take_place

_FILES = 32  # the program may need its own
_TOO_OLD_NS = 60_000_000_000  # the computer may have slept meanwhile
_early: ClockSample | None = None
_count = 0


class AlreadyRecorded(Exception):
    """Somebody else records this process."""


class Session:
    """Records from here to `stop`.

    CaptureError, ReportError or UsageError if it cannot begin; AlreadyRecorded.
    """

    def __init__(
        self,
        output: str | None,
        *,
        force: bool,
        spool_dir: Path | None,
        keep_raw: bool,
        renew: bool,
        options: CaptureOptions,
    ) -> None:
        self.pid = os.getpid()
        self.agent = load_agent()
        job = jobs.job_id()
        self._place = take_place(
            output,
            force=force,
            job=job,
            spool_dir=spool_dir,
            keep_raw=keep_raw,
            part=_part(self.pid),
            wording=PYTHON,
        )
        try:
            self._facts = RunFacts(
                self._place.spool.path, _command(), options.trace, job=job, source="record"
            )
            self._place.warn(self._facts)
            self._run = Run(
                self._place.spool.path,
                self.agent,
                _early_sample(self.agent),
                written=self._facts,
                wording=PYTHON,
                files=_FILES,
                options=options,
            )
            try:
                self._begin(renew)
            except BaseException:
                self._run.close()
                raise
        except BaseException:
            self._place.give_up()
            raise

    @property
    def report(self) -> Path:
        """The report's path."""
        return self._place.report

    def attached(self) -> list[str]:
        """Return the paths of the libraries that the agent hears.

        The loader has no path for the program itself.
        """
        paths = self.agent.attached()
        return [os.path.realpath(path if os.path.exists(path) else "/proc/self/exe") for path in paths]

    def stop(self) -> Finisher:
        """End the recording and start the child that finishes the report.

        OSError where there cannot be one.
        """
        end = time.monotonic_ns()
        self.agent.stop()
        attached = self.attached()
        self._note_deaf_binding(attached)
        self._announcement.withdraw((INJECTION, CHAIN) if prepared() is not None else ())
        running = self._still_running()
        self._run.end(
            end_ns=end,
            primary_end_ns=end,
            exit_status=None,
            still_running=running,
            unheard=self._recorded_nothing(),
            other_tool=self._other_tool,
        )
        self._facts.save()
        self._run.close()
        lock = pending.end(self._place.note)
        muted = _muted_binding()
        try:
            request = {
                "note": str(self._place.note.path),
                "before": [path for path in self._before if path != muted],
                "attached": attached,
                "agent": AGENT,
                "prepared": prepared() is not None,
            }
            return Finisher(request, lock)
        finally:
            if lock is not None:
                os.close(lock)  # the child has it now

    def leave(self) -> None:
        """In a fork child: stop recording, and leave the rest to the parent."""
        self.agent.stop()
        self._announcement.withdraw((INJECTION, CHAIN) if prepared() is not None else ())

    def before_fork(self) -> None:
        """End our thread: a fork is safest without."""
        self._run.pause()

    def after_fork(self, *, child: bool) -> None:
        """Start it again; in the child close what belongs to the parent."""
        if child:
            self._run.abandon()
        else:
            self._run.watch_again()

    def _begin(self, renew: bool) -> None:
        self._before = prepared() or loaded_libraries()
        spool = self._place.spool.path
        if renew:
            self.agent.stop()  # a fork child continues an ended recording until the agent stops
        try:
            self.agent.start(spool)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise AlreadyRecorded from error
            raise CaptureError(f"The agent cannot record into {spool}: {error.strerror}.") from error
        try:
            self._run.begin(self.pid)
            self._run.watch()
        except BaseException:
            self.agent.stop()
            raise
        self._announcement = Announcement(AGENT, str(spool))
        self._other_tool = os.environ.get(CHAIN)
        if binding := sys.modules.get("warplens.nvtx._binding"):
            binding.look_again()

    def _note_deaf_binding(self, attached: list[str]) -> None:
        binding = sys.modules.get("warplens.nvtx._binding")
        if binding is None or not binding.attached() or os.path.realpath(str(binding.__file__)) in attached:
            return
        self._facts.note(
            "warning",
            "other-tool",
            "Another NVTX tool listened to warplens.nvtx before the recording began, so its ranges are not in the report. "
            "Call warplens.prepare() at the top of the program: the other tool then hears everything too.",
        )

    def _recorded_nothing(self) -> int:
        """Return 1 when this process has a spool in which nothing happens: it has one from the start."""
        return sum(not holds_events(path) for path in self._place.spool.path.glob(f"*-{self.pid}-*.spool"))

    def _still_running(self) -> list[int]:
        writers = map(pending.living_writer, self._place.spool.path.glob("*.spool"))
        return [pid for pid in writers if pid and pid != self.pid]


def _part(pid: int) -> str:
    """Name the recording: a process can make several, one after the other."""
    global _count
    _count += 1
    return pending.own_id() if _count == 1 else f"{pending.own_id()}-{_count}"


def _early_sample(agent: Agent) -> ClockSample:
    """Return a clock sample, that of an earlier recording if there is one.

    Otherwise it waits shortly until the sample is old enough.
    """
    global _early
    if _early is None or time.monotonic_ns() - _early.monotonic > _TOO_OLD_NS:
        _early = agent.clock_sample()
    return _early


def _muted_binding() -> str | None:
    """Return our binding's path where NVTX_DISABLE is why it is silent: it does not come too late."""
    binding, nvtx = sys.modules.get("warplens.nvtx._binding"), sys.modules.get("warplens.nvtx")
    return (
        None if binding is None or nvtx is None or nvtx.enabled() else os.path.realpath(str(binding.__file__))
    )


def _command() -> list[str]:
    try:
        with open("/proc/self/cmdline", "rb") as file:
            words = file.read().split(b"\0")[:-1]
    except OSError:
        return list(sys.orig_argv)
    return [os.fsdecode(word) for word in words] or list(sys.orig_argv)
