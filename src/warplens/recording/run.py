"""Common to every recording: the control page, the clock log, and the facts in `launch.json`."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from warplens.disk.full import FULL, why_full
from warplens.errors import CaptureError
from warplens.handover.wording import Wording
from warplens.model.words import counted, duration, was
from warplens.recording import facts
from warplens.recording.agent.control_file import MAX_SIZE_REACHED, ControlPage
from warplens.recording.agent.library import Agent, ClockSample
from warplens.recording.options.capture import DEFAULTS, CaptureOptions
from warplens.recording.options.cpu import CPU_TRACES
from warplens.recording.options.settings import settings
from warplens.recording.run_facts import RunFacts
from warplens.recording.spool.holder import SpoolKeeper
from warplens.recording.spool.monitor import Monitor
from warplens.recording.spool.outdated import OutdatedSpools
from warplens.recording.windows.controller import Director
from warplens.recording.windows.notes import note_windows

CLOCK_SPAN_NS = 10_000_000
_MOST_KILLED = 64  # launch.json has only so much room on a full disk
_OTHER_PLACE = (*FULL, errno.EACCES, errno.EROFS)


class Run:
    """One recording into the existing directory `spool`.

    Call `begin`, `watch`, `end`, and always `close`.

    `early` is a clock sample taken as early as possible: the longer ago, the better the clock's rate is known. At most `files`
    spool files are held open, in case somebody deletes them; whenever they are looked at, `also_look` is called. `director` opens and
    closes the windows, as `options` say; `kill` and `wake` are for it. CaptureError where the control page cannot be written.
    """

    def __init__(
        self,
        spool: Path,
        agent: Agent,
        early: ClockSample,
        written: RunFacts,
        wording: Wording,
        *,
        files: int = 256,
        also_look: Callable[[], None] | None = None,
        options: CaptureOptions = DEFAULTS,
        kill: Callable[[int], None] = lambda number: None,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.facts = written
        self.is_read: Callable[[], bool] = lambda: (
            False
        )  # whether somebody reads the spool now, who must find all of it
        self._options = options
        self._spool = spool
        self._agent = agent
        self._early = early
        self._wording = wording
        self._control = self._create_control()
        self.director = Director(self._control, agent, options, kill=kill, wake=wake)
        self._keeper = SpoolKeeper(spool, self._control, limit=files)
        self._outdated: OutdatedSpools | None = None
        if options.keep_last is not None:
            self._outdated = OutdatedSpools(
                spool,
                self._control,
                agent,
                keep_ns=round(options.keep_last * 1e9),
                let_go=self._keeper.let_go,
            )
        self._also_look = also_look
        self._monitor = Monitor(spool, agent, self._keeper, also_look=self._look)

    def begin(self, pid: int | None = None) -> int:
        """Note that the recording begins now; return the time in ns.

        `pid`: the primary process, if there is one already.
        """
        windows = self._control.windows()
        now = windows[0].open_ns if windows else time.monotonic_ns()  # the first one may be open by now
        self.facts.set(start_ns=now, pid=pid)
        self.facts.save()
        return now

    def watch(self) -> None:
        """Start the thread that reads the clocks and keeps the spool files."""
        self._monitor.start(self._early)

    def is_recording(self) -> bool:
        """Say whether a window is open."""
        return self._control.gate() % 2 == 1

    def charge(self, count: int) -> bool:
        """Count bytes of a file of ours against --max-size; say whether they fit.

        `count` below 0 frees them.
        """
        return self._agent.charge(self._control.address, count)

    def is_kept(self, time_ns: int) -> bool:
        """Say whether a flight recorder keeps a time (ns).

        It is in the last seconds, or in a closed window.
        """
        recent = time.monotonic_ns() - round((self._options.keep_last or 0) * 1e9)
        return time_ns >= recent or any(
            window.open_ns <= time_ns < window.close_ns for window in self._control.windows()
        )

    def pause(self) -> None:
        """Stop watching until `watch_again`."""
        self._monitor.pause()

    def watch_again(self) -> None:
        """Go on."""
        self._monitor.resume()

    def end(
        self,
        *,
        end_ns: int,
        primary_end_ns: int | None,
        exit_status: int | None,
        still_running: Sequence[int],
        unheard: int = 0,
        other_tool: str | None = None,
    ) -> None:
        """Stop watching, and note how it went; `save` the facts when all of them are there.

        `unheard` processes have a spool although none of their libraries calls NVTX. `other_tool` is the NVTX tool that was
        configured before.
        """
        self.director.end()
        self.facts.set(end_ns=end_ns, primary_end_ns=primary_end_ns, exit_status=exit_status)
        self._monitor.stop()
        note_windows(self.facts, self.director.state(), self._options, end_ns=end_ns, spool=self._spool)
        self.facts.set(last_alive=dict(sorted(self._keeper.killed().items())[:_MOST_KILLED]))
        self._note_spool()
        self._note_outdated()
        self._note_counts(unheard)
        self._note_other_tool(other_tool)
        if still_running and not self.director.finished.is_set():
            names = ", ".join(f"{facts.process_name(pid)} ({pid})" for pid in still_running[:5]) + (
                ", …" if len(still_running) > 5 else ""
            )
            self.facts.note(
                "warning",
                "still-running",
                f"Still running when the recording ended: {names}. What they do from then on is "
                "not recorded.",
                count=len(still_running),
            )
        if missed := self._monitor.missed_lines:
            self.facts.note(
                "warning",
                "clock-lines",
                "Some readings of the clocks could not be written to the spool directory.",
                count=missed,
            )

    def _look(self) -> None:
        if self._also_look is not None:
            self._also_look()
        if self._outdated is not None and not self.is_read() and self._outdated.look():
            # Now and then, for the report of a launcher that is killed.
            self._note_outdated()
            self.facts.save()

    def abandon(self) -> None:
        """Release everything without a message.

        It is the recording of the process that this one was forked from.
        """
        self._keeper.release()
        self._control.close()

    def close(self) -> None:
        """Let go of the control page; nobody watches any more."""
        self._monitor.pause()
        self._control.close()

    def _create_control(self) -> ControlPage:
        short = CLOCK_SPAN_NS - (time.monotonic_ns() - self._early.monotonic)
        if short > 0:
            time.sleep(short / 1e9)
        path = self._spool / "control"
        try:
            self._agent.create_control(path, self._early, settings(self._options))
            return ControlPage(path)
        except OSError as error:
            raise CaptureError(
                f"Cannot write the control page {path}: {error.strerror}.\nName another directory "
                f"with {self._wording.spool_dir}."
            ) from error

    def _note_counts(self, unheard: int) -> None:
        counts = self._control.counts()
        if counts.failed:
            reason = os.strerror(counts.error) if counts.error else "unknown reason"
            reason = why_full(counts.error, self._spool) if counts.error in FULL else reason
            reason = (
                "--max-size was reached before they began" if counts.error == MAX_SIZE_REACHED else reason
            )
            hint = (
                f" Name another directory with {self._wording.spool_dir}."
                if counts.error in _OTHER_PLACE
                else ""
            )
            self.facts.note(
                "error",
                "agent-failed",
                f"{counted(counts.failed, 'process')} could not record, because no spool could be opened: "
                f"{reason}. {counted(counts.lost, 'call')} of NVTX {was(counts.lost)} lost.{hint}",
                count=counts.lost,
            )
        elif counts.processes <= unheard and (
            called := [name for name in ("nvtx", "cuda") if self.facts.traces(name)]
        ):
            off = os.environ.get("NVTX_DISABLE")
            hint = "Annotate it with warplens.nvtx, or any other NVTX library."
            if "nvtx" not in called:
                hint = "Record NVTX, too, with -t cuda,nvtx."
            elif off:
                hint = (
                    f"NVTX_DISABLE is set (to {off!r}; any value counts), which switches "
                    "warplens.nvtx and PyPI nvtx off: unset it."
                )
            what = " or ".join(name.upper() for name in called)
            if any(self.facts.traces(name) for name in CPU_TRACES):
                what += ", and nothing of the CPU side was recorded"
            self.facts.note(
                "warning",
                f"no-{called[0]}",
                f"No process of the program called {what}, so the report is empty. {hint}",
            )

    def _note_other_tool(self, tool: str | None) -> None:
        if count := self._control.counts().not_chained:
            self.facts.note(
                "warning",
                "nvtx-tool",
                f"Another NVTX tool, {tool or 'named in WARPLENS_NVTX_CHAIN'}, is configured too, "
                "but could not be loaded, or refused. "
                f"It heard nothing of {count} {'library' if count == 1 else 'libraries'}. Check "
                "that NVTX_INJECTION64_PATH names a tool "
                "that works by itself.",
                count=count,
            )

    def _note_outdated(self) -> None:
        if self._outdated is not None and (count := self._outdated.removed):
            last = duration(max(self._outdated.newest_ns - self.facts.start_ns, 0))
            self.facts.forget("ended-before")
            self.facts.note(
                "info",
                "ended-before",
                f"What {counted(count, 'process')} had recorded was dropped: all of them ended before "
                f"the time that --keep-last keeps, the last one {last} after the recording began. The "
                "report lists them without their events.",
                count=count,
                time_ns=self._outdated.newest_ns,
            )

    def _note_spool(self) -> None:
        rescued = self._keeper.rescue()
        if rescued or self._keeper.deleted:
            self.facts.note(
                "warning",
                "spool-deleted",
                f"The spool directory {self._spool} was deleted while the program ran. "
                f"{rescued} spool files were rescued; processes that began and ended around then "
                "may be missing.",
                count=rescued,
            )
        if self._keeper.lost:
            self.facts.note(
                "error",
                "spool-lost",
                f"{self._keeper.lost} deleted spool files could not be rescued.",
                count=self._keeper.lost,
            )
