"""Facts and diagnostics of a whole trace.

Missing parts, events without a place in the report, the time of its making.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import NotAReport, ReportError
from warplens.importers.kineto import layout
from warplens.storage.writer import Facts

if TYPE_CHECKING:
    from warplens.importers.kineto.pieces import TextPieces
    from warplens.importers.kineto.trace import KinetoTrace

HOST = "kineto"
_KINETO = ("schemaVersion", "deviceProperties", "distributedInfo")
_PHASES = {
    **dict.fromkeys("stf", "flow arrows"),
    **dict.fromkeys("NOD", "object snapshots"),
    **dict.fromkeys("vV", "memory dumps"),
    **dict.fromkeys("STpF", "asynchronous events"),
    "c": "clock marks",
    "P": "samples",
    "X": "events",
    "\0": "events without `ph`",
}
_SECRET = re.compile(r"[^\x20-\x7e]")


def check(source: Path, trace: KinetoTrace, pieces: TextPieces) -> None:
    """Raise if nothing could be read; else add diagnostics for the missing parts."""
    facts, counts = trace.reader.facts, trace.counts
    at = facts["broken_at"]
    if facts["ending"] == layout.NO_TRACE or not (facts["arrays"] or trace.header):
        raise NotAReport(
            f"{source} is not a trace: it is neither an object with `traceEvents` nor an array of events."
        )
    if not facts["arrays"] and facts["ending"] == layout.WHOLE:
        raise NotAReport(f"{source} is JSON, but not a trace: it has no `traceEvents`.")
    if not counts["events"] and facts["ending"] in (layout.CUT, layout.BROKEN):
        what = "ends" if facts["ending"] == layout.CUT else "is no valid JSON"
        raise ReportError(
            f"{source} {what} at byte {at} of its text, before the first event. Copy it again, or "
            "record it again."
        )
    if not counts["events"] and pieces.trouble:
        raise ReportError(f"{source} cannot be unpacked: {pieces.trouble}. Copy it again.")
    text = "of its unpacked text" if pieces.packed else "of the file"
    if pieces.trouble:
        trace.say(
            "error",
            "packing-broken",
            f"{source.name}: {pieces.trouble}; the rest is missing: copy it again",
        )
    if facts["ending"] == layout.CUT:
        message = (
            f"{source.name} ends at byte {at} {text}, within its events: the later ones are "
            "missing; copy it again"
        )
        trace.say("error", "truncated", message)
    elif facts["ending"] == layout.BROKEN:
        message = f"{source.name} is no valid JSON from byte {at} {text} on: what lies behind is missing"
        trace.say("error", "broken", message)
    elif facts["broken"]:
        long = f", {facts['too_long']} of them for their length" if facts["too_long"] else ""
        message = (
            f"things in {source.name} that are not events, the first at byte {at} {text}{long}, were left out"
        )
        trace.say("warning", "broken-events", message, facts["broken"])
    elif facts["ending"] == layout.OPEN_ARRAY:
        trace.say(
            "info",
            "open-array",
            f"{source.name} has no closing bracket, which is allowed: events may be missing",
        )


def counted(trace: KinetoTrace) -> None:
    """Say what was left out or changed, and why."""
    counts = trace.counts
    for name, severity, code, message in (
        ("no_time", "warning", "no-time", "events without a time that can be were left out"),
        ("negative", "warning", "ends-first", "events that end before they start count as instants"),
        ("no_end", "warning", "no-end", "complete events without a duration count as instants"),
        ("no_begin", "warning", "no-begin", "ends of ranges without a start in the file were left out"),
        (
            "payloads_lost",
            "warning",
            "payloads-cut",
            "arguments of events that are too long, or too many, were left out",
        ),
        (
            "gpu_annotations",
            "info",
            "not-imported",
            "gpu_user_annotation: the stat nvtx_gpu_proj_sum computes the GPU time of annotations",
        ),
        ("spans", "info", "not-imported", "marks of the profiler's own start and end"),
    ):
        if counts[name]:
            trace.say(severity, code, message, counts[name])
    for phase, category, count in trace.reader.unsupported():
        of = f" of the category {trace.texts[category]}" if category >= 0 else ""
        trace.say(
            "info",
            "not-imported",
            f"{_PHASES.get(phase, f'events of the kind {phase!r}')}{of} have no place in a report",
            count,
        )
    for name in trace.left_out:
        trace.say(
            "info", "not-imported", f"the block {_SECRET.sub('?', name)!r} of the file was not looked into"
        )


def facts(trace: KinetoTrace, source: Path) -> Facts:
    """Return the facts of the part. Times stay as they are in the file, in ns."""
    base = trace.header.get("baseTimeNanoseconds")
    first, last = trace.first or 0, trace.last or 0
    since_1970 = base if isinstance(base, int) and 0 <= base < 1 << 61 else 0
    profiler_keys = sorted(key for key in _KINETO if key in trace.header)
    rows = trace.reader.rows
    sources = {
        "cuda": {
            "on": any(map(rows, ("kernel", "memcpy", "memset", "runtime", "driver"))),
            "by": "Kineto" if profiler_keys else "a Chrome trace",
        },
        "nvtx": {
            "on": any(map(rows, ("op", "annotation", "range", "async"))),
            "by": "Kineto" if profiler_keys else "a Chrome trace",
        },
    }
    return Facts(
        id=trace.part.id,
        host=HOST,
        command=[source.name],
        boot_id=trace.part.id,  # its clock is nobody else's but by `realtime_offset`
        origin=first,
        end=max(first, last),
        realtime_offset=since_1970,
        clock="kineto",
        sources=sources,
    )


def target(part_facts: Facts) -> dict[str, Any]:
    """Return the row of `targets`: a trace says nothing about its host."""
    return {
        "host": part_facts.host,
        "boot_id": part_facts.boot_id,
        "os": "",
        "kernel": "",
        "machine": "",
        "cpu": "",
        "cpus": 0,
        "memory": 0,
    }
