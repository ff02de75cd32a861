"""Loads the desk's native library."""
from __future__ import annotations
import ctypes, os
def desk_library() -> ctypes.CDLL:
    return ctypes.CDLL(os.environ.get("H5_DESK", "/tmp/h5/libdesk.so"))
