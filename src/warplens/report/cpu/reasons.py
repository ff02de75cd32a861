"""Why threads were blocked: the OS call, or the wait for the GIL, that each was in when it stopped."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from warplens.report.cpu.chosen import Chosen
from warplens.report.enclosing import Enclosing
from warplens.report.texts import UNKNOWN
from warplens.report.words import labelled
from warplens.spool.strings import Strings

_GIL = -2


class Reasons:
    """The reasons of the rows of `thread_states`; calls and waits go by in order of start while they are written."""

    def __init__(self, states: Chosen, strings: Strings) -> None:
        self._strings, self._states = strings, states
        self._calls: Enclosing | None = None  # most short processes make no calls, and never wait
        self._waits: Enclosing | None = None

    def call(self, thread: npt.NDArray[np.int32], start: npt.NDArray[np.int64], found: npt.NDArray[Any]) -> None:
        """Take the next OS calls."""
        self._calls = self._calls or self._around()
        self._calls.pass_by(_ranges(thread, start, found["end"], found["name"]))

    def wait(self, thread: npt.NDArray[np.int32], start: npt.NDArray[np.int64], found: npt.NDArray[Any]) -> None:
        """Take the next waits for the GIL."""
        self._waits = self._waits or self._around()
        self._waits.pass_by(_ranges(thread, start, found["end"], found["name"]))

    def finish(self) -> None:
        """Look at the states behind the last call and wait."""
        for around in (self._calls, self._waits):
            if around is not None:
                around.finish()

    def column(self, rows: slice, blocked: npt.NDArray[np.bool_]) -> pa.DictionaryArray:
        """Return the reasons of some rows; null where there is none."""
        reason = np.full(len(blocked), -1, np.int64) if self._calls is None else self._calls.found[rows]
        if self._waits is not None:  # who waits for the GIL does so in a call, which tells less
            reason = np.where(self._waits.found[rows] >= 0, _GIL, reason)
        words = {number: self._strings.get(number) or UNKNOWN for number in np.unique(reason[reason >= 0]).tolist()}
        return labelled(reason, words | {_GIL: "GIL"}, absent=~blocked | (reason == -1))

    def _around(self) -> Enclosing:
        return Enclosing(self._states.thread, self._states.start)


def _ranges(
    thread: npt.NDArray[np.int32], start: npt.NDArray[np.int64], end: npt.NDArray[Any], name: npt.NDArray[Any]
) -> dict[str, npt.NDArray[Any]]:
    return {
        "thread": thread.astype(np.int64),
        "start": np.ascontiguousarray(start),
        "end": end.astype(np.int64),
        "id": name.astype(np.int64),
        "style": np.zeros(len(start), np.int32),
    }
