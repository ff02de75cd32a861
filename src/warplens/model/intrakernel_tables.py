"""Tables of kernels that time themselves: launches, recording warps (units), regions and marks (events)."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

INTRAKERNEL_LAUNCHES = Table(
    "intrakernel_launches",
    "Launches that recorded regions inside their kernel (warplens.intrakernel), and how their times came onto the report's clock.",
    (
        Column("id", "int64", "Unique in its table; ids grow with `launched` within a process."),
        PROCESS,
        THREAD,
        Column(
            "name",
            "dict",
            "Name given to the launch, else that of its kernel, else that of the buffer.",
            nullable=True,
        ),
        Column("buffer", "int32", "Number of the buffer in its process."),
        Column("buffer_name", "dict", "Name given to the buffer.", nullable=True),
        Column("generation", "uint32", "Which launch into this buffer it was."),
        time("launched", "Just before the launch, on the host."),
        time("start", "When the first unit began; where nothing was stored, `launched`."),
        time("end", "When the last unit ended; where nothing was stored, `launched`."),
        Column(
            "kernel",
            "int64",
            "Id of its kernel in `kernels`; null: none was found that it can be.",
            nullable=True,
        ),
        Column("api", "int64", "Id of the call that launched it in `cuda_api`.", nullable=True),
        Column("correlation", "int64", "CUPTI's number of that call, unique in its process.", nullable=True),
        Column(
            "device",
            "int32",
            "CUDA's number of the device; null: memory of the host, or not known.",
            nullable=True,
        ),
        Column(
            "stream",
            "int64",
            "CUDA stream of its kernel: with `process` the key of `streams`.",
            nullable=True,
        ),
        Column("mode", "dict", "`slices`, `claim` or `smem`; null where nothing was stored.", nullable=True),
        Column(
            "clock", "dict", "What the kernel read: `globaltimer` (ns) or `clock` (cycles).", nullable=True
        ),
        Column(
            "merged",
            "dict",
            "What its times on the report's clock rest on: `kernel` (they lie inside its kernel), `neighbours` (launches beside it with "
            "kernels), `bracket` (the host before the launch and after its end) or `host` (it ran on the CPU, with the report's clock). "
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
        Column(
            "uncertainty", "int64", "How far its times may be off, all together.", nullable=True, unit="ns"
        ),
        Column(
            "drift",
            "float64",
            "How much faster the report's clock ran than the GPU's, parts per million.",
            nullable=True,
        ),
        Column("units", "int64", "Warps that recorded."),
        Column(
            "events",
            "int64",
            "Regions and marks that are here; where the buffer asked for the first ones alone (`keep`), those.",
        ),
        Column("dropped", "int64", "Records for which there were no slots."),
        Column("units_lost", "int64", "Warps that found no place in the buffer."),
        Column(
            "unended",
            "int64",
            "Warps that did not reach the end of the recorder: an early exit, or a killed kernel.",
        ),
        Column("slots", "int32", "Records that each warp had room for.", nullable=True),
        Column("needed_slots", "int32", "Slots with which none would have been dropped.", nullable=True),
        Column("sample_blocks", "int32", "Every how many-th block recorded.", nullable=True),
        Column("stored", "bool", "True when what it wrote was read; false: the diagnostics say why not."),
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
        Column("sm", "int32", "Multiprocessor where it began."),
        Column("sm_end", "int32", "Multiprocessor where it ended: another one only where it was preempted."),
        time("start", "Begin of the recorder in it."),
        time("end", "End of the recorder, or of its last event."),
        Column("events", "int64", "Its regions and marks that are here."),
        Column("dropped", "int64", "Records for which there were no slots."),
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
        time("start", "Begin."),
        time("end", "End; of a mark the same."),
        Column("tag", "dict", "Name; `tag 7` where the number has none."),
        Column("kind", "dict", "`region`, `mark` or `asynchronous` (a region that may cross others)."),
        Column("payload", "int64", "Number given with it.", nullable=True),
    ),
    sort=("launch", "unit", "start"),
    happens=True,
)

INTRAKERNEL_TABLES: tuple[Table, ...] = (INTRAKERNEL_LAUNCHES, INTRAKERNEL_UNITS, INTRAKERNEL_EVENTS)
