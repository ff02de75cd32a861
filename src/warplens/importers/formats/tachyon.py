"""Recordings of Python 3.15's sampling profiler (Tachyon), written with `--binary`.

With or without zstd compression.

## Made by
`python -m profiling.sampling run --binary -o FILE` and `… attach --binary -o FILE PID` (3.15 and
later).

## What maps to what
| there | here |
|---|---|
| a sample of a thread | `samples`: consecutive samples with the same stack and state are one row |
| its frames | `frames`: function, file, line; `<native>` and `<GC>` are native code |
| the thread's state | `on_cpu` if the file has it (`--mode cpu`), else all count as running; `gil`: it held the GIL |
| its exception | `exception`: one was raised or handled; null if the file has none, because the profiler may not have recorded them |
| thread ids, interpreters | `threads`; the main thread has its name |
| times | of the monotonic clock, as in recordings of warplens |

Without a GIL, all threads that run Python hold it at once. A sample stands for the usual time
between two samples of a thread, which is longer than the requested interval if the profiler was
late.

## What is dropped
Columns and instructions of frames, waits for the GIL, statistics of the profiler.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.importers.profiles.stacks import FrameTree, ImportedProfile, SampledThread, write
from warplens.importers.profiles.tachyon import (
    EXCEPTION,
    HAS_GIL,
    MAGICS,
    MAIN,
    ON_CPU,
    UNKNOWN,
    Broken,
    TachyonFile,
)

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.importers.profiles.tachyon import Frame
    from warplens.importers.profiles.tachyon import TachyonThread as Sampled
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".bin",)
CONTENT = "recording of Python's sampling profiler"
DROPS: tuple[str, ...] = ("columns and instructions", "waits for the GIL", "statistics of the profiler")
_LONGEST = 100 * 365 * 86400 * 10**6  # us
_GAP = 10  # intervals: a thread that was not seen for longer did something else


def recognises(path: Path) -> bool:
    """Say whether the file begins as such a recording does."""
    with open(path, "rb") as file:
        return file.read(4) in MAGICS


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError for a file that is broken or has no sample.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    try:
        recording = TachyonFile(source.read_bytes())
        tree: FrameTree[Frame] = FrameTree(part.key(0), _frame)
        taken = _Taken(recording, tree)
        for number, (thread, kept, ticks) in enumerate(recording.samples()):
            taken.add(thread, kept, ticks)
            if number % 65536 == 0:
                progress("samples", min(0.9 * taken.count / max(recording.header.samples, 1), 0.9))
    except Broken as error:
        raise ReportError(f"{source} is broken: {error}.") from error
    if not taken.count:
        raise ReportError(
            f"{source} contains no sample: the program ended immediately, or no thread was in the "
            "requested mode."
        )
    tick, threads = taken.finish()
    begin = recording.header.begin * 1000
    end = max(max(thread.samples.columns["end"]) for thread in threads) + tick
    facts = write(
        part,
        source,
        tree,
        profile=ImportedProfile(
            "profiling.sampling", threads, end, diagnostics=taken.notices(tick), origin=begin
        ),
    )
    progress("write", 1.0)
    return facts


class _Taken:
    """Samples as they come, thread by thread; what they stand for is known at the end."""

    def __init__(self, recording: TachyonFile, tree: FrameTree[Frame]) -> None:
        self.count = 0
        self._recording = recording
        self._tree = tree
        self._rows: dict[int, _Rows] = {}  # by what the reader calls a thread
        self._steps: Counter[int] = Counter()  # us between two samples of a thread
        self._states = 0  # bits that any sample had

    def add(self, thread: Sampled, kept: int, ticks: list[tuple[int, int]]) -> None:
        """Take ticks of a thread with the same stack.

        Its outermost `kept` frames were there before.
        """
        rows = self._rows.get(id(thread))
        if rows is None:
            rows = self._rows[id(thread)] = _Rows(thread)
        del rows.places[kept:]
        for frame in thread.stack[kept:]:
            rows.places.append(
                self._tree.below(rows.places[-1] if rows.places else -1, self._recording.frames[frame])
            )
        if max(self._recording.header.interval, ticks[-1][0]) > _LONGEST:
            raise Broken("it is longer than a century")
        stack = rows.places[-1] if rows.places else -1
        gap = _GAP * max(self._recording.header.interval, 1000)
        for time, status in ticks:
            if rows.last >= 0:
                self._steps[time - rows.last] += 1
            rows.tick(time, status, stack, gap=gap)
            self._states |= status
        self.count += len(ticks)

    def finish(self) -> tuple[int, list[SampledThread]]:
        """Return how many ns a sample stands for, and the threads."""
        tick = _median(self._steps) * 1000 or self._recording.header.interval * 1000 or 1000
        return tick, [
            rows.finish(tick, exceptions=bool(self._states & EXCEPTION)) for rows in self._rows.values()
        ]

    def notices(self, tick: int) -> list[dict[str, Any]]:
        """Return what is to be known about the samples."""
        asked = self._recording.header.interval
        texts = [
            f"Python {self._recording.header.python}; {asked:,} us between samples were requested, {tick / 1000:,.0f} us are usual"
        ]
        if self._states & UNKNOWN:
            texts.append("it does not say which threads ran: all samples count as of threads that did")
        return [{"severity": "info", "code": "profiling-sampling", "message": "; ".join(texts)}]


class _Rows:
    """The samples of one thread.

    `places`: of its stack in the tree, the outermost first; `last`: time of its last sample, -1:
    none.
    """

    def __init__(self, thread: Sampled) -> None:
        self.places: list[int] = []
        self.last = -1
        self._thread = thread
        self._status = self._stack = self._begin = self._count = 0
        self._main = False
        self._runs: list[tuple[int, int, int, int, int]] = []

    def tick(self, time: int, status: int, stack: int, gap: int) -> None:
        """Take a sample; times in us."""
        if self._count and stack == self._stack and status == self._status and time - self.last <= gap:
            self._count += 1
        else:
            self._close()
            self._begin, self._status, self._stack, self._count = time, status, stack, 1
            self._main = self._main or bool(status & MAIN)
        self.last = time

    def _close(self) -> None:
        if self._count:
            self._runs.append((self._begin, self.last, self._count, self._stack, self._status))

    def finish(self, tick: int, *, exceptions: bool) -> SampledThread:
        """Return the thread; a sample stands for `tick` ns. `exceptions`: some were seen."""
        self._close()
        name = (
            "main"
            if self._main
            else f"interpreter {self._thread.interpreter}"
            if self._thread.interpreter
            else None
        )
        thread = SampledThread(self._thread.id & 0x7FFFFFFF, name=name, start=self._runs[0][0] * 1000)
        for begin, end, count, stack, status in self._runs:
            ran = bool(status & (ON_CPU | UNKNOWN))
            handled = bool(status & EXCEPTION) if exceptions else None
            times = begin * 1000, end * 1000, count, count * tick
            thread.samples.add(*times, stack, on_cpu=ran, gil=bool(status & HAS_GIL), exception=handled)
        return thread


def _median(counts: Counter[int]) -> int:
    left = sum(counts.values()) // 2
    for value in sorted(counts):
        left -= counts[value]
        if left < 0:
            return value
    return 0


def _frame(frame: Frame) -> dict[str, Any]:
    file, function, line = frame
    if file in ("", "~"):
        return {"kind": "native", "function": function}
    return {"kind": "python", "function": function, "file": file, "line": line if line > 0 else None}
