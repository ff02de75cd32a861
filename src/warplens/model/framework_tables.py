"""The tables of a framework's own records: operations, collectives, memory of its allocator."""

from __future__ import annotations

from warplens.model.table import PROCESS, THREAD, Column, Table, time

OPERATORS = "pytorch"
"""The domain in `nvtx_ranges` of what is in `ops` and has no name of the program's own."""
_ID = Column("id", "int64", "Unique in its table; ids grow with start within a process.")
_WITHIN = Column(
    "range",
    "int64",
    "Id of the innermost operation or NVTX push/pop range of the thread that encloses its begin.",
    nullable=True,
)

OPS = Table(
    "ops",
    "Operations of a framework, e.g. `aten::mm`. Each is a row of `nvtx_ranges`, too: in the domain `pytorch`, or in the default one if "
    "the program or a library named it (`record_function`).",
    (
        Column("range", "int64", "Its id in `nvtx_ranges`."),
        PROCESS,
        THREAD,
        time("start", "Start."),
        time("end", "End."),
        Column("name", "dict", "Name in the framework."),
        Column(
            "sequence",
            "int64",
            "Number that a forward operation shares with its backward operations.",
            nullable=True,
        ),
        Column(
            "forward",
            "int64",
            "Backward operations only: `range` of their forward operation.",
            nullable=True,
        ),
        Column("backward", "bool", "True: it belongs to the backward pass.", nullable=True),
        Column("external", "int64", "The framework's number of it: `External id`.", nullable=True),
        Column("shapes", "dict", "Shapes of its inputs, as JSON text: `[[64,512],[512]]`.", nullable=True),
        Column("types", "dict", "Types of its inputs, as JSON text.", nullable=True),
        Column("strides", "dict", "Strides of its inputs, as JSON text.", nullable=True),
        Column("concrete", "dict", "Values of inputs other than tensors, as JSON text.", nullable=True),
        Column("stack", "int64", "Innermost frame of the call: key of `frames`.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)
COLLECTIVES = Table(
    "collectives",
    "Collective operations: communication between the ranks of a group.",
    (
        _ID,
        PROCESS,
        time("start", "Start on the GPU; if unknown, on the host."),
        time("end", "End there."),
        Column("kernel", "int64", "Id of its kernel in `kernels`.", nullable=True),
        Column("range", "int64", "Id of the range in `nvtx_ranges` that started it.", nullable=True),
        Column("name", "dict", "`all_reduce`, `all_gather`, `send`, …"),
        Column("group", "dict", "Name of the process group.", nullable=True),
        Column("group_size", "int32", "Ranks in it.", nullable=True),
        Column(
            "sequence",
            "int64",
            "Number of the operation within its group: the same on all of its ranks.",
            nullable=True,
        ),
        Column("bytes_in", "int64", "Input of the rank.", nullable=True, unit="bytes"),
        Column("bytes_out", "int64", "Output of the rank.", nullable=True, unit="bytes"),
        Column("elements_in", "int64", "Elements of the input.", nullable=True),
        Column("elements_out", "int64", "Elements of the output.", nullable=True),
        Column("type", "dict", "Type of the elements, e.g. `BFloat16`.", nullable=True),
        Column(
            "peers",
            "dict",
            "Ranks of the group, as JSON text; the framework may shorten long lists.",
            nullable=True,
        ),
    ),
    sort=("process", "start"),
    happens=True,
)
TENSOR_MEMORY = Table(
    "tensor_memory",
    "Tensor memory that a framework's allocator allocated and freed; `gpu_memory` has the "
    "allocator's own memory.",
    (
        _ID,
        PROCESS,
        THREAD,
        time("start", "Time of the event."),
        Column("device", "int32", "CUDA's number of the device; null: memory of the CPU.", nullable=True),
        Column("device_type", "dict", "`CPU`, `CUDA`, …"),
        Column("address", "uint64", "Address."),
        Column("bytes", "int64", "Size; negative: freed.", unit="bytes"),
        Column(
            "allocated", "int64", "Memory of tensors on the device afterwards.", nullable=True, unit="bytes"
        ),
        Column(
            "reserved",
            "int64",
            "Memory of the allocator on the device afterwards.",
            nullable=True,
            unit="bytes",
        ),
        _WITHIN,
        Column("stack", "int64", "Innermost frame of the allocation: key of `frames`.", nullable=True),
    ),
    sort=("process", "start"),
    happens=True,
)

FRAMEWORK_TABLES: tuple[Table, ...] = (OPS, COLLECTIVES, TENSOR_MEMORY)
