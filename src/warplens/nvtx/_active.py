"""Chooses the implementation: the native binding, or the names without recording."""

from __future__ import annotations

import os

TYPE_CHECKING = False  # not typing's: importing that costs more than everything else here
if TYPE_CHECKING:
    from warplens.nvtx import _binding

    active = _binding

bound = True  # whether there is a binding
recording = not os.environ.get("NVTX_DISABLE")
if not TYPE_CHECKING:
    try:
        from warplens.nvtx import _binding as active

        if not recording:
            active.mute()
    except ImportError:
        from warplens.nvtx import _absent as active

        bound = recording = False
