"""The table of capture windows; a run without options has one, from its start to its end."""

from __future__ import annotations

from warplens.model.table import Column, Table, time

CAPTURE_WINDOWS = Table(
    "capture_windows",
    "The capture windows: times in which everything was recorded. The report contains the ranges "
    "that overlap one.",
    (
        Column(
            "part",
            "int32",
            "Number of the report's part; the processes of one launch share their windows.",
        ),
        Column("number", "int32", "Number within its part, from 1; the argument of `--window`."),
        Column("host", "string", "Host name."),
        time("start", "Time of opening."),
        time("end", "Time of closing; the end of the run if nothing closed it."),
        Column(
            "opened_by",
            "dict",
            "`start` of the recording, `time` (--delay), `nvtx` (a range), `cudaProfilerApi`, "
            "`command` (`warplens start`), "
            "`keep` (the last seconds were requested).",
        ),
        Column(
            "closed_by",
            "dict",
            "`end` of the recording, `time` (--duration), `nvtx`, `cudaProfilerApi`, `command`, "
            "`max-size`, `keep`; "
            "null while it is still open.",
            nullable=True,
        ),
        Column(
            "process",
            "int64",
            "Key of the process that opened it; null: the launcher.",
            nullable=True,
        ),
    ),
    sort=("part", "number"),
    happens=True,
)
