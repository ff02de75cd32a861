"""Records this process without a launcher: `record()` around a block, or `start()` and `stop()`."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Any

from warplens.errors import UsageError
from warplens.recording.agent.announce import SPOOL
from warplens.recording.agent.libraries import Library, named
from warplens.recording.finishing.finisher import Finisher
from warplens.recording.fork_warning import COUNTS_LATE, after_hooks
from warplens.recording.options.capture import DEFAULTS, CaptureOptions
from warplens.recording.session.own import AlreadyRecorded, Session

_lock = threading.RLock()
_current: Recording | None = None
_finishing: list[Recording] = []
_unheard_told: set[tuple[str, ...]] = set()
_forked = False
_registered = False


class Recording:
    """One recording, as `record` makes it; a context manager.

    `path` is None where somebody else records this process.
    """

    def __init__(
        self,
        output: str | os.PathLike[str] | None = None,
        *,
        force: bool = False,
        wait: bool = False,
        spool_dir: str | os.PathLike[str] | None = None,
        keep_raw: bool = False,
        options: CaptureOptions | None = None,
    ) -> None:
        self.path: Path | None = None
        self._output = None if output is None else os.fsdecode(output)
        self._force = force
        self._wait = wait
        self._spool_dir = None if spool_dir is None else Path(spool_dir)
        self._keep_raw = keep_raw
        self._options = options
        self._session: Session | None = None
        self._finisher: Finisher | None = None
        self._attached: tuple[str, ...] = ()
        self._told = False

    @property
    def recording(self) -> bool:
        """True between start and stop."""
        return self._session is not None

    @property
    def attached_libraries(self) -> tuple[Library, ...]:
        """The libraries whose NVTX calls are heard: those that made one."""
        session = self._session
        return tuple(named(path) for path in (self._attached if session is None else session.attached()))

    @property
    def silent_libraries(self) -> tuple[Library, ...]:
        """The libraries with NVTX in them that made their first call too early to be heard, or none at all.

        Known when the recording has ended: waits until its report is finished. Empty while it runs.
        """
        return tuple(named(str(path)) for path in self._answer().get("silent", ()))

    def wait(self) -> bool:
        """Wait until the report is finished; return whether it is.

        False while it still records, or somebody else does.
        """
        return bool(self._answer().get("finished"))

    def settled(self) -> bool:
        """Say whether there is nothing to wait for, without waiting."""
        if self._finisher is None or not self._finisher.done():
            return self._finisher is None
        self._answer()
        return True

    def _answer(self) -> dict[str, Any]:
        if self._finisher is None:
            return {}
        answer = self._finisher.wait()
        told, self._told = self._told, True
        if not told:  # by us, not by the child: a notebook shows only what its own process says
            for line in answer.get("said", ()):
                _tell(str(line))
            silent = tuple(answer.get("silent", ()))
            if silent not in _unheard_told:  # the same libraries stay silent in every recording of a process
                _unheard_told.add(silent)
                for line in answer.get("unheard", ()):
                    _tell(str(line))
            if died := self._finisher.died:
                _tell(
                    f"{self.path} is not finished: its child process ended ({died}). Nothing is lost: "
                    "the next command that opens it finishes it."
                )
        return answer

    def __enter__(self) -> Recording:
        begin(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        end(self, wait=self._wait)

    def __repr__(self) -> str:
        state = "recording" if self.recording else "ended" if self._finisher is not None else "not recording"
        return f"<Recording {str(self.path) if self.path else None!r}: {state}>"


def record(
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    wait: bool = False,
    spool_dir: str | os.PathLike[str] | None = None,
    keep_raw: bool = False,
) -> Recording:
    """Record this process, and the children it starts, for the length of a `with` block.

        with warplens.record("run.warplens") as recording:
            train()
        print(recording.path, recording.silent_libraries)

    The report is the one that `warplens profile -o OUTPUT` would write; a child process finishes it while the program continues.
    `warplens.open` waits for that, and so does the end of the program. Where a launcher or an outer `record` records
    already, a line on stderr says so and nothing happens: what is in the block is in that report.

    Args:
        output: Name of the report, as for `-o`: knows %p, %h, %n and %q{VAR}; default report1, report2, …
        force: Overwrite a report that is there.
        wait: End the block only when the report is finished.
        spool_dir: Record into this directory, on a disk of this node.
        keep_raw: Keep the raw spool in the report.

    Raises, at the start of the block only: ReportError if the report cannot be written, CaptureError where the agent or a
    place for the spool is missing, UsageError for a name that is none. The end of the block never raises: it prints errors on
    stderr, and the next command that opens the report finishes it.
    """
    return Recording(output, force=force, wait=wait, spool_dir=spool_dir, keep_raw=keep_raw)


def start(
    output: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    spool_dir: str | os.PathLike[str] | None = None,
    keep_raw: bool = False,
) -> Recording:
    """Begin a recording, which `stop`, from any thread, or the end of the program ends.

    The arguments and errors of `record`.
    """
    recording = Recording(output, force=force, spool_dir=spool_dir, keep_raw=keep_raw)
    begin(recording)
    return recording


def stop(*, wait: bool = False) -> Recording | None:
    """End the recording of this process, and return it; None where there is none.

    Never raises; `wait` for the finished report.
    """
    recording = _current
    if recording is not None:
        end(recording, wait=wait)
    return recording


def begin(recording: Recording) -> None:
    """Start `recording`, unless this process is recorded already."""
    global _current, _registered
    with _lock:
        if recording.path is not None:
            raise UsageError(
                f"This recording, into {recording.path}, is finished: call record() or start() for "
                "another one."
            )
        _finishing[:] = [earlier for earlier in _finishing if not earlier.settled()]
        if _current is not None:
            recording.path = _current.path
            _tell(
                f"this process is recorded already, into {_current.path}; a second recording in it "
                "was ignored."
            )
            return
        if recorded_by_launcher():
            _tell(
                "this process is recorded already, by `warplens profile` or its parent; its own "
                "recording was ignored."
            )
            return
        if recording._force:
            for earlier in _finishing:  # its report may be what is overwritten
                earlier.wait()
        try:
            session = Session(
                recording._output,
                force=recording._force,
                spool_dir=recording._spool_dir,
                keep_raw=recording._keep_raw,
                renew=_forked,
                options=recording._options or _unasked(),
            )
        except AlreadyRecorded:
            _tell("this process is recorded already; its own recording was ignored.")
            return
        recording._session = session
        recording.path = session.report
        _current = recording
        if not _registered:
            _registered = True
            atexit.register(_at_exit)


def end(recording: Recording, *, wait: bool) -> None:
    """Stop `recording` if it is what runs; never raises an error of ours."""
    global _current
    with _lock:
        session = recording._session
        if session is None:
            return
        recording._session = None
        if _current is recording:
            _current = None
        try:
            if session.pid != os.getpid():
                session.leave()
                return
            recording._attached = tuple(session.attached())
            recording._finisher = session.stop()
            _finishing.append(recording)
        except Exception as error:
            _tell(
                f"{recording.path} is not finished: {error}. Nothing is lost: `warplens info` "
                "finishes it in an environment where warplens works."
            )
            return
    if wait:
        recording.wait()


def _unasked() -> CaptureOptions:
    """Return the default options; with operators of PyTorch if the program has loaded it."""
    return replace(DEFAULTS, trace=(*DEFAULTS.trace, "torch")) if "torch" in sys.modules else DEFAULTS


def recorded_by_launcher() -> bool:
    """Return whether `warplens profile` or `warplens launch` records this process."""
    spool = os.environ.get(SPOOL)
    return bool(spool) and os.path.exists(os.path.join(str(spool), "control"))


def _tell(text: str) -> None:
    """Say one line on stderr, if there is one."""
    try:
        if sys.stderr is not None:
            sys.stderr.write(f"warplens: {text}\n")
    except (OSError, ValueError):
        pass


def _at_exit() -> None:
    stop()
    try:
        for recording in _finishing:
            recording.wait()
    except KeyboardInterrupt:
        pass  # each goes on by itself


def _before_fork() -> None:
    if _current is not None and _current._session is not None:
        _current._session.before_fork()


def _after_fork_in_parent() -> None:
    if _current is not None and _current._session is not None:
        if COUNTS_LATE:
            after_hooks(_watch_again)
        else:
            _watch_again()


def _watch_again() -> None:
    with _lock:
        if _current is not None and _current._session is not None and _current._session.pid == os.getpid():
            _current._session.after_fork(child=False)


def _after_fork_in_child() -> None:
    """The recording is the parent's; the agent records the child into it until `leave`."""
    global _lock, _current, _forked
    _lock = threading.RLock()
    _finishing.clear()
    if _current is not None and _current._session is not None:
        _current._session.after_fork(child=True)
    _forked = _forked or _current is not None
    _current = None


os.register_at_fork(
    before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child
)
