"""The windows of the capture: the events that they let in, the table `capture_windows`, notes."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import Any

from warplens.handover.control_layout import MOST_WINDOWS
from warplens.spool.notes import Note
from warplens.spool.windows import CaptureWindows

Span = tuple[int, int]

OPEN = (1 << 62) - 1  # the end of a window that is open


class Windows:
    """The facts of the control file, prepared for one part.

    Without a control file nothing is known: no window, everything is kept.

    `as_of`: the recording continues, and this is when it is looked at (ns).
    """

    def __init__(self, capture: CaptureWindows | None, as_of: int | None = None) -> None:
        self.capture = capture or CaptureWindows()
        self.known = capture is not None
        self._as_of = as_of

    @property
    def keeps_last(self) -> bool:
        """Whether a flight recorder was running.

        Of a window that nobody closed only the last seconds count.
        """
        return (
            self.known and self.capture.keep_ns > 0 and any(not window.end for window in self.capture.windows)
        )

    def keep_last(self, end: int) -> None:
        """Let the window that is open begin no earlier than a flight recorder keeps.

        `end`: of the recording, ns.
        """
        first = max(end - self.capture.keep_ns, 0)
        windows = (
            window if window.end else replace(window, start=max(window.start, first))
            for window in self.capture.windows
        )
        self.capture = replace(self.capture, windows=tuple(windows))

    def spans(self) -> list[Span] | None:
        """Return begin and end (ns, the spools' clock) of each window.

        None if nothing is known of them.
        """
        return (
            [(window.start, window.end or self._as_of or OPEN) for window in self.capture.windows]
            if self.known
            else None
        )

    def only(self) -> list[Span] | None:
        """Return the times that events must overlap to be in the report, sorted and disjoint.

        None: all that was written is wanted.

        Processes write what overlaps a window, but of some windows only the last seconds are left.
        """
        cut = self.capture.keep_ns > 0 or any(window.closed_by == "keep" for window in self.capture.windows)
        spans = self.spans()
        if spans is not None and cut:
            return _disjoint(spans)
        return [(0, self._as_of)] if self._as_of is not None else None

    def includes(self) -> Callable[[int], bool]:
        """Return what says whether a time (ns) lies in a window.

        Always, if nothing is known of them.
        """
        spans = self.spans()
        if spans is None:
            return lambda time: True
        disjoint = _disjoint(spans)
        begins = [begin for begin, _ in disjoint]

        def is_inside(time: int) -> bool:
            place = bisect_right(begins, time) - 1
            return place >= 0 and time < disjoint[place][1]

        return is_inside

    def rows(
        self,
        part: int,
        host: str,
        end: int,
        clock: Callable[[int], int],
        processes: Sequence[Mapping[str, Any]],
    ) -> list[dict[str, Any]]:
        """Return the rows of `capture_windows`.

        `end`: of the part, ns; `clock` corrects a time; `processes`: rows of that table.
        """
        answer = []
        starts: dict[int, list[tuple[int, int]]] = {}
        for row in processes:
            starts.setdefault(row["pid"], []).append((row["start"], int(row["process"])))
        for window in self.capture.windows:
            start = clock(window.start)
            answer.append(
                {
                    "part": part,
                    "number": window.number,
                    "host": host,
                    "start": start,
                    "end": max(clock(window.end) if window.end else self._as_of or end, start),
                    "opened_by": window.opened_by,
                    "closed_by": window.closed_by if window.end else "end" if self._as_of is None else None,
                    "process": _opener(starts.get(window.pid, []) if window.pid else [], start),
                }
            )
        return answer

    def notes(self, told: Container[str]) -> list[Note]:
        """The limits that the recording reached, from the control file.

        `told`: the codes of what the launcher noted itself.
        """
        capture = self.capture
        notes = []
        if capture.over and "max-size" not in told:
            limit = f"all spool files together reached --max-size ({capture.max_bytes / (1 << 20):,.4g} MiB)"
            message = (
                f"{limit}: a file could not grow {capture.over:,} times, and later records are missing; "
                "raise the limit, or record less"
            )
            if capture.keep_ns:
                message = f"{limit}: less is kept than --keep-last asks for; allow more, or capture less"
            notes.append(
                Note("warning", "max-size", "report", message=message, count=min(capture.over, 1 << 62))
            )
        if capture.keep_ns:
            message = f"a flight recorder: of each window only the last {capture.keep_ns / 1e9:,.6g} s are here (--keep-last)"
            notes.append(Note("info", "keep-last", "report", message=message))
        if capture.damaged:
            message = f"{capture.damaged} windows of the capture have impossible times and are left out"
            notes.append(Note("warning", "damaged-windows", "report", message=message, count=capture.damaged))
        if capture.full:
            message = f"the capture had its most windows, {MOST_WINDOWS:,}: what came after the last of them was not recorded"
            notes.append(Note("warning", "no-more-windows", "report", message=message, count=MOST_WINDOWS))
        return notes


def _disjoint(spans: Sequence[Span]) -> list[Span]:
    """Sort times, and put together those that have something in common.

    Edges that touch stay edges.
    """
    merged: list[Span] = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _opener(mine: Sequence[tuple[int, int]], start: int) -> int | None:
    """Return the key of the process that opened a window at `start`.

    Of those with its id, (start, key), the last one before.
    """
    return max((one for one in mine if one[0] <= start), default=min(mine, default=(0, None)))[1]
