"""The one warning of `warplens.nvtx`: a part of an event could not be recorded."""

from __future__ import annotations


class NvtxWarning(UserWarning):
    """An event was recorded without something that it was given."""
