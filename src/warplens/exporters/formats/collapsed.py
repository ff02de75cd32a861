"""Collapsed stacks, one a line, for flamegraph.pl, inferno, speedscope and scripts.

## What maps to what
- Each line is `PROCESS;THREAD;OUTERMOST;…;INNERMOST COUNT`, with the number of samples of that
  stack. Equal lines are combined.
- A frame is `FUNCTION (FILE)`, `FUNCTION (LIBRARY)` for native code, or `FUNCTION (FILE:LINE)` with
  `lines`. Kernel frames end in `_[k]`, which flamegraph.pl colours.
- `;` in a name becomes `:`, a line break becomes a space.
- If the report has several processes, the process id follows the name.

## What is lost
See LOSES. Round trip: the counts of the lines add up to the number of samples.
"""

from __future__ import annotations

from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from warplens.disk.files import text_output
from warplens.exporters.profiles.stacks import Labels, ProfileThreads, sums, wanted

if TYPE_CHECKING:
    from warplens.analysis.cpu.frames import Frame
    from warplens.exporters.losses import Loss
    from warplens.report import Report
    from warplens.report.selection import Selection

SUFFIX = ".collapsed.txt"
LOSES: tuple[Loss, ...] = (
    "times and weights of samples: samples are counted",
    "everything except samples of one kind: `:kind=python` or `:kind=native` selects it, `:wall` adds waiting threads",
    "folders of files",
)


def write(
    report: Report,
    out: Path,
    *,
    kind: str = "auto",
    wall: bool = False,
    lines: bool = False,
    selection: Selection | None = None,
) -> None:
    """Write the samples of the report as collapsed stacks.

    Args:
        report: the report.
        out: the file.
        kind: samples to export: python, native, auto (native ones if there are any), osrt (C
            library calls that have a stack) or tasks (of asyncio).
        wall: include Python samples of waiting threads.
        lines: distinguish the lines of a function.
        selection: the part to export.
    """
    which = wanted(report, kind, wall)
    labels, threads = Labels.of(report, lines=lines), ProfileThreads(report)
    rows = sums(report, selection, which)
    texts: dict[int, str] = {}
    counts: dict[str, int] = {}
    stacks = labels.frames.positions(rows.column("stack")).tolist()
    for thread, stack, count in zip(
        rows.column("thread").to_pylist(), stacks, rows.column("count").to_pylist(), strict=True
    ):
        if stack not in texts:
            texts[stack] = ";".join(
                _called(labels.frames.frame(position), lines) for position in labels.positions(stack)
            )
        line = f"{_clean(threads.process(thread))};{_clean(threads.name(thread))};{texts[stack]}"
        counts[line] = counts.get(line, 0) + count
    with text_output(out, errors="replace") as file:
        file.writelines(f"{line} {count}\n" for line, count in counts.items() if count)


def _called(frame: Frame, lines: bool) -> str:
    place = frame.file if frame.kind == "python" or (lines and frame.file) else frame.module
    at = f":{frame.line}" if lines and frame.line and place == frame.file else ""
    where = f" ({PurePath(place).name}{at})" if place else ""
    return _clean(f"{frame.function}{where}") + ("_[k]" if frame.kind == "kernel" else "")


def _clean(text: str) -> str:
    return " ".join(text.replace(";", ":").split())
