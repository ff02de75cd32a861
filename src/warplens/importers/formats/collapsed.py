"""Collapsed stacks, one a line.

From Python 3.15's sampling profiler, py-spy, perf's scripts and other tools.

## Made by
`python -m profiling.sampling run --collapsed` (3.15), `py-spy record -f raw`,
`stackcollapse-perf.pl`, `inferno-collapse-*`, `warplens export -t collapsed`.

## What maps to what
| there | here |
|---|---|
| a line `OUTERMOST;…;INNERMOST COUNT` | `samples`: that many, with the stack |
| `tid:N` at the start of a line | a thread; lines without it belong to one thread |
| `FILE:FUNCTION:LINE` (Python 3.15), `FUNCTION (FILE:LINE)` (py-spy) | `frames` with function, file and line |
| other frames | a function, of native code unless the line has a Python file |
| `_[k]` at the end of a frame | a function of the kernel |

A line has no time. Samples follow each other, thread by thread, 1 ms each; `:interval_us=N` changes
that length.

## What is dropped
Lines that are not stacks; `diagnostics` counts them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.importers.profiles.stacks import FrameTree, ImportedProfile, SampledThread, write

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".collapsed", ".collapsed.txt", ".folded", ".raw")
CONTENT = "collapsed stacks"
DROPS: tuple[str, ...] = ("lines that are not stacks",)
_HEAD = 65536
_LONGEST = 100 * 365 * 86400 * 10**9  # ns
_LINE = re.compile(r"(?P<stack>\S.*\S|\S) +(?P<count>\d+)")
_THREAD = re.compile(r"tid:(\d+)")
_PYTHON_3_15 = re.compile(r"(?P<file>[^:]*\.pyw?|<[^>:]*>):(?P<function>.+):(?P<line>\d+)")
_PLACED = re.compile(r"(?P<function>.+) \((?P<file>[^()]+?)(?::(?P<line>\d+))?\)")


def recognises(path: Path) -> bool:
    """Say whether the file begins with stacks and counts, and one has a caller and a callee."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        if error.start < len(head) - 3:  # not only a character that is cut off at the end
            return False
        text = head[: error.start].decode("utf-8")
    lines = text.splitlines()[: None if len(head) < _HEAD else -1]
    full = [line for line in lines if line.strip()]
    return bool(full) and all(_LINE.fullmatch(line) for line in full) and any(";" in line for line in full)


def read(source: Path, part: PartWriter, progress: Progress, *, interval_us: int = 1000) -> Facts:
    """Write the tables of `source` to the part. Raises ReportError for a file without a stack.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
        interval_us: length of a sample, in microseconds.
    """
    step = interval_us * 1000
    tree = FrameTree(part.key(0), _frame)
    stacks: dict[int, list[tuple[int, int]]] = {}  # by thread id: innermost frame and count
    strange = 0
    with open(source, encoding="utf-8", errors="replace") as file:
        for line in file:
            match = _LINE.fullmatch(line.strip())
            if match is None:
                strange += bool(line.strip())
                continue
            names = match["stack"].split(";")
            thread = _THREAD.fullmatch(names[0])
            tid = int(thread[1]) if thread else 0
            stacks.setdefault(tid & 0x7FFFFFFF, []).append(
                (tree.add(names[1:] if thread else names), int(match["count"]))
            )
    if not stacks:
        raise ReportError(f"{source} contains no stack: a line must look like `outer;inner COUNT`.")
    if sum(count for samples in stacks.values() for _, count in samples) > _LONGEST // step:
        raise ReportError(f"{source} is broken: its samples add up to more than a century.")
    progress("stacks", 0.5)
    threads = _threads(stacks, tree, step)
    end = max(sum(thread.samples.columns["weight"]) for thread in threads)
    facts = write(
        part,
        source,
        tree,
        profile=ImportedProfile("collapsed", threads, end, diagnostics=_diagnostics(strange, interval_us)),
    )
    progress("write", 1.0)
    return facts


def _threads(
    stacks: dict[int, list[tuple[int, int]]], tree: FrameTree[str], step: int
) -> list[SampledThread]:
    """Lay the samples of each thread one after the other."""
    threads = []
    for tid, samples in stacks.items():
        thread, at = SampledThread(tid), 0
        for frame, count in samples:
            if count:
                thread.samples.add(
                    at, at + (count - 1) * step, count, count * step, frame, native=not tree.is_python(frame)
                )
                at += count * step
        threads.append(thread)
    return threads


def _diagnostics(strange: int, interval_us: int) -> list[dict[str, Any]]:
    text = f"collapsed stacks have no times: samples follow each other, {interval_us} us each"
    rows: list[dict[str, Any]] = [{"severity": "info", "code": "no-times", "message": text}]
    if strange:
        rows.append(
            {
                "severity": "warning",
                "code": "broken",
                "message": "lines that are not stacks",
                "count": strange,
            }
        )
    return rows


def _frame(name: str) -> dict[str, Any]:
    if name.endswith("_[k]"):
        return {"kind": "kernel", "function": name.removesuffix("_[k]"), "module": "[kernel]"}
    match = _PYTHON_3_15.fullmatch(name) or _PLACED.fullmatch(name)
    if match is None:
        return {"kind": "native", "function": name}
    file, line = match["file"], int(match["line"]) if match["line"] else None
    if file.endswith((".py", ".pyw", ">")):
        return {"kind": "python", "function": match["function"], "file": file, "line": line}
    return {
        "kind": "native",
        "function": match["function"],
        "module": file.rpartition("/")[2],
        "file": file if line else None,
        "line": line,
    }
