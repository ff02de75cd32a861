"""NVTX for Python: ranges, marks, domains and categories that every NVTX tool sees; a drop-in for PyPI `nvtx`.

`import warpline.nvtx as nvtx` is all that a program written for PyPI `nvtx` needs. Nothing here raises in a program
except for plainly wrong argument types, and next to nothing is spent while no tool listens. With NVTX_DISABLE set (to
anything) at import, or where the native binding is missing, the same names record nothing.
"""

from __future__ import annotations

import os as _os

from warpline.nvtx import colors
from warpline.nvtx._warnings import NvtxWarning

TYPE_CHECKING = False  # not typing's: importing that costs more than everything else here
if TYPE_CHECKING:
    from warpline.nvtx import _binding as _active

    _recording = True
else:
    _recording = not _os.environ.get("NVTX_DISABLE")
    if _recording:
        try:
            from warpline.nvtx import _binding as _active
        except ImportError:
            _recording = False
    if not _recording:
        from warpline.nvtx import _absent as _active

annotate = _active.annotate
mark = _active.mark
push_range = _active.push_range
pop_range = _active.pop_range
start_range = _active.start_range
end_range = _active.end_range
get_domain = _active.get_domain
Domain = _active.Domain
Profile = _active.Profile
attached = _active.attached


def enabled() -> bool:
    """True unless NVTX_DISABLE was set at import or the native binding is missing; says nothing about a tool."""
    return _recording


__all__ = [
    "Domain",
    "NvtxWarning",
    "Profile",
    "annotate",
    "attached",
    "colors",
    "enabled",
    "end_range",
    "get_domain",
    "mark",
    "pop_range",
    "push_range",
    "start_range",
]
