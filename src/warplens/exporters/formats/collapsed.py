"""Collapsed stacks, one a line, for flamegraph.pl, inferno, speedscope and scripts.

## What maps to what
- A line is `PROCESS;THREAD;OUTERMOST;…;INNERMOST COUNT`: how many samples found the thread so. Equal lines are one.
- A frame is `FUNCTION (FILE)`, of native code `FUNCTION (LIBRARY)`, as `FUNCTION (FILE:LINE)` with `lines`. Those of the kernel end
  in `_[k]`, as flamegraph.pl colours them.
- A `;` in a name becomes `:`, a line break a space.
- A process has its id behind its name where the report has several of them.

## What is lost
See LOSES. Round trip: the counts of the lines add up to those of the samples.
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
    "when samples were taken, and for how long each stands: they are counted",
    "all but samples of one kind: `:kind=python` or `:kind=native` says which, `:wall` adds threads that waited",
    "the folders that files are in",
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
        kind: which samples: python, native, auto (native ones where there are any), or osrt: calls of the C library that have a stack;
            or tasks: of asyncio.
        wall: also Python samples of threads that waited.
        lines: keep the lines of a function apart.
        selection: which part of the report.
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
