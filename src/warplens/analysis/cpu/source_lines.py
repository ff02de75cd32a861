"""Source files by the share of the samples in each line, and their text where it is on this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath

from warplens.analysis.cpu.frames import FrameTable, is_library
from warplens.analysis.cpu.stacks import StackTree, flat
from warplens.errors import MissingData, UsageError

_LARGEST = 4 << 20  # bytes: a longer file is not read


@dataclass(frozen=True)
class Line:
    """A line by the share of samples, 0 to 1.

    `total`: in which it was active; `own`: which ended in it.
    """

    function: str
    total: float
    own: float
    instructions: str = ""  # that those which ended here were in; empty: not asked for


@dataclass
class HotFile:
    """A source file with its lines that were seen, by number."""

    path: str
    own: float = 0.0
    lines: dict[int, Line] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The share of samples in which the file's hottest line was active."""
        return max(line.total for line in self.lines.values())


def hot_files(
    frames: FrameTable,
    by_line: StackTree,
    weight: int,
    instructions: Mapping[tuple[str, int], object] | None = None,
) -> list[HotFile]:
    """Return the files with samples, the hottest first, those of the program before libraries.

    `by_line`: their tree by line, of `weight` ns. `instructions`: what to say of them, by file and line. Raises MissingData if no
    sample has a line.
    """
    tree = flat(by_line)
    files: dict[str, HotFile] = {}
    for node in range(len(tree)):
        frame = frames.frame(int(tree.example[node]))
        if frame.file is None or not frame.line:
            continue
        hot = files.setdefault(frame.file, HotFile(frame.file))
        total, own = float(tree.total[node] / weight), float(tree.own[node] / weight)
        before = hot.lines.get(frame.line)
        if (
            before is not None
        ):  # several code objects in a line, as of comprehensions: both may be in one sample
            total, own = min(max(total, before.total + own), 1.0), own + before.own
        words = str((instructions or {}).get((frame.file, frame.line), ""))
        hot.lines[frame.line] = Line(frame.function, total, own, instructions=words)
        hot.own += float(tree.own[node] / weight)

    def rank(hot: HotFile) -> tuple[bool, float, str]:
        library = is_library(hot.path)
        return library, -(hot.own if library else hot.total), hot.path

    if not files:
        raise MissingData("the samples have no lines; a flame graph shows their functions.")
    return sorted(files.values(), key=rank)


def chosen(files: list[HotFile], wanted: str | None, most: int) -> list[HotFile]:
    """Return `most` of the hottest files, or those whose path is or ends in `wanted`.

    Raises UsageError if there are none.
    """
    if wanted is None:
        return [hot for hot in files if hot.own >= 0.01][:most] or files[:1]
    parts = PurePath(wanted).parts
    named = [hot for hot in files if PurePath(hot.path).parts[-len(parts) :] == parts]
    if not named:
        seen = ", ".join(PurePath(hot.path).name for hot in files[:8])
        raise UsageError(f"no sample was in a file {wanted}; the hottest files are {seen}.")
    return named[:most]


def read_source(path: str) -> list[str] | None:
    """Return the lines of a Python file of this machine.

    None if it is not there, or is nothing that a report should make us read.
    """
    if not path.endswith((".py", ".pyw")) or not Path(path).is_absolute():
        return None
    try:
        with os.fdopen(
            os.open(path, os.O_RDONLY | os.O_NONBLOCK), encoding="utf-8", errors="replace"
        ) as file:  # a pipe would wait
            facts = os.fstat(file.fileno())
            return (
                file.read().splitlines()
                if stat.S_ISREG(facts.st_mode) and facts.st_size <= _LARGEST
                else None
            )
    except (OSError, ValueError):
        return None


def note(hot: HotFile, source: list[str] | None, recorded: float) -> str:
    """Return a note if the text of the lines is missing or newer than the recording, else nothing."""
    if source is None:
        return "the file is not on this machine: lines are shown by their functions"
    if Path(hot.path).stat().st_mtime > recorded:
        return "the file changed after the recording: lines may have moved"
    return ""


def around(number: int, context: int, last: int, source: list[str] | None) -> range:
    """Return the lines around one: only itself if there is no text of the others."""
    if source is None:
        return range(number, number + 1)
    return range(max(number - context, 1), min(number + context, last) + 1)
