"""Diagnostics of an import: the kinds of data in a trace that a report cannot hold, with counts."""

from __future__ import annotations

import numpy as np

from warplens.importers.perfetto.slices import PerfettoContext

# Fields of TracePacket, as people know them.
_NAMES = {
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
    47: "packages_list",
    48: "chrome_benchmark_metadata",
    49: "perfetto_metatrace",
    51: "chrome_metadata",
    52: "gpu_counter_event",
    54: "streaming_profile_packet",
    57: "graphics_frame_event",
    61: "module_symbols",
    62: "vulkan_memory_event",
    63: "gpu_log",
    64: "deobfuscation_mapping",
    65: "vulkan_api_event",
    67: "cpu_info",
    68: "smaps_packet",
    69: "service_event",
    70: "initial_display_state",
    71: "gpu_mem_total_event",
    72: "extension_descriptor",
    73: "memory_tracker_snapshot",
    74: "streaming_allocation",
    75: "streaming_free",
    76: "frame_timeline_event",
    77: "android_energy_estimation_breakdown",
    78: "ui_state",
    82: "translation_table",
    83: "android_game_intervention_list",
    84: "statsd_atom",
    86: "android_system_property",
    88: "network_packet",
    89: "trace_uuid",
    91: "entity_state_residency",
    92: "network_packet_bundle",
    95: "etw_events",
    99: "v8_js_code",
    100: "v8_internal_code",
    101: "v8_wasm_code",
    102: "v8_reg_exp_code",
    103: "v8_code_move",
    107: "remote_clock_sync",
    109: "chrome_trigger",
    115: "kernel_wakelock_data",
    117: "generic_kernel_task_state_event",
    118: "generic_kernel_cpu_freq_event",
    119: "cpu_per_uid_data",
    120: "generic_kernel_task_rename_event",
    122: "generic_kernel_process_tree",
    124: "trace_provenance",
    128: "gpu_info",
    129: "generic_gpu_frequency_event",
    130: "interrupt_info",
    131: "art_process_metadata",
    132: "journald_event",
    134: "concurrent_session_event",
    135: "stack_sample",
    139: "source_file",
    140: "module_disassembly",
}
# Events of the kernel by their field in FtraceEvent; 0: those that a bundle has in columns.
_KERNEL = {
    0: "switches of threads in columns",
    3: "`print` texts that are none of atrace's",
    4: "`sched_switch`",
    11: "`cpu_frequency`",
    13: "`cpu_idle`",
    17: "`sched_wakeup`",
    18: "`sched_blocked_reason`",
    20: "`sched_waking`",
    24: "`softirq_entry`",
    25: "`softirq_exit`",
    36: "`irq_handler_entry`",
    37: "`irq_handler_exit`",
}
_ABOUT_THE_TRACE = {33, 34, 35, 36, 45, 46, 67, 69, 78, 89, 90, 109, 113, 124, 134}  # nothing that happened
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
    for kind, count in sorted(trace.ftrace_left_out.items()):
        name = _KERNEL.get(kind, f"of kind {kind}")
        tally.say("info", "not-imported", f"events of the kernel have no place in a report: {name}", count)
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
        "packets that are not messages were left out",
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
