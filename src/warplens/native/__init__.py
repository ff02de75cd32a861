"""The one door to the native library of the reader, and shared functions over it.

Sets of intervals, nesting, clocks, names.
"""

from __future__ import annotations

from warplens.native.columns import Nests, lanes, map_times, nest, unite
from warplens.native.library import call, make
from warplens.native.names import demangle
from warplens.native.values import Handle

__all__ = ["Handle", "Nests", "call", "demangle", "lanes", "make", "map_times", "nest", "unite"]
