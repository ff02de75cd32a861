"""Tables of kernels that time themselves: launches, recording warps (units), regions and marks (events)."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

INTRAKERNEL_LAUNCHES = Table(
    "intrakernel_launches",
    "Launches that recorded regions inside their kernel (warplens.intrakernel), and the conversion "
    "of their times to the report's clock.",
    (
        Column("id", "int64", "Unique in its table; ids grow with `launched` within a process."),
        PROCESS,
        THREAD,
        Column(
            "name",
            "dict",
            "Name given to the launch, or else the kernel's, or else the buffer's.",
            nullable=True,
        ),
        Column("buffer", "int32", "Number of the buffer in its process."),
        Column("buffer_name", "dict", "Name given to the buffer.", nullable=True),
        Column("generation", "uint32", "Number of the launch into this buffer."),
        time("launched", "Host time just before the launch."),
        time("start", "Start of the first unit; `launched` if nothing was stored."),
        time("end", "End of the last unit; `launched` if nothing was stored."),
        Column(
            "kernel",
            "int64",
            "Id of its kernel in `kernels`; null: no match.",
            nullable=True,
        ),
        Column("api", "int64", "Id of the call that launched it in `cuda_api`.", nullable=True),
        Column("correlation", "int64", "CUPTI's number of that call, unique in its process.", nullable=True),
        Column(
            "device",
            "int32",
            "CUDA's number of the device; null: host memory, or unknown.",
            nullable=True,
        ),
        Column(
            "stream",
            "int64",
            "CUDA stream of its kernel: with `process` the key of `streams`.",
            nullable=True,
        ),
        Column("mode", "dict", "`slices`, `claim` or `smem`; null if nothing was stored.", nullable=True),
        Column(
            "clock",
            "dict",
            "Clock that the kernel read: `globaltimer` (ns) or `clock` (cycles).",
            nullable=True,
        ),
        Column(
            "merged",
            "dict",
            "Basis of its times on the report's clock: `kernel` (they lie inside its kernel), "
            "`neighbours` (launches beside it with "
            "kernels), `bracket` (the host before the launch and after its end) or `host` (it ran "
            "on the CPU, with the report's clock). "
            "Null: nothing was stored.",
            nullable=True,
        ),
        Column(
            "offset",
            "int64",
            "Report's clock minus the GPU's, as used for this launch.",
            nullable=True,
            unit="ns",
        ),
        Column("uncertainty", "int64", "Possible error of all its times together.", nullable=True, unit="ns"),
        Column(
            "drift",
            "float64",
            "Rate of the report's clock compared with the GPU's, parts per million.",
            nullable=True,
        ),
        Column("units", "int64", "Warps that recorded."),
        Column(
            "events",
            "int64",
            "Regions and marks in the report; with the buffer's option `keep`, only the first ones.",
        ),
        Column("dropped", "int64", "Records dropped for lack of slots."),
        Column("units_lost", "int64", "Warps without a place in the buffer."),
        Column(
            "unended",
            "int64",
            "Warps that did not reach the end of the recorder: an early exit, or a killed kernel.",
        ),
        Column("slots", "int32", "Slots for records per warp.", nullable=True),
        Column("needed_slots", "int32", "Slots per warp that would have avoided drops.", nullable=True),
        Column("sample_blocks", "int32", "N: every N-th block recorded.", nullable=True),
        Column("stored", "bool", "True: its records were read. False: see the diagnostics."),
    ),
    sort=("process", "launched"),
    happens=True,
)
INTRAKERNEL_UNITS = Table(
    "intrakernel_units",
    "Warps that recorded in a launch.",
    (
        Column("id", "int64", "Unique in its table."),
        PROCESS,
        Column("launch", "int64", "Launch: key of `intrakernel_launches`."),
        Column("cta", "int64", "Linear number of its block."),
        Column("warp", "int32", "Number of the warp in the block."),
        Column("sm", "int32", "Multiprocessor at its start."),
        Column("sm_end", "int32", "Multiprocessor at its end; it differs only after a preemption."),
        time("start", "Start of its recorder."),
        time("end", "End of the recorder, or of its last event."),
        Column("events", "int64", "Its regions and marks in the report."),
        Column("dropped", "int64", "Records dropped for lack of slots."),
        Column("ended", "bool", "False: it did not reach the end of the recorder."),
    ),
    sort=("launch", "id"),
    happens=True,
)
INTRAKERNEL_EVENTS = Table(
    "intrakernel_events",
    "Regions and marks inside kernels. Those of a unit are together, in order of start.",
    (
        Column("id", "int64", "Unique in its table."),
        PROCESS,
        Column("launch", "int64", "Launch: key of `intrakernel_launches`."),
        Column("unit", "int64", "Unit: key of `intrakernel_units`."),
        time("start", "Start."),
        time("end", "End; equal to `start` for a mark."),
        Column("tag", "dict", "Name; `tag 7` if the number has no name."),
        Column("kind", "dict", "`region`, `mark` or `asynchronous` (a region that may cross others)."),
        Column("payload", "int64", "Number that the kernel attached.", nullable=True),
    ),
    sort=("launch", "unit", "start"),
    happens=True,
)

INTRAKERNEL_TABLES: tuple[Table, ...] = (INTRAKERNEL_LAUNCHES, INTRAKERNEL_UNITS, INTRAKERNEL_EVENTS)
