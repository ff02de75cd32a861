"""Serves start, stop, status and shutdown requests for one recording over its control socket."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import CaptureError, WarplensError
from warplens.recording.options.capture import CaptureOptions
from warplens.recording.session.directory import Membership, Note, join
from warplens.recording.session.server import Connection, Server
from warplens.recording.session.snapshots import Answer, Snapshots

if TYPE_CHECKING:
    from warplens.recording.launch.child import Child
    from warplens.recording.run import Run

SAVE_SIGNAL = signal.SIGUSR2
_SIGNALS = {0, *map(int, signal.valid_signals())}
_LOOK_S = 2.0
_SNAPSHOT_LOOK_S = 0.02
_YOUNG_S = 3600.0
_GIVE_WAY_S = 2.0
_MOST_WINDOWS = 100
_LONGEST_KEEP_S = 1e9


class Attendant:
    """Answers requests for one recording.

    Make it before anything is written, then `describe`, `attend` and, at the very end, `close`.

    UsageError if the session's own name is taken, CaptureError where it cannot be entered under it. Without a given name
    a recording continues without session; `problem` then says why. `tell` prints a message beside the program's output.
    """

    def __init__(self, options: CaptureOptions, default: str, tell: Callable[[str], None]) -> None:
        self.problem: str | None = None
        self._options = options
        self._tell = tell
        self._membership: Membership | None = None
        try:
            self._membership = join(options.session, default)
        except CaptureError as error:
            if options.session is not None:
                raise
            self.problem = str(error)
        self._note = Note(default, 0, 0) if self._membership is None else self._membership.note
        self._server: Server | None = None
        self._run: Run | None = None
        self._child: Child | None = None
        self._snapshots: Snapshots | None = None
        self._last_state: dict[str, Any] | None = None
        self._until_finished: list[Callable[[Answer], None]] = []
        self._over = False
        self._young_again = time.monotonic() + _YOUNG_S

    @property
    def name(self) -> str:
        """The name of the session."""
        return self._note.name

    def describe(self, report: Path, part: Path, command: tuple[str, ...]) -> None:
        """Say what is recorded where: `part` is the note in the report that it is not finished."""
        self._note = replace(self._note, report=str(report), part=str(part), command=command)
        if self._membership is not None:
            with contextlib.suppress(OSError):  # found by its name all the same
                self._membership.describe(self._note)

    @contextlib.contextmanager
    def attend(self, run: Run, child: Child) -> Iterator[None]:
        """Answer requests about the recording `run`.

        The signals of this thread are blocked by now.
        """
        self._run, self._child = run, child
        self._snapshots = snapshots = Snapshots(Path(self._note.part), child.aside)
        run.is_read = lambda: snapshots.busy
        if self._options.keep_last is not None:
            child.hear(SAVE_SIGNAL, self._save)
        try:
            self._server = Server(self._handle, self._look)
        except OSError:  # no more descriptors; the program comes first
            yield
            return
        if self._membership is not None:
            self._server.listen_on(self._membership.socket)
        self._server.start()
        try:
            yield
        finally:
            self._over = True
            given_way = threading.Event()
            if self._server.post(lambda: self._give_way(given_way)):
                given_way.wait(_GIVE_WAY_S)

    def close(self, said: str, *, finished: bool = False) -> None:
        """Answer who still waits with `said`, and whether the report is finished; and leave."""
        if self._server is not None:
            self._server.post(lambda: self._say_last(said, finished))
            self._server.stop()
        if self._membership is not None:
            self._membership.leave()
            self._membership = None

    def _handle(self, request: dict[str, Any], client: Connection) -> None:
        actions = {
            "status": self._status,
            "start": self._start,
            "stop": self._stop,
            "snapshot": self._refresh,
            "shutdown": self._shutdown,
        }
        action = actions.get(str(request.get("do")))
        try:
            if action is None:
                raise CaptureError(
                    f"There is no request {request.get('do')!r}: the two sides have different versions."
                )
            action(request, client)
        except WarplensError as error:
            client.answer({"ok": False, "error": str(error)})

    def _status(self, request: dict[str, Any], client: Connection) -> None:
        client.answer({"ok": True, **self._state()})

    def _start(self, request: dict[str, Any], client: Connection) -> None:
        assert self._run is not None
        if self._over:
            raise CaptureError("This recording is over: its report is being written.")
        number = self._run.director.start()
        client.answer({"ok": True, "window": number, **self._state()})

    def _stop(self, request: dict[str, Any], client: Connection) -> None:
        keep = request.get("keep")
        if keep is not None and not (isinstance(keep, (int, float)) and 0 < keep < _LONGEST_KEEP_S):
            raise CaptureError(f"{keep!r} is not a number of seconds to keep.")
        number = 0 if self._over else self._close_window(keep)

        def done(answer: Answer) -> None:
            client.answer({"ok": True, "window": number, **answer, **self._state()})

        if not request.get("wait", True):
            done({"lines": [], "said": []})
        elif self._over:
            self._until_finished.append(done)
        else:
            self._snapshot(done)

    def _refresh(self, request: dict[str, Any], client: Connection) -> None:
        """Bring the report up to date, and record on."""

        def done(answer: Answer) -> None:
            client.answer({"ok": True, **answer, **self._state()})

        if self._over:
            self._until_finished.append(done)
        else:
            self._snapshot(done)

    def _shutdown(self, request: dict[str, Any], client: Connection) -> None:
        assert self._run is not None
        kill = request.get("kill")
        if kill is not None and not (isinstance(kill, int) and kill in _SIGNALS):
            raise CaptureError(f"{kill!r} is not a signal.")
        self._until_finished.append(lambda answer: client.answer({"ok": True, **answer, **self._state()}))
        if not self._over:
            self._run.director.shutdown(kill=kill)

    def _close_window(self, keep: float | None) -> int:
        assert self._run is not None
        director = self._run.director
        number = director.stop() if keep is None else director.save(float(keep))
        if number == 0 and not director.state().windows:
            raise CaptureError(
                f"Nothing has been recorded yet.\nStart with: warplens start --session {self._note.name}"
            )
        return number

    def _snapshot(self, done: Callable[[Answer], None]) -> None:
        assert self._snapshots is not None
        self._snapshots.ask(done)

    def _save(self) -> None:
        """The signal came: keep the last seconds, and say where they are.

        In the main thread, which has a program to wait for.
        """
        if self._server is None or not self._server.post(self._save_and_tell):
            self._tell(
                "warplens: the last seconds cannot be saved: the launcher has too many threads or files open."
            )

    def _save_and_tell(self) -> None:
        span = self._options.keep_last
        if span is None or self._over:
            return
        try:
            number = self._close_window(span)
        except WarplensError as error:
            self._tell(f"warplens: {' '.join(str(error).split())}")
            return
        if number == 0:
            self._tell("warplens: the recording is stopped, so there are no last seconds to save.")
            return

        def done(answer: Answer) -> None:
            if not answer.get("final"):  # the end of the recording says enough
                said = (
                    [f"saved the last {span:g} s into {self._note.report}"] if answer.get("finished") else []
                )
                for line in [*answer.get("said", []), *said]:
                    self._tell(f"warplens: {line}")

        self._snapshot(done)

    def _state(self) -> dict[str, Any]:
        if self._last_state is not None:
            return self._last_state
        assert self._run is not None
        assert self._child is not None
        state = self._run.director.state()
        return {
            "session": self._note.name,
            "pid": os.getpid(),
            "program": self._child.pid,
            "report": self._note.report,
            "phase": "over" if self._over else state.phase,
            "over_by": state.over_by,
            "full": state.full,
            "windows": [asdict(window) for window in state.windows[-_MOST_WINDOWS:]],
            "window_count": len(state.windows),
            "keep_last": self._options.keep_last,
        }

    def _give_way(self, given_way: threading.Event) -> None:
        """The recording is over, and its report is about to be written for good."""
        self._last_state = self._state()
        if self._snapshots is not None:
            self._until_finished += self._snapshots.cancel()
        given_way.set()

    def _say_last(self, said: str, finished: bool) -> None:
        for done in self._until_finished:
            done({"lines": [], "said": [said], "finished": finished, "final": True})

    def _look(self) -> float:
        """Pass on snapshots, and keep the session where it is found.

        Return for how long (s) there is nothing to look at.
        """
        if self._snapshots is not None and self._snapshots.busy:
            self._snapshots.look()
            if self._snapshots.busy:
                return _SNAPSHOT_LOOK_S
        if self._note.pid and (self._membership is None or not self._membership.in_place()):
            with contextlib.suppress(WarplensError, OSError):
                self._join_again()
        elif self._membership is not None and time.monotonic() > self._young_again:
            self._young_again = time.monotonic() + _YOUNG_S
            self._membership.keep_young()
        return _LOOK_S

    def _join_again(self) -> None:
        assert self._server is not None
        self._server.listen_on(None)
        if self._membership is not None:
            self._membership.leave()
            self._membership = None
        self._membership = join(None, self._note.name)
        self._server.listen_on(self._membership.socket)
        self._note = replace(self._note, name=self._membership.note.name)
        self._membership.describe(self._note)
