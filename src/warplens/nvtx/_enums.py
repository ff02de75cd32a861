"""The enumerations of NVTX's payload and counter extensions, under the names of PyPI `nvtx`."""

from __future__ import annotations

import enum


class CounterValueType(enum.Enum):
    """How the samples of a counter relate to one another."""

    ABSOLUTE = 1 << 4
    DELTA = 2 << 4
    DELTA_SINCE_START = 3 << 4


class CounterInterpolation(enum.Enum):
    """What a counter is between two samples."""

    POINT = 1 << 8
    SINCE_LAST = 2 << 8
    UNTIL_NEXT = 3 << 8
    LINEAR = 4 << 8


class CounterNoValueReason(enum.Enum):
    """Why a sample has no value, for `sample_no_value()`."""

    ZERO = 0
    UNCHANGED = 1
    UNAVAILABLE = 2


class TimestampType(enum.Enum):
    """Clocks that timestamps of batches can come from.

    TOOL_PROVIDED is what `Domain.get_timestamp()` reads.
    """

    NONE = 0
    TOOL_PROVIDED = 1
    CPU_TSC = 10
    CPU_TSC_NONVIRTUALIZED = 11
    CPU_CLOCK_GETTIME_REALTIME = 12
    CPU_CLOCK_GETTIME_REALTIME_COARSE = 13
    CPU_CLOCK_GETTIME_MONOTONIC = 14
    CPU_CLOCK_GETTIME_MONOTONIC_RAW = 15
    CPU_CLOCK_GETTIME_MONOTONIC_COARSE = 16
    CPU_CLOCK_GETTIME_BOOTTIME = 17
    CPU_CLOCK_GETTIME_PROCESS_CPUTIME_ID = 18
    CPU_CLOCK_GETTIME_THREAD_CPUTIME_ID = 19
    WIN_QPC = 30
    WIN_GSTAFT = 31
    WIN_GSTAFTP = 32
    C_TIME = 40
    C_CLOCK = 41
    C_TIMESPEC_GET = 42
    CPP_STEADY_CLOCK = 50
    CPP_HIGH_RESOLUTION_CLOCK = 51
    CPP_SYSTEM_CLOCK = 52
    CPP_UTC_CLOCK = 53
    CPP_TAI_CLOCK = 54
    CPP_GPS_CLOCK = 55
    CPP_FILE_CLOCK = 56
    GPU_GLOBALTIMER = 80


class PredefinedScope(enum.Enum):
    """What a counter or event belongs to, where NVTX has a number for it.

    The CURRENT ones are resolved by the tool.
    """

    NONE = 0
    ROOT = 1
    CURRENT_HW_MACHINE = 2
    CURRENT_HW_SOCKET = 3
    CURRENT_HW_CPU_PHYSICAL = 4
    CURRENT_HW_CPU_LOGICAL = 5
    CURRENT_HW_INNERMOST = 15
    CURRENT_HYPERVISOR = 16
    CURRENT_VM = 17
    CURRENT_KERNEL = 18
    CURRENT_CONTAINER = 19
    CURRENT_OS = 20
    CURRENT_SW_PROCESS = 21
    CURRENT_SW_THREAD = 22
    CURRENT_SW_INNERMOST = 31


class EntryKind(enum.Enum):
    """What a field of a structured payload is to its event, for `numpy_dtype(entry_kind=…)`."""

    RANGE_BEGIN = 1 << 12 | 2 << 10
    RANGE_END = 2 << 12 | 2 << 10
    MARK = 3 << 12 | 2 << 10
    MESSAGE = 1 << 10
    COUNTER_TIMESTAMP = 2 << 10


class PayloadEntryType(enum.Enum):
    """What the integer in a field means, for `numpy_dtype(entry_type=…)`."""

    RANGE_ID = 67
    CATEGORY = 68
    COLOR_ARGB = 69
    SCOPE_ID = 70
    REGISTERED_STRING = 80


class EventKind(enum.Enum):
    """What the rows of a deferred batch are."""

    RANGE_PUSHPOP = 2 << 3
    RANGE_STARTEND = 3 << 3
    MARK = 4 << 3
    RANGE_PUSH = 5 << 3
    RANGE_POP = 6 << 3
    RANGE_START = 7 << 3
    RANGE_END = 8 << 3


class BatchOrdering(enum.Enum):
    """How the rows of a batch are ordered in time."""

    SORTED = 0
    PARTIALLY_SORTED = 1 << 1
    SORTED_PER_SCOPE = 2 << 1
    UNSORTED = 3 << 1
