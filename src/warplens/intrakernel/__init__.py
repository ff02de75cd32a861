"""Times regions inside a kernel: `with region(prof, "load"):` in CuTe DSL, Triton, Numba-CUDA or CUDA C++.

    from warplens import intrakernel as ik

    buffer = ik.allocate(grid=(64, 8), warps=4, tags=["load", "compute"])
    with buffer.launch("gemm"):
        kernel[grid](…, buffer.memory)          # records with the device functions of warplens.intrakernel.dsl.<language>
    events = buffer.decode().events             # NumPy: unit, start and end in ns, tag, flags, payload

Under `warplens profile` buffers are stored by themselves, and their regions are in the report under their kernels.
Importing this loads nothing heavy; decoding needs NumPy.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from warplens.intrakernel.buffers import Buffer, Launch, allocate
    from warplens.intrakernel.layout import Shape
    from warplens.intrakernel.nuggets import (
        Event,
        ProfileBuf,
        allocate_profile_buffer,
        decode_events,
        elected_start,
        elected_stop,
        events_to_perfetto,
        lane0_warp0_start,
        lane0_warp0_stop,
        profile_region,
        profile_session,
        profile_start,
        profile_stop,
        read_globaltimer,
        warp_start,
        warp_stop,
    )
    from warplens.intrakernel.reading import decode
    from warplens.intrakernel.tags import TagTable
    from warplens.intrakernel.traces import write_trace

_HOMES = {
    "Buffer": "buffers",
    "Launch": "buffers",
    "Shape": "layout",
    "TagTable": "tags",
    "allocate": "buffers",
    "decode": "reading",
    "write_trace": "traces",
    "include_path": "headers",  # where warplens.cuh is
    # the reference design's names
    "Event": "nuggets",
    "ProfileBuf": "nuggets",
    "allocate_profile_buffer": "nuggets",
    "decode_events": "nuggets",
    "events_to_perfetto": "nuggets",
    "profile_session": "nuggets",
    # and those for kernels of CuTe DSL
    "elected_start": "nuggets",
    "elected_stop": "nuggets",
    "lane0_warp0_start": "nuggets",
    "lane0_warp0_stop": "nuggets",
    "profile_region": "nuggets",
    "profile_start": "nuggets",
    "profile_stop": "nuggets",
    "read_globaltimer": "nuggets",
    "warp_start": "nuggets",
    "warp_stop": "nuggets",
}
__all__ = [
    "Buffer",
    "Event",
    "Launch",
    "ProfileBuf",
    "Shape",
    "TagTable",
    "allocate",
    "allocate_profile_buffer",
    "decode",
    "decode_events",
    "elected_start",
    "elected_stop",
    "events_to_perfetto",
    "include_path",
    "lane0_warp0_start",
    "lane0_warp0_stop",
    "profile_region",
    "profile_session",
    "profile_start",
    "profile_stop",
    "read_globaltimer",
    "warp_start",
    "warp_stop",
    "write_trace",
]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _HOMES:
        value = getattr(import_module(f"warplens.intrakernel.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'warplens.intrakernel' has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
