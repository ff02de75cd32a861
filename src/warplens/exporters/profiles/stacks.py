"""Samples for exporters of profiles: the selected ones with their threads and names of frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.samples import kind_of, sampled
from warplens.analysis.ranges.phases import pieces
from warplens.exporters.tracks import Tracks
from warplens.report.selection import Selection

if TYPE_CHECKING:
    from warplens.analysis.cpu.frames import Frame
    from warplens.arrays import Int64Array
    from warplens.report import Report

ALL = Selection()


@dataclass(frozen=True)
class Wanted:
    """The selected samples: `kind` is python, native, osrt (OS calls that have a stack) or tasks.

    `wall`: also of what waited.
    """

    kind: str
    wall: bool

    @property
    def time(self) -> str:
        """The meaning of the samples' weights: `wall` or `cpu` time."""
        return "wall" if self.wall or self.kind == "osrt" else "cpu"


class ProfileThreads:
    """The names of the threads and processes of a report."""

    def __init__(self, report: Report) -> None:
        tracks = Tracks.of(report)
        self._of = {thread.key: (thread, tracks.processes[thread.process]) for thread in tracks.threads}
        self.several = len(tracks.processes) > 1

    def name(self, thread: int) -> str:
        """Return the name of a thread, with its id."""
        thread_row = self._of.get(thread)
        if thread_row is None:
            return f"thread {thread}"
        name, tid = thread_row[0].name, thread_row[0].tid
        return name if str(tid) in name else f"{name} ({tid})"

    def process(self, thread: int) -> str:
        """Return the name of its process, with its id if there are several."""
        thread_row = self._of.get(thread)
        if thread_row is None:
            return "unknown process"
        return f"{thread_row[1].name} ({thread_row[1].pid})" if self.several else thread_row[1].name

    def ids(self, thread: int) -> tuple[int, int]:
        """Return the ids of the process and of the thread; 0 if they are not known."""
        thread_row = self._of.get(thread)
        return (0, 0) if thread_row is None else (thread_row[1].pid, thread_row[0].tid)


def wanted(report: Report, kind: str, wall: bool) -> Wanted:
    """Choose the samples.

    `kind`: auto, python, native, osrt or tasks. Raises MissingData and UsageError.
    """
    return Wanted(kind_of(report, kind, wall=wall), wall)


def sums(report: Report, selection: Selection | None, which: Wanted) -> pa.Table:
    """Return process, thread, stack, weight (ns) and count of the samples of each thread's stacks."""
    return sampled(report, selection or ALL, kind=which.kind, wall=which.wall)


def threads_with_samples(report: Report, selection: Selection | None, which: Wanted) -> list[int]:
    """Return the threads that have such samples, in the order of the report."""
    text = f"SELECT DISTINCT process, thread FROM {pieces(report, selection or ALL, 'samples')} WHERE {_condition(which)} ORDER BY ALL"
    return [int(row["thread"]) for row in report.sql(text).to_pylist()]


def of_thread(report: Report, selection: Selection | None, which: Wanted, thread: int) -> pa.Table:
    """Return start, weight (ns), count and stack of a thread's samples, in the order of time."""
    return report.sql(
        f"""SELECT "start", round(weight * part)::BIGINT AS weight, round("count" * part)::BIGINT AS "count", stack
            FROM {pieces(report, selection or ALL, "samples")} WHERE {_condition(which)} AND thread = {int(thread)} ORDER BY "start", id"""
    )


class Labels:
    """The frames of a report, distinguished by function or (`lines`) by line."""

    def __init__(self, frames: FrameTable, code: pa.Table, *, lines: bool) -> None:
        """`code`: file, build id and address of each frame."""
        self.frames, self.lines, self._code = frames, lines, code
        self.numbers: Int64Array = frames.labels("line" if lines else "function")

    @classmethod
    def of(cls, report: Report, *, lines: bool) -> Labels:
        """Return those of a report."""
        code = report.table("frames", ["path", "build_id", "address"])
        return cls(FrameTable.of(report), code, lines=lines)

    def line(self, frame: Frame) -> int | None:
        """Return the line that is shown of a frame: that which ran, or where the function begins."""
        return frame.line if self.lines else frame.first_line

    def code(self, position: int) -> tuple[str, str, int]:
        """Return the file that a frame's native code is in, its build id, and the address in it.

        Empty and 0 if not known.
        """
        if position >= self._code.num_rows:  # no stack was taken
            return "", "", 0
        path, build, address = (column[position].as_py() for column in self._code.columns)
        return path or "", build or "", address or 0

    def positions(self, stack: int) -> list[int]:
        """Return the frames of a stack by position, the outermost first."""
        frames: list[int] = []
        while stack >= 0 and len(frames) < len(self.frames):
            frames.append(stack)
            stack = int(self.frames.parent[stack])
        return frames[::-1]


def _condition(which: Wanted) -> str:
    return f"kind = '{which.kind}'{'' if which.wall or which.kind == 'native' else ' AND on_cpu'}"
