"""Finds the begins of functions in the table of unwind rules. Stripped files have it, too."""

from __future__ import annotations

import numpy as np

from warplens.arrays import Int64Array
from warplens.convert.symbols.elf import Elf

# Version 1; where the table of rules lies, as 4 bytes; how many entries, as 4 bytes; entries of 4 bytes, relative to this section.
_USUAL = bytes((1, 0x1B, 0x03, 0x3B))
_ENTRY = np.dtype([("start", "<i4"), ("rule", "<i4")])
_HEADER = 12


def function_starts(file: Elf) -> Int64Array:
    """Return the addresses (p_vaddr, rising) at which functions, or moved parts of them, begin.

    Nothing without a table.
    """
    section = file.section(".eh_frame_hdr")
    contents = b"" if section is None else file.contents(section)
    if section is None or len(contents) < _HEADER or bytes(contents[:4]) != _USUAL:
        return np.empty(0, np.int64)
    count = min(int.from_bytes(contents[8:12], "little"), (len(contents) - _HEADER) // _ENTRY.itemsize)
    rows = np.frombuffer(contents, _ENTRY, count, _HEADER)
    return np.sort(rows["start"].astype(np.int64) + section.address)
