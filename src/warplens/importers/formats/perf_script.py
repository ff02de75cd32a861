"""Linux perf samples, as printed by `perf script`.

## Made by
`perf record -g PROGRAM; perf script > run.perf`. With Python 3.12 or later and
`PYTHONPERFSUPPORT=1`, stacks contain its functions.

## What maps to what
| there | here |
|---|---|
| a line `COMMAND PID/TID [CPU] TIME: PERIOD EVENT:` | `samples`: one, of that thread |
| the lines below it | its stack: function and library; `[kernel…]`: of the kernel; `py::NAME:FILE`: of Python |
| the period of `cpu-clock` and `task-clock` | the time that the sample stands for |

Other events (`cycles`) do not count time: then a sample stands for the usual time between two
samples of its thread.

## What is dropped
CPUs, addresses, the process of a thread, and all events except the first kind; `diagnostics` counts
those.
"""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.importers.profiles.stacks import FrameTree, ImportedProfile, SampledThread, write

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".perf", ".perf.txt", ".perf-script")
CONTENT = "output of perf script"
DROPS: tuple[str, ...] = ("CPUs", "addresses", "processes of threads", "events except the first kind")
_HEAD = 1 << 16
_SAMPLE = re.compile(
    r"(?P<command>\S.{0,63}?)\s+(?:(?P<pid>\d+)/)?(?P<tid>\d+)\s+(?:\[\d+\]\s+)?(?:[.a-zA-Z]{4,8}\s+)?"
    r"(?P<seconds>\d{1,10})\.(?P<fraction>\d{6,9}):\s+(?:(?P<period>\d{1,18})\s+)?(?P<event>[\w:./@=,-]+?):+(?:\w+:)?\s*"
)
_FRAME = re.compile(
    r"\s+[0-9a-f]+\s+(?P<function>.*?)(?:\+0x[0-9a-f]+)?(?: \((?P<module>[^()]*(?:\([^()]*\))?)\))?\s*"
)
_CLOCKS = ("cpu-clock", "task-clock")
_USUAL = 1_000_000  # ns that a sample stands for where only one of a thread is known
_MOST_THREADS = 1 << 16
_LONGEST = 10**18  # ns


def recognises(path: Path) -> bool:
    """Say whether the first line that is no comment begins a sample."""
    with open(path, "rb") as file:
        text = file.read(_HEAD).decode("utf-8", "replace")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return bool(lines) and _SAMPLE.fullmatch(lines[0]) is not None


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part. Raises ReportError for a file without a sample.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    tree = FrameTree(part.key(0), _frame)
    threads: dict[int, SampledThread] = {}
    taken: dict[int, list[tuple[int, int, int]]] = {}  # by thread: time, period, frame
    event, others, strange = "", 0, 0
    head: re.Match[str] | None = None
    stack: list[tuple[str, str]] = []

    def finish() -> None:
        nonlocal others, event
        if head is None:
            return
        name = head["event"].partition(":")[0]
        event = event or name
        if name != event:
            others += 1
            return
        tid = int(head["tid"]) & 0x7FFFFFFF
        if len(threads) >= _MOST_THREADS and tid not in threads:
            raise ReportError(f"{source} is broken: it has more than {_MOST_THREADS:,} threads.")
        threads.setdefault(tid, SampledThread(tid, name=head["command"]))
        time = int(head["seconds"]) * 10**9 + int(head["fraction"].ljust(9, "0"))
        taken.setdefault(tid, []).append((time, int(head["period"] or 0), tree.add(reversed(stack))))

    with open(source, encoding="utf-8", errors="replace") as file:
        for line in file:
            if line[:1] in ("#", "\n", "\r"):
                continue
            if not line[0].isspace() and (match := _SAMPLE.fullmatch(line.rstrip())) is not None:
                finish()
                head, stack = match, []
            elif head is not None and (match := _FRAME.fullmatch(line.rstrip())) is not None:
                stack.append((match["function"] or "[unknown]", match["module"] or ""))
            else:
                strange += 1
        finish()
    if not taken:
        raise ReportError(f"{source} contains no sample: a sample begins with `COMMAND TID TIME: EVENT:`.")
    progress("stacks", 0.5)
    begin = min(time for samples in taken.values() for time, _, _ in samples)
    end = _placed(taken, threads, tree, begin=begin, event=event)
    facts = write(
        part,
        source,
        tree,
        profile=ImportedProfile(
            "perf", list(threads.values()), end, diagnostics=_told(others, strange, event)
        ),
    )
    progress("write", 1.0)
    return facts


def _placed(
    taken: dict[int, list[tuple[int, int, int]]],
    threads: dict[int, SampledThread],
    tree: FrameTree[tuple[str, str]],
    begin: int,
    event: str,
) -> int:
    """Add the samples to their threads, from the first one on; return when the last one ends."""
    end = 1
    for tid, samples in taken.items():
        samples.sort()
        apart = [after[0] - before[0] for before, after in pairwise(samples)]
        usual = int(median(apart)) if apart else _USUAL
        for time, period, frame in samples:
            ns = period if event in _CLOCKS and 0 < period < _LONGEST else usual
            at = time - begin
            threads[tid].samples.add(at, at, 1, ns, frame, native=not (frame >= 0 and tree.is_python(frame)))
            end = max(end, at + ns)
    return end


def _told(others: int, strange: int, event: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    if event not in _CLOCKS:
        text = (
            f"{event} does not count time: a sample stands for the usual time between two samples "
            "of its thread"
        )
        rows.append({"severity": "info", "code": "no-times", "message": text})
    if others:
        text = f"samples of events other than {event}; `perf script -e EVENT` prints one kind"
        rows.append({"severity": "warning", "code": "left-out", "message": text, "count": others})
    if strange:
        rows.append(
            {
                "severity": "warning",
                "code": "broken",
                "message": "lines that are not samples",
                "count": strange,
            }
        )
    return rows


def _frame(key: tuple[str, str]) -> dict[str, Any]:
    function, module = key
    if function.startswith("py::"):
        name, _, file = function.removeprefix("py::").partition(":")
        return {"kind": "python", "function": name or "[unknown]", "file": file or None}
    if module.startswith(("[kernel", "[guest.kernel")):
        return {"kind": "kernel", "function": function, "module": "[kernel]"}
    return {"kind": "native", "function": function, "module": module.rpartition("/")[2] or None}
