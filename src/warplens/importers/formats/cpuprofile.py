"""V8 CPU profiles, from Node.js, Deno, Chrome's developer tools and other tools with this format.

## Made by
`node --cpu-prof`, `deno --cpu-prof`, *Save profile* in Chrome's developer tools; py-spy and other
tools have an option for it.

## What maps to what
| there | here |
|---|---|
| `nodes`, with their `children` | `frames`: function, file (`url`), line of the function |
| `samples` with `timeDeltas` | `samples`: consecutive ticks with the same node are one row |
| `(program)`, `(garbage collector)` | functions of native code |
| `(idle)` | samples of a waiting thread |

## What is dropped
Column numbers, hit counts of lines, and V8's reasons for not optimising a function.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.importers.profiles.stacks import FrameTree, ImportedProfile, SampledThread, write
from warplens.model.words import counted

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import Facts, PartWriter

SUFFIXES = (".cpuprofile",)
CONTENT = "CPU profile of V8"
DROPS: tuple[str, ...] = ("columns", "hits of lines", "reasons for functions that were not optimised")
_HEAD = 4096
_BEGIN = re.compile(rb'\s*\{\s*"(?:nodes"\s*:\s*\[\s*\{\s*"(?:id|callFrame)"|(?:head|typeId|startTime)"\s*:)')
_LARGEST = 1 << 30  # bytes
_LONGEST = 100 * 365 * 86400 * 10**6  # us
_DEEPEST = 1 << 16
_IDLE, _ROOT = "(idle)", "(root)"


def recognises(path: Path) -> bool:
    """Say whether the file begins like a profile and has nodes with call frames."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    return bool(_BEGIN.match(head)) and b'"callFrame"' in head


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError for a file that is broken or has no samples.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    if source.stat().st_size > _LARGEST:
        raise ReportError(f"{source} is too large for a profile: more than 1 GiB.")
    try:
        profile = json.loads(source.read_bytes())
        nodes = {_whole(node["id"]): node for node in profile["nodes"]}
        samples = [_whole(node) for node in profile["samples"]]
        deltas = [_whole(delta) for delta in profile["timeDeltas"]]
        tree = FrameTree(part.key(0), _frame)
        stacks = _stacks(nodes, tree)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ReportError(f"{source} is broken: {type(error).__name__}: {error}.") from error
    if not samples or len(samples) != len(deltas):
        raise ReportError(
            f"{source} is broken: {counted(len(samples), 'sample')} and {counted(len(deltas), 'time')}."
        )
    if sum(abs(delta) for delta in deltas) > _LONGEST:
        raise ReportError(f"{source} is broken: its samples add up to more than a century.")
    progress("stacks", 0.5)
    thread, strange = SampledThread(1, name="main"), 0
    # A delta is the time since the sample before; V8 writes negative ones where samples came in another order.
    times = [0]
    for delta in deltas:
        times.append(max(times[-1], times[-1] + delta * 1000))
    at = 0
    while at < len(samples):
        last = at
        while last + 1 < len(samples) and samples[last + 1] == samples[at]:
            last += 1
        known = samples[at] in nodes
        strange += 0 if known else last + 1 - at
        name = nodes[samples[at]]["callFrame"]["functionName"] if known else ""
        begin, end = times[at + 1], times[last + 1]
        until = times[last + 2] if last + 2 < len(times) else end
        frame = stacks.get(samples[at], -1)
        thread.samples.add(
            begin,
            end,
            last + 1 - at,
            until - begin,
            frame,
            native=frame >= 0 and name != _IDLE,
            on_cpu=name != _IDLE,
        )
        at = last + 1
    rows: list[dict[str, Any]] = []
    if strange:
        text = "samples of nodes that the file does not have"
        rows.append({"severity": "warning", "code": "broken", "message": text, "count": strange})
    facts = write(
        part, source, tree, profile=ImportedProfile("v8", [thread], max(times[-1], 1), diagnostics=rows)
    )
    progress("write", 1.0)
    return facts


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > 1 << 53:
        raise ValueError(f"{value!r} is not the number of a node, or a time")
    return value


_Key = tuple[str, str, int]


def _stacks(nodes: dict[int, dict[str, Any]], tree: FrameTree[_Key]) -> dict[int, int]:
    """Return the frame of each node; -1: the root, and what nothing leads to from it."""
    called = {_whole(child) for node in nodes.values() for child in node.get("children", ())}
    stacks: dict[int, int] = {}
    waiting = [(node, -1, 0) for node in nodes if node not in called]
    while waiting:
        node, parent, depth = waiting.pop()
        if node in stacks or node not in nodes or depth > _DEEPEST:
            continue
        place = nodes[node]["callFrame"]
        key = str(place["functionName"]), str(place.get("url", "")), _whole(place.get("lineNumber", -1))
        stacks[node] = parent if key[0] in (_ROOT, _IDLE) else tree.below(parent, key)
        waiting += [(_whole(child), stacks[node], depth + 1) for child in nodes[node].get("children", ())]
    return stacks


def _frame(key: _Key) -> dict[str, Any]:
    function, url, line = key
    file = url.removeprefix("file://")
    return {
        "kind": "native",
        "function": function or "(anonymous)",
        "module": file.rpartition("/")[2] or None,
        "file": file or None,
        "line": line + 1 if file and line >= 0 else None,
        "first_line": line + 1 if file and line >= 0 else None,
    }
