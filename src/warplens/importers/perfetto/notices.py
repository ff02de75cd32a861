"""Diagnostics of an import: the kinds of data in a trace that a report cannot hold, with counts."""

from __future__ import annotations

import numpy as np

from warplens.importers.perfetto.slices import PerfettoContext

# Fields of TracePacket, as people know them.
_NAMES = {
    1: "ftrace_events",
    4: "inode_file_map",
    5: "chrome_events",
    7: "sys_stats",
    9: "process_stats",
    33: "trace_config",
    34: "ftrace_stats",
    35: "trace_stats",
    36: "synchronization_marker",
    37: "profile_packet",
    38: "battery",
    39: "android_log",
    40: "power_rails",
    45: "system_info",
    46: "trigger",
    49: "perfetto_metatrace",
    51: "chrome_metadata",
    52: "gpu_counter_event",
    54: "streaming_profile_packet",
    57: "graphics_frame_event",
    61: "module_symbols",
    62: "vulkan_memory_event",
    63: "gpu_log",
    65: "vulkan_api_event",
    67: "cpu_info",
    68: "smaps_packet",
    69: "service_event",
    71: "gpu_mem_total_event",
    73: "memory_tracker_snapshot",
    78: "ui_state",
    89: "trace_uuid",
    95: "etw_events",
    124: "trace_provenance",
    128: "gpu_info",
}
_ABOUT_THE_TRACE = {33, 34, 35, 36, 45, 46, 67, 69, 78, 89, 90, 124}  # nothing that happened
_READ_ELSEWHERE = (52,)


def say(context: PerfettoContext, ends_without_begin: int) -> None:
    """Add the rows of `diagnostics`."""
    trace, tally = context.trace, context.tally
    counts = dict(trace.left_out)
    for field in _READ_ELSEWHERE:
        counts[field] = int(np.sum(trace.columns["others"]["field"] == field))
    for field, count in sorted(counts.items()):
        if field not in _ABOUT_THE_TRACE:
            name = _NAMES.get(field, f"field {field}" if field < 1023 else "fields from 1023 on")
            tally.say("info", "not-imported", f"packets `{name}` have no place in a report", count)
    ours = (
        {number for number, text in enumerate(trace.texts.to_pylist()) if text in context.own.kinds}
        if context.own.reports
        else set()
    )
    arrows = trace.flows["event"]
    beside = ~np.isin(trace.events["category"][arrows], list(ours)) if len(arrows) else arrows
    tally.say(
        "info", "not-imported", "arrows (flows) between events have no place in a report", int(np.sum(beside))
    )
    lost = trace.lost
    tally.say("warning", "dropped-packets", "times that the recorder lost packets", lost["dropped"])
    tally.say(
        "warning",
        "no-state",
        "events whose names were lost before the trace begins were left out",
        lost["without_state"],
    )
    tally.say(
        "warning",
        "broken",
        "packets that are no message were left out",
        lost["broken"] + context.described.broken,
    )
    tally.say("info", "not-imported", "events of a kind that is not known were left out", lost["phases"])
    tally.say("warning", "too-deep", "annotations that are nested too deep were cut", lost["deep"])
    tally.say("warning", "ends-first", "ends of slices that nothing began were left out", ends_without_begin)
    tally.say(
        "warning",
        "unknown-clock",
        "events on a clock that nothing connects with the others keep its times",
        context.clocks.unknown,
    )
    if trace.cut_at is not None:
        size = trace.source.stat().st_size
        tally.say(
            "warning",
            "cut-short",
            f"the trace is damaged or cut short at byte {trace.cut_at} of {size}: what comes then is missing",
        )
