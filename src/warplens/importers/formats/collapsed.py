"""Collapsed stacks, one a line: those of Python 3.15's sampling profiler, py-spy, perf's scripts, and of others.

## Made by
`python -m profiling.sampling run --collapsed` (3.15), `py-spy record -f raw`, `stackcollapse-perf.pl`, `inferno-collapse-*`,
`warplens export -t collapsed`.

## What maps to what
| there | here |
|---|---|
| a line `OUTERMOST;…;INNERMOST COUNT` | `samples`: that many, with the stack |
| `tid:N` at the begin of a line | a thread; lines without it are of one thread |
| `FILE:FUNCTION:LINE` (Python 3.15), `FUNCTION (FILE:LINE)` (py-spy) | `frames` with function, file and line |
| other frames | a function, of native code unless the line has a file of Python |
| `_[k]` at the end of a frame | a function of the kernel |

A line has no time. Samples lie one after the other, thread by thread, 1 ms each; `:interval_us=N` says how long one is.

## What is dropped
Nothing but lines that are no stacks, which are counted in `diagnostics`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.report.writer import RANGES_PER_PROCESS, THREADS_PER_PROCESS, Facts

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.report.writer import PartWriter

SUFFIXES = (".collapsed", ".collapsed.txt", ".folded", ".raw")
CONTENT = "collapsed stacks"
DROPS: tuple[str, ...] = ("lines that are no stacks",)
_HEAD = 65536
_LONGEST = 100 * 365 * 86400 * 10**9  # ns
_LINE = re.compile(r"(?P<stack>\S.*\S|\S) +(?P<count>\d+)")
_THREAD = re.compile(r"tid:(\d+)")
_PYTHON_3_15 = re.compile(r"(?P<file>[^:]*\.pyw?|<[^>:]*>):(?P<function>.+):(?P<line>\d+)")
_PLACED = re.compile(r"(?P<function>.+) \((?P<file>[^()]+?)(?::(?P<line>\d+))?\)")


def recognises(path: Path) -> bool:
    """Say whether all lines at the begin of the file are stacks with counts, and one has a caller and a callee."""
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
        interval_us: how long a sample stands for, in microseconds.
    """
    step = interval_us * 1000
    process, tree = part.key(0), _Tree(part.key(0))
    stacks: dict[int, list[tuple[int, int]]] = {}  # by thread id: innermost frame and count
    strange = 0
    with open(source, encoding="utf-8", errors="replace") as file:
        for line in file:
            found = _LINE.fullmatch(line.strip())
            if found is None:
                strange += bool(line.strip())
                continue
            names = found["stack"].split(";")
            thread = _THREAD.fullmatch(names[0])
            tid = int(thread[1]) if thread else 0
            stacks.setdefault(tid & 0x7FFFFFFF, []).append((tree.add(names[1:] if thread else names), int(found["count"])))
    if not stacks:
        raise ReportError(f"{source} holds no stack: a line is `outer;inner COUNT`.")
    if sum(count for found in stacks.values() for _, count in found) > _LONGEST // step:
        raise ReportError(f"{source} is broken: its samples add up to more than a century.")
    progress("stacks", 0.5)
    samples, threads, end = _samples(stacks, tree, process, step)
    host = "collapsed"
    row: dict[str, Any] = {
        "process": process,
        "pid": 0,
        "parent_pid": 0,
        "host": host,
        "executable": "",
        "command": "",
        "name": source.name,
    }
    part.write("processes", [{**row, "start": 0, "end": end, "primary": True, "exited": True}])
    part.write("threads", threads)
    part.write("frames", tree.rows)
    part.write("samples", samples)
    span = {"start": 0, "end": end, "opened_by": "start", "closed_by": "end"}
    part.write("capture_windows", [{"part": part.part, "number": 1, "host": host, **span}])
    part.write("targets", [{"host": host, "boot_id": part.id, "os": "", "kernel": "", "machine": "", "cpu": "", "cpus": 0, "memory": 0}])
    part.write("diagnostics", _diagnostics(strange, interval_us))
    progress("write", 1.0)
    return Facts(id=part.id, host=host, boot_id=part.id, end=end, sources={"samples": {"on": True, "by": "collapsed"}})


def _samples(
    stacks: dict[int, list[tuple[int, int]]], tree: _Tree, process: int, step: int
) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The rows of samples and threads, and when the last sample ends: those of a thread lie one after the other."""
    samples: list[dict[str, Any]] = []
    threads, end = [], 0
    for number, (tid, found) in enumerate(stacks.items()):
        key, at = process * THREADS_PER_PROCESS + number, 0
        threads.append({"thread": key, "process": process, "tid": tid, "name": None, "start": 0})
        for frame, count in found:
            if count:
                times = {"start": at, "end": at + (count - 1) * step, "count": count, "weight": count * step}
                kind = "python" if tree.is_python(frame) else "native"
                samples.append({"process": process, "thread": key, **times, "kind": kind, "on_cpu": True, "stack": frame})
                at += count * step
        end = max(end, at)
    samples.sort(key=lambda row: int(row["start"]))
    first = process * RANGES_PER_PROCESS
    return [{"id": first + number, **row} for number, row in enumerate(samples)], threads, end


def _diagnostics(strange: int, interval_us: int) -> list[dict[str, Any]]:
    text = f"collapsed stacks have no times: samples lie one after the other, {interval_us} us each"
    rows: list[dict[str, Any]] = [{"severity": "info", "code": "no-times", "source": "import", "message": text}]
    if strange:
        rows.append({"severity": "warning", "code": "broken", "source": "import", "message": "lines that are no stacks", "count": strange})
    return rows


class _Tree:
    """The tree of all stacks, as rows of `frames`."""

    def __init__(self, process: int) -> None:
        self.rows: list[dict[str, Any]] = []
        self._process = process
        self._known: dict[tuple[int, str], int] = {}
        self._python: list[bool] = []  # of each row, whether it or a caller is Python's

    def add(self, names: list[str]) -> int:
        """Take a stack, the outermost frame first; the key of its innermost frame."""
        parent = -1
        for name in names:
            key = parent, name
            if key not in self._known:
                self._known[key] = len(self.rows)
                row = _frame(name)
                above = self.rows[parent] if parent >= 0 else None
                depth = above["depth"] + 1 if above else 0
                self.rows.append(
                    {"frame": len(self.rows), "process": self._process, "parent": parent if above else None, "depth": depth, **row}
                )
                self._python.append(row["kind"] == "python" or (parent >= 0 and self._python[parent]))
            parent = self._known[key]
        return parent

    def is_python(self, frame: int) -> bool:
        """Whether the stack that ends in this frame has a function of Python."""
        return self._python[frame]


def _frame(name: str) -> dict[str, Any]:
    if name.endswith("_[k]"):
        return {"kind": "kernel", "function": name.removesuffix("_[k]"), "module": "[kernel]"}
    found = _PYTHON_3_15.fullmatch(name) or _PLACED.fullmatch(name)
    if found is None:
        return {"kind": "native", "function": name}
    file, line = found["file"], int(found["line"]) if found["line"] else None
    if file.endswith((".py", ".pyw", ">")):
        return {"kind": "python", "function": found["function"], "file": file, "line": line}
    return {
        "kind": "native",
        "function": found["function"],
        "module": file.rpartition("/")[2],
        "file": file if line else None,
        "line": line,
    }
