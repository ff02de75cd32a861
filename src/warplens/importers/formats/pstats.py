"""Profiles of Python's `cProfile` and `profile`, and of Python 3.15's sampling profiler (`--pstats`).

## Made by
`python -m cProfile -o FILE`, `Profile.dump_stats`, `pstats.Stats.dump_stats`,
`python -m profiling.tracing -o FILE` and `python -m profiling.sampling run --pstats -o FILE`
(3.15), `warplens export -t pstats`.

## What maps to what
| there | here |
|---|---|
| a function `(FILE, LINE, NAME)` | `frames`; `~` as file is native code |
| `tottime` | `weight` of its `samples`, in ns: they add up to it exactly |
| `cumtime`, callers | the stacks of the samples |
| samples, of Python 3.15's sampling profiler | `count`; else one for each microsecond |

Such a file contains the direct callers of each function, but no stacks. The importer estimates
them: it assumes that a function does the same for every caller. Self and total times of functions
are those of the file (totals of functions that call themselves may differ); longer stacks are
estimates. The file has no points in time: samples follow each other on one thread. cProfile
includes time in which a thread waits.

## What is dropped
Number of calls; functions without time that lead to none; the line of a function that took the time
(only the sampling profiler knows it).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.importers.profiles.estimated import ProfiledFunction, places
from warplens.importers.profiles.marshalled import Marshalled, NotMarshalled
from warplens.importers.profiles.stacks import FrameTree, ImportedProfile, SampledThread, write

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.importers.profiles.estimated import CallTreeNode
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".pstats", ".prof", ".cprof")
CONTENT = "profile of cProfile"
DROPS: tuple[str, ...] = (
    "call counts",
    "lines within functions",
    "stacks beyond direct callers are estimated",
)
_HEAD = 65536
_LARGEST = 1 << 30  # bytes
_TICK = 1000  # ns that a sample stands for, if there are none
_LONGEST = 100 * 365 * 86400  # s
_SAMPLED = ("__sampled__",)  # a key of files of the sampling profiler

Name = tuple[str, int, str]


def recognises(path: Path) -> bool:
    """Say whether the file is a dict whose first key is a function."""
    with open(path, "rb") as file:
        reader = Marshalled(file.read(_HEAD))
    try:
        reader.opened()
        key = reader.value(1)
    except NotMarshalled:
        return False
    return key == _SAMPLED or _is_name(key)


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError for a file that is broken or holds no time.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    if source.stat().st_size > _LARGEST:
        raise ReportError(f"{source} is too large for a profile: more than 1 GiB.")
    try:
        stats = Marshalled(source.read_bytes()).whole()
    except NotMarshalled as error:
        how = "is cut off" if error.end else "is not a profile, or it is broken"
        raise ReportError(f"{source} {how}: it has {error}.") from error
    sampled = stats.pop(_SAMPLED, None) is not None if isinstance(stats, dict) else False
    names, functions, counts = _functions(source, stats)
    progress("functions", 0.4)
    tree_of_calls = places(functions)
    if not any(place.own for place in tree_of_calls):
        raise ReportError(f"{source} contains no time: record a program that runs longer.")
    progress("stacks", 0.8)
    tree: FrameTree[Name] = FrameTree(part.key(0), lambda name: _frame(name, sampled))
    thread, tick = _thread(tree_of_calls, names, functions, counts=counts if sampled else None, tree=tree)
    end = sum(thread.samples.columns["weight"])
    facts = write(
        part,
        source,
        tree,
        profile=ImportedProfile("pstats", [thread], end, diagnostics=[_notice(sampled, tick)]),
    )
    progress("write", 1.0)
    return facts


def _is_name(key: Any) -> bool:
    return isinstance(key, tuple) and [type(part) for part in key] == [str, int, str]


def _functions(source: Path, stats: Any) -> tuple[list[Name], list[ProfiledFunction], list[int]]:
    """Return names, times and samples of the functions, those that are known as callers alone among them."""
    if not isinstance(stats, dict):
        raise ReportError(f"{source} is not a profile: it contains no functions.")
    names = list(
        dict.fromkeys([*stats, *(caller for row in stats.values() for caller in _callers(source, row))])
    )
    number = {name: place for place, name in enumerate(names)}
    functions = [ProfiledFunction(0, 0.0) for _ in names]
    counts = [0] * len(names)
    for name, row in stats.items():
        if (
            not _is_name(name)
            or len(row) != 5
            or not all(isinstance(value, int | float) for value in row[:4])
        ):
            raise ReportError(
                f"{source} is not a profile, or it is broken: the entry of {name!r} is not that of a "
                "function."
            )
        direct, calls, own, total, callers = row
        if not math.isfinite(own) or not math.isfinite(total) or max(own, total) > _LONGEST:
            raise ReportError(f"{source} is broken: {name[2]} has {own} s by itself and {total} s in total.")
        function = functions[number[name]]
        function.own, function.total = max(round(own * 1e9), 0), max(own, total, 0) * 1e9
        counts[number[name]] = max(int(direct), 0)
        for caller, value in callers.items():
            # the pure-Python profiler, and the sampling one, know how often, not how long
            time = value[3] * 1e9 if isinstance(value, tuple) else function.total * value / max(calls, 1)
            if not math.isfinite(time):
                raise ReportError(f"{source} is broken: {name[2]} has {time} s below {caller[2]}.")
            function.callers[number[caller]] = max(time, 0.0)
    if sum(function.own for function in functions) > _LONGEST * 10**9:
        raise ReportError(f"{source} is broken: its times add up to more than a century.")
    return names, functions, counts


def _callers(source: Path, row: Any) -> list[Name]:
    """Check the callers of an entry, and return them."""
    callers = row[4] if isinstance(row, tuple) and len(row) == 5 else None
    if not isinstance(callers, dict):
        raise ReportError(f"{source} is not a profile, or it is broken: an entry lacks its callers.")
    for name, value in callers.items():
        numbers = value if isinstance(value, tuple) and len(value) == 4 else (value,)
        if not _is_name(name) or not all(isinstance(each, int | float) for each in numbers):
            raise ReportError(f"{source} is not a profile, or it is broken: {name!r} is not a caller.")
    return list(callers)


def _thread(
    tree_of_calls: list[CallTreeNode],
    names: list[Name],
    functions: list[ProfiledFunction],
    counts: list[int] | None,
    tree: FrameTree[Name],
) -> tuple[SampledThread, int]:
    """Return the samples, one after the other, and how long one stands for.

    `counts`: of each function, if it was sampled.
    """
    tick = _TICK
    ticks = sum(counts or [])
    if ticks:
        tick = max(round(sum(function.own for function in functions) / ticks), 1)
    thread, at = SampledThread(0), 0
    frames: list[int] = []
    spent: dict[int, int] = {}  # by function
    for place in tree_of_calls:
        frames.append(tree.below(frames[place.parent] if place.parent >= 0 else -1, names[place.function]))
        if place.own:
            had = spent.get(place.function, 0)
            spent[place.function] = had + place.own
            count = round((had + place.own) / tick) - round(had / tick)  # so that those of a function add up
            thread.samples.add(at, at + max(place.own - tick, 0), count, place.own, frames[-1])
            at += place.own
    return thread, tick


def _frame(name: Name, sampled: bool) -> dict[str, Any]:
    file, line, function = name
    if line > 0:
        return {
            "kind": "python",
            "function": function,
            "file": file,
            "line" if sampled else "first_line": min(line, 2**31 - 1),
        }
    return {
        "kind": "native",
        "function": function,
        "module": None if file == "~" else file.rpartition("/")[2],
    }


def _notice(sampled: bool, tick: int) -> dict[str, Any]:
    samples = (
        f"a sample stands for {tick / 1000:g} us"
        if sampled
        else "calls are not samples: there is one for each microsecond"
    )
    text = f"stacks are estimated from direct callers, as the file has no others; {samples}"
    return {"severity": "info", "code": "estimated-stacks", "message": text}
