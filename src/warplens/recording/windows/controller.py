"""Opens and closes the windows of one recording: at times, at commands, at limits.

And says when the recording is over.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from warplens.errors import CaptureError
from warplens.handover.control_layout import CAUSES, MOST_WINDOWS
from warplens.recording.agent.control_file import ControlPage, Window
from warplens.recording.agent.library import Agent
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.options.settings import TRIGGERS

Cause = Literal["start", "time", "nvtx", "cudaProfilerApi", "command", "max-size", "keep", "end"]
# No window yet; one is open; none is, another may come; there will be no other.
Phase = Literal["waiting", "recording", "paused", "over"]
_LONGEST_S = 3600.0  # what a lock can wait for is bounded
WATCH_S = 0.5  # how late a window is closed whose process was killed
POLL_S = 0.02  # how late a gate that programs move, and a full spool, may be noticed
_NO_MORE = (
    f"a recording has {MOST_WINDOWS:,} of them at most.\nStart the program again for another recording."
)
CUDA_S = 0.3  # after a window, agents fetch from CUPTI what ran on GPUs for so long: a program that is killed at once loses it


@dataclass(frozen=True, slots=True)
class State:
    """The state of a recording.

    `over_by` is why it is over, `full` that it has reached its `max_size`, `killed` that the
    program was.
    """

    phase: Phase
    windows: tuple[Window, ...]
    over_by: Cause | None
    full: bool
    killed: bool


class Director:
    """Directs one recording; all methods may be called from any thread.

    `begin` it when the program starts, `end` it when that ends.

    `kill` is called with a signal's number when the options want the program dead; `finished` is set when the recording is over,
    before that: by `shutdown`, by its duration or by the end of its last capture range. Without need there is not a thread.
    """

    def __init__(
        self,
        control: ControlPage,
        agent: Agent,
        options: CaptureOptions,
        kill: Callable[[int], None] = lambda number: None,
        *,
        wake: Callable[[], None] = lambda: None,
    ) -> None:
        self.finished = threading.Event()
        self._control = control
        self._agent = agent
        self._options = options
        self._kill = kill
        self._wake = wake
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)
        self._thread: threading.Thread | None = None
        self._delay_end_ns: int | None = None
        self._begun_ns: int | None = None
        self._over_by: Cause | None = None
        self._full = False
        self._killed = False

    def begin(self) -> None:
        """Start counting the delay, and start the thread if an option needs one."""
        with self._lock:
            if self._options.delay:
                self._delay_end_ns = time.monotonic_ns() + round(self._options.delay * 1e9)
            if self._pause() is not None:
                self._thread = threading.Thread(target=self._run, name="warplens-director", daemon=True)
                self._thread.start()

    def start(self, cause: Cause = "command") -> int:
        """Open a window; return its number (from 1), 0 when one is open already.

        CaptureError when no other can be opened.
        """
        with self._lock:
            if self._over_by is not None:
                raise CaptureError("This recording is over; start the program again for another one.")
            if self._full:
                raise CaptureError(
                    "This recording has reached its --max-size: there is no room for another window."
                )
            self._delay_end_ns = None
            try:
                number = self._each(lambda control: self._agent.open_window(control, CAUSES.index(cause)))
            except OSError as error:
                raise CaptureError(f"No other window can be opened: {_NO_MORE}") from error
            self._changed.notify()
            return number

    def stop(self, cause: Cause = "command") -> int:
        """Close the window that is open; return its number, 0 when none is.

        Of a flight recorder its last seconds stay.
        """
        with self._lock:
            self._delay_end_ns = None
            if (span := self._options.keep_last) is not None:
                return self._keep(span, cause, go_on=False)
            return self._each(lambda control: self._agent.close_window(control, CAUSES.index(cause)))

    def save(self, seconds: float) -> int:
        """Keep the last `seconds` of the window that is open.

        Return the number of the window that holds them, 0 when none is open.

        A flight recorder continues in a new window, and has nothing older than its `keep_last`; what an earlier window holds is
        not in this one again. Any other recording stops here. CaptureError when there is no room for another window.
        """
        recorder = self._options.keep_last
        with self._lock:
            self._delay_end_ns = None
            if recorder is None:
                return self._keep(seconds, "keep", go_on=False)
            return self._keep(min(seconds, recorder), "keep", go_on=self._over_by is None and not self._full)

    def shutdown(self, cause: Cause = "command", *, kill: int | None = None) -> None:
        """End the recording for good: close the window, let none open again, signal the program.

        `kill` None: as the options say.
        """
        with self._lock:
            if self._over_by is not None:
                return
            self._control.disarm()
            self.stop(cause)
            self._over_by = cause
            number = self._options.kill if kill is None else kill
            self._killed = number != 0
            self._changed.notify()
        if number:
            if "cuda" in self._options.trace and self._control.gate():
                time.sleep(CUDA_S)
            self._kill(number)
        self.finished.set()
        self._wake()

    def end(self) -> None:
        """The program has ended: close the window, and end the thread.

        `finished` stays as it is.
        """
        with self._lock:
            self._control.disarm()
            self.stop("end")
            self._control.gather()
            self._over_by = self._over_by or "end"
            self._changed.notify()
            thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def state(self) -> State:
        """Return how it stands now."""
        with self._lock:
            windows = tuple(self._control.windows())
            phase: Phase = (
                "recording"
                if self._control.gate() % 2
                else "over"
                if self._over_by
                else "paused"
                if windows
                else "waiting"
            )
            return State(phase, windows, self._over_by, full=self._full, killed=self._killed)

    def _keep(self, seconds: float, cause: Cause, *, go_on: bool) -> int:
        try:
            return self._each(
                lambda control: self._agent.keep_window(
                    control, CAUSES.index(cause), round(seconds * 1e9), go_on=go_on
                )
            )
        except OSError as error:
            raise CaptureError(f"The last seconds cannot be kept in a separate window: {_NO_MORE}") from error

    def _each(self, change: Callable[[int], int]) -> int:
        """Make one change in every control file there is; return what the latest says."""
        number = 0
        for address in self._control.addresses:
            number = change(address)
        return number

    def _run(self) -> None:
        with self._lock:
            while (pause := self._pause()) is not None:
                self._changed.wait(pause)
                self._look()

    def _pause(self) -> float | None:
        """For how long (s) nothing has to be done; None: for good."""
        if self._over_by is not None:
            return None
        pauses = []
        if self._delay_end_ns is not None:
            pauses.append((self._delay_end_ns - time.monotonic_ns()) / 1e9)
        if self._options.duration is not None:
            begun = self._first_open_ns()
            pauses.append(
                POLL_S if begun is None else (begun - time.monotonic_ns()) / 1e9 + self._options.duration
            )
        if self._options.capture_range != "none" or self._options.start_later:
            pauses.append(WATCH_S)
        if self._last_range() is not None or self._ends_full():
            pauses.append(POLL_S)
        return min(max(min(pauses), 0.0), _LONGEST_S) if pauses else None

    def _look(self) -> None:
        """Do what is due."""
        if self._over_by is not None:
            return
        now = time.monotonic_ns()
        if self._delay_end_ns is not None and now >= self._delay_end_ns:
            self._begin_after_delay()
        if self._ends_full() and self._control.refused():
            self.stop("max-size")
            self._full = True
            self._control.disarm()
        self._each(self._agent.close_abandoned_window)
        begun = self._first_open_ns()
        last = self._last_range()
        if (
            self._options.duration is not None
            and begun is not None
            and now >= begun + round(self._options.duration * 1e9)
        ):
            self.shutdown("time")
        elif last is not None and self._control.gate() >= 2 * last and self._ranges() >= last:
            self.shutdown("nvtx" if self._options.capture_range == "nvtx" else "cudaProfilerApi")

    def _ends_full(self) -> bool:
        """Whether the recording is to stop when it is full.

        A flight recorder continues: it writes over what is oldest.
        """
        return self._options.max_size is not None and self._options.keep_last is None and not self._full

    def _begin_after_delay(self) -> None:
        self._delay_end_ns = None
        if self._options.capture_range != "none":
            self._control.arm(TRIGGERS[self._options.capture_range])
            return
        with contextlib.suppress(CaptureError):  # only where a program has spoilt the control file
            self.start("time")

    def _first_open_ns(self) -> int | None:
        # a process that opens a window moves the gate first, and takes the time then
        if self._begun_ns is None and self._control.gate() and (begun := self._control.windows()[0].open_ns):
            self._begun_ns = begun
        return self._begun_ns

    def _ranges(self) -> int:
        """The number of closed windows of the capture range.

        Of those that are just being opened nobody may know who does.
        """
        causes = (self._options.capture_range, CAUSES[0])
        return sum(
            window.opened_by in causes for window in self._control.windows()[: self._control.gate() // 2]
        )

    def _last_range(self) -> int | None:
        """Return the number of the capture range that ends the recording; None if none does."""
        if self._options.capture_range == "none":
            return None
        return {"stop-shutdown": 1, "repeat-shutdown": self._options.range_count}.get(self._options.range_end)
