"""The system's facts about processes and the machine.

Columns of `processes`, and the table of memory and load over time.
"""

from __future__ import annotations

from warplens.model.table import Column, Table, time

_SELF = "of the process itself, read at its end; null if it was killed."
USAGE = (
    Column("max_rss", "int64", f"Most resident memory {_SELF}", unit="bytes", nullable=True),
    Column("user_time", "int64", f"CPU time in the program {_SELF}", unit="ns", nullable=True),
    Column("system_time", "int64", f"CPU time in the kernel {_SELF}", unit="ns", nullable=True),
    Column("minor_faults", "int64", f"Page faults without reading a disk, {_SELF}", nullable=True),
    Column("major_faults", "int64", f"Page faults that read a disk, {_SELF}", nullable=True),
    Column("waits", "int64", f"Switches because it waited (voluntary), {_SELF}", nullable=True),
    Column(
        "preemptions",
        "int64",
        f"Switches because another one got the CPU (involuntary), {_SELF}",
        nullable=True,
    ),
)
HOST_METRICS = Table(
    "host_metrics",
    "Resident memory of each process and the load of the machine over time, read by the launcher a "
    "few times a second.",
    (
        Column("host", "string", "Host name."),
        Column("process", "int64", "Key of `processes`; null: of the whole machine.", nullable=True),
        time("start", "When it was read."),
        Column(
            "metric",
            "dict",
            "`RSS` of a process; `CPU Load` of the machine: CPU time of all programs since the "
            "previous reading.",
        ),
        Column("unit", "dict", "`bytes` or `%` (100: all CPUs)."),
        Column("value", "float64", "Value."),
    ),
    sort=("host", "start"),
    happens=True,
)
