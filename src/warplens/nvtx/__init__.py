"""NVTX for Python: ranges, marks, domains and categories that every NVTX tool sees.

A drop-in for PyPI `nvtx`.

`import warplens.nvtx as nvtx` is all that a program written for PyPI `nvtx` needs. Nothing here raises in a program
except for plainly wrong argument types, and next to nothing is spent while no tool listens. With NVTX_DISABLE set (to
anything) at import, or where the native binding is missing, the same names record nothing.
"""

from __future__ import annotations

from warplens.nvtx import colors
from warplens.nvtx._active import active as _active
from warplens.nvtx._active import bound as _bound
from warplens.nvtx._active import recording as _recording

TYPE_CHECKING = False  # not typing's: importing that costs more than everything else here
if TYPE_CHECKING:
    from warplens.nvtx._counters import CounterSemantics, numpy_dtype
    from warplens.nvtx._enums import (
        BatchOrdering,
        CounterInterpolation,
        CounterNoValueReason,
        CounterValueType,
        EntryKind,
        EventKind,
        PayloadEntryType,
        PredefinedScope,
        TimestampType,
    )
    from warplens.nvtx._ranges import Lock, start_end_range
    from warplens.nvtx._warnings import NvtxWarning
elif not _bound:
    start_end_range = _active.start_end_range

annotate = _active.annotate
mark = _active.mark
push_range = _active.push_range
pop_range = _active.pop_range
start_range = _active.start_range
end_range = _active.end_range
get_domain = _active.get_domain
Domain = _active.Domain
EventAttributes = _active.EventAttributes
RegisteredString = _active.RegisteredString
Profile = _active.Profile
attached = _active.attached
name_category = _active.name_category
name_thread = _active.name_thread
name_cuda_context = _active.name_cuda_context
name_cuda_device = _active.name_cuda_device
name_cuda_event = _active.name_cuda_event
name_cuda_stream = _active.name_cuda_stream
Counter = _active.Counter
Int64Counter = _active.Int64Counter
Float64Counter = _active.Float64Counter
ExtCounter = _active.ExtCounter
Resource = _active.Resource
SyncObject = _active.SyncObject
int32 = _active.int32
uint32 = _active.uint32
int64 = _active.int64
uint64 = _active.uint64
float32 = _active.float32
float64 = _active.float64
rgb = colors.rgb
argb = colors.argb

# Loaded when first asked for: most programs never do, and every start would pay.
_LATER = dict.fromkeys(("CounterSemantics", "numpy_dtype"), "_counters")
_LATER |= dict.fromkeys(("Lock", "start_end_range"), "_ranges")
_LATER["NvtxWarning"] = "_warnings"
_LATER |= dict.fromkeys(
    (
        "BatchOrdering",
        "CounterInterpolation",
        "CounterNoValueReason",
        "CounterValueType",
        "EntryKind",
        "EventKind",
        "PayloadEntryType",
        "PredefinedScope",
        "TimestampType",
    ),
    "_enums",
)


def __getattr__(name: str) -> object:
    if name not in _LATER:
        raise AttributeError(f"module 'warplens.nvtx' has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(f"warplens.nvtx.{_LATER[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})


def enabled() -> bool:
    """True unless NVTX_DISABLE was set at import or the native binding is missing.

    Says nothing about a tool.
    """
    return _recording


__all__ = [
    "BatchOrdering",
    "Counter",
    "CounterInterpolation",
    "CounterNoValueReason",
    "CounterSemantics",
    "CounterValueType",
    "Domain",
    "EntryKind",
    "EventAttributes",
    "EventKind",
    "ExtCounter",
    "Float64Counter",
    "Int64Counter",
    "Lock",
    "NvtxWarning",
    "PayloadEntryType",
    "PredefinedScope",
    "Profile",
    "RegisteredString",
    "Resource",
    "SyncObject",
    "TimestampType",
    "annotate",
    "argb",
    "attached",
    "colors",
    "enabled",
    "end_range",
    "float32",
    "float64",
    "get_domain",
    "int32",
    "int64",
    "mark",
    "name_category",
    "name_cuda_context",
    "name_cuda_device",
    "name_cuda_event",
    "name_cuda_stream",
    "name_thread",
    "numpy_dtype",
    "pop_range",
    "push_range",
    "rgb",
    "start_end_range",
    "start_range",
    "uint32",
    "uint64",
]
