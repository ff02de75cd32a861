"""speedscope JSON, for www.speedscope.app: the stacks of each thread, in time order or summed.

## What maps to what
- A thread: a sampled profile with the name of its process and thread. Times count from the start of
  the report, in ns.
- A sample: its stack, outermost frame first, and the time that it stands for. While a thread was
  not sampled, its stack is empty, so that positions in the profile are moments of the clock. A
  sample that stands for more time than passed until the next one shifts the later ones.
- A frame: a function with its file and first line; with `lines`, one frame per line. Native code
  has its library as file, unless its source is known.

## What is lost
See LOSES. Weights are not rounded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens._version import __version__
from warplens.disk.files import text_output
from warplens.errors import UsageError
from warplens.exporters.profiles.stacks import (
    Labels,
    ProfileThreads,
    Wanted,
    of_thread,
    threads_with_samples,
    wanted,
)

if TYPE_CHECKING:
    from warplens.analysis.cpu.frames import Frame
    from warplens.exporters.losses import Loss
    from warplens.report import Report
    from warplens.report.selection import Selection

SUFFIX = ".speedscope.json"
LOSES: tuple[Loss, ...] = (
    "everything except samples of one kind: `:kind=python` or `:kind=native` selects it, `:wall` "
    "adds waiting threads",
    "CPU, GIL and exception state of samples, asyncio tasks, NVTX ranges",
)
_SCHEMA = "https://www.speedscope.app/file-format-schema.json"


def write(
    report: Report,
    out: Path,
    *,
    kind: str = "auto",
    wall: bool = False,
    lines: bool = False,
    selection: Selection | None = None,
) -> None:
    """Write the samples of the report for speedscope.

    Args:
        report: the report.
        out: the file.
        kind: samples to export: python, native, or auto (native ones if there are any).
        wall: include Python samples of waiting threads.
        lines: distinguish the lines of a function.
        selection: the part to export.
    """
    which = wanted(report, kind, wall)
    if which.kind in ("osrt", "tasks"):
        what = "OS calls" if which.kind == "osrt" else "samples of tasks, which overlap,"
        raise UsageError(
            f"speedscope: {what} are not samples of a thread in order of time; -t "
            f"collapsed:kind={which.kind} has their stacks."
        )
    writer = _SpeedscopeWriter(report, Labels.of(report, lines=lines))
    head = {
        "$schema": _SCHEMA,
        "name": report.name,
        "exporter": f"warplens {__version__}",
        "activeProfileIndex": 0,
    }
    with text_output(out) as file:
        file.write(json.dumps(head)[:-1] + ',"profiles":[')
        for number, piece in enumerate(writer.profiles(which, selection)):
            file.write(",\n" if number else "\n")
            file.writelines(piece)
        file.write(
            '\n],"shared":{"frames":[\n'
            + ",\n".join(json.dumps(frame) for frame in writer.frames)
            + "\n]}}\n"
        )


class _SpeedscopeWriter:
    def __init__(self, report: Report, labels: Labels) -> None:
        self.report, self.labels, self.threads = report, labels, ProfileThreads(report)
        self.frames: list[dict[str, Any]] = []
        self._numbers: dict[int, int] = {}
        self._stacks: dict[int, str] = {}

    def profiles(self, which: Wanted, selection: Selection | None) -> Iterator[Iterator[str]]:
        """Yield the pieces of each thread's profile: the threads with most time first."""
        for thread in threads_with_samples(self.report, selection, which):
            rows = of_thread(self.report, selection, which, thread=thread)
            stacks = self.labels.frames.positions(rows.column("stack")).tolist()
            times = (rows.column(name).to_pylist() for name in ("start", "weight"))
            yield self._profile(thread, list(zip(*times, stacks, strict=True)))

    def _profile(self, thread: int, samples: list[tuple[int, int, int]]) -> Iterator[str]:
        begin = samples[0][0] - self.report.origin
        weights: list[int] = []
        name = f"{self.threads.process(thread)}: {self.threads.name(thread)}"
        yield (
            json.dumps({"type": "sampled", "name": name, "unit": "nanoseconds", "startValue": begin})[:-1]
            + ',"samples":['
        )
        at, comma = begin, ""
        for start, weight, stack in samples:
            if weight <= 0:
                continue
            gap = start - self.report.origin - at
            if gap > 0:
                weights.append(gap)
                yield f"{comma}[]"
                comma = ","
            weights.append(weight)
            yield comma + self._stack(stack)
            comma = ","
            at += max(gap, 0) + weight
        yield f'],"weights":{json.dumps(weights, separators=(",", ":"))},"endValue":{at}}}'

    def _stack(self, stack: int) -> str:
        text = self._stacks.get(stack)
        if text is None:
            numbers = [self._number(position) for position in self.labels.positions(stack)]
            text = self._stacks[stack] = json.dumps(numbers, separators=(",", ":"))
        return text

    def _number(self, position: int) -> int:
        label = int(self.labels.numbers[position])
        if label not in self._numbers:
            self._numbers[label] = len(self.frames)
            self.frames.append(self._frame(self.labels.frames.frame(position)))
        return self._numbers[label]

    def _frame(self, frame: Frame) -> dict[str, Any]:
        file, line = frame.file or frame.module, self.labels.line(frame) if frame.file else None
        return {
            "name": frame.function,
            **({"file": file} if file else {}),
            **({"line": line} if line else {}),
        }
