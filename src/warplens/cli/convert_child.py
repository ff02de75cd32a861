"""The child process that writes the report while its program still runs, with spare CPU time."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from warplens.cli import load_ahead
from warplens.cli.light import give_back_early, import_lightly
from warplens.handover import pending
from warplens.handover.priority import come_back, come_last, step_back
from warplens.storage.available import available

SHARE = 0.05  # of one core, from the beginning of the recording on
_ROOM = 128 << 20  # bytes that are free: where less is, the program and its files need it more
_PACE_S = 0.25
_ALONE_S = 0.5
_PATIENCE_S = 5.0
_ENOUGH = 0.3  # of a core


def main(request: Mapping[str, Any]) -> None:
    """Write the report of a recording until its `control` says that it is over, then finish it.

    `request` names the recording's note.

    `answer` hears how far that is, a line of JSON each, and last the messages about it. Where the launcher ends without a word, the
    report is finished when nobody records any more.
    """
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the launcher blocks all of them
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)
    step_back(0, first_to_go=True)
    import_lightly()
    give_back_early()
    note = pending.read(Path(request["note"]))
    if note is not None and available() >= _ROOM:
        ahead = () if request["quiet"] or available() < load_ahead.ROOM else load_ahead.one_by_one()
        converter = _Converter(note, request["begun_ns"], ahead)
        told = converter.follow(request["control"])
        converter.finish(request["answer"], summary=told and not request["quiet"])


class _Converter:
    """Follows one recording on a thread that comes last.

    The main thread, which does not, finishes it.
    """

    def __init__(self, note: pending.Pending, begun_ns: int, ahead: Iterable[str]) -> None:
        """`ahead`: each step of it does a piece of work that the end needs, too."""
        from warplens.convert.begun import Begun

        self._note, self._begun_ns, self._ahead = note, begun_ns, iter(ahead)
        self._over = threading.Event()
        self._whole = False
        self._begun = Begun(note, self._pace)

    def follow(self, control: int) -> bool:
        """Follow the recording until it is over; return whether the launcher is there to say so."""
        follower = threading.Thread(target=self._follow, daemon=True)
        follower.start()
        told = bool(os.read(control, 1))
        while not told and pending.runner(self._note) is not None:
            time.sleep(_ALONE_S)
        self._over.set()
        if come_back(follower.native_id or 0):
            follower.join()
        self._whole = _ends(follower)
        return told

    def finish(self, answer: int, *, summary: bool) -> None:
        """Finish the report, and send its messages to the parent."""
        from warplens.cli.finishing import summed_up
        from warplens.convert.finish import finish

        said_ns = 0

        def say(what: Mapping[str, Any]) -> None:
            try:
                os.write(answer, f"{json.dumps(what)}\n".encode())
            except OSError:
                pass  # the launcher was interrupted: the report is worth as much

        def progress(stage: str, done: float) -> None:
            nonlocal said_ns
            if (now := time.monotonic_ns()) - said_ns > _PACE_S * 1e9:
                said_ns = now
                say({"stage": stage, "done": done})

        # Others may leave the thread that comes last nothing at all: then what it did is done again.
        begun = self._begun if self._whole else None
        manifest = finish(
            self._note, self._note.report, keep_raw=self._note.keep_raw, progress=progress, begun=begun
        )
        say({"said": list(summed_up(self._note.report, manifest)) if summary else []})
        os._exit(0)  # nobody waits until all modules are torn down, nor for a thread that starves

    def _follow(self) -> None:
        come_last()
        try:
            while self._pace():
                wrote = self._begun.step(time.monotonic_ns())
                loaded = self._pace() and next(self._ahead, None) is not None
                if not wrote and not loaded:
                    self._over.wait(_PACE_S)
        except (
            BaseException
        ) as error:  # a full disk, a surprise: the launcher finishes the report when the program has ended
            self._begun.abandon()
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)

    def _pace(self) -> bool:
        """Wait until more may be done; return whether the recording continues."""
        while not self._over.is_set():
            more = time.process_time() - SHARE * (time.monotonic_ns() - self._begun_ns) / 1e9
            if more <= 0:
                break
            self._over.wait(min(max(more / SHARE, 0.01), 1.0))
        return not self._over.is_set()


def _ends(thread: threading.Thread) -> bool:
    """Wait for the end of a thread that may starve and whose work is necessary, as long as the machine lets it."""
    while thread.is_alive():
        before = time.process_time()
        thread.join(_PATIENCE_S)
        if time.process_time() - before < _PATIENCE_S * _ENOUGH:
            break
    return not thread.is_alive()
