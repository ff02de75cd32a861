"""The table of capture windows: a run without options has one, from its begin to its end."""

from __future__ import annotations

from warplens.model.table import Column, Table, time

CAPTURE_WINDOWS = Table(
    "capture_windows",
    "The windows of the capture: times in which everything was recorded. Ranges that overlap one are in the report.",
    (
        Column(
            "part",
            "int32",
            "Number of the part of the report: windows are common to the processes of one launch.",
        ),
        Column("number", "int32", "Number within its part, from 1; what `--window` takes."),
        Column("host", "string", "Host name."),
        time("start", "When it opened."),
        time("end", "When it closed; of a window that nobody closed, the end of the run."),
        Column(
            "opened_by",
            "dict",
            "`start` of the recording, `time` (--delay), `nvtx` (a range), `cudaProfilerApi`, `command` (`warplens start`), "
            "`keep` (the last seconds were requested).",
        ),
        Column(
            "closed_by",
            "dict",
            "`end` of the recording, `time` (--duration), `nvtx`, `cudaProfilerApi`, `command`, `max-size`, `keep`; "
            "null while it is still open.",
            nullable=True,
        ),
        Column(
            "process",
            "int64",
            "Key of the process that opened it; null where the launcher did.",
            nullable=True,
        ),
    ),
    sort=("part", "number"),
    happens=True,
)
