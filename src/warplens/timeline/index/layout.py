"""The head of an index file: its kind, and the offsets of its sections (docs/dev/formats/index.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

MAGIC = b"WPLANES\0"
VERSION = 1
HEADER = 256  # bytes
SECTIONS = ("slices", "nodes", "lanes", "tracks", "names", "keys", "layers", "offsets", "texts", "head")
_HEAD = struct.Struct(f"<8sQQ{2 * len(SECTIONS)}Q")

LANE = np.dtype(
    [("track", "<u4"), ("lane", "<u4"), ("first_node", "<u8"), ("leaves", "<u8"), ("slices", "<u8")]
)
TRACK = np.dtype(
    [
        ("begin", "<i8"),
        ("end", "<i8"),
        ("busy", "<i8"),
        ("events", "<u8"),
        ("first_lane", "<u8"),
        ("lanes", "<u4"),
        ("flags", "<u4"),
    ]
)
NAME = np.dtype([("first", "<i8"), ("last", "<i8"), ("count", "<u8"), ("text", "<u4"), ("color", "<u4")])
NODE_BYTES = 80
NONE = 0xFFFFFFFF  # no color, no link


@dataclass(frozen=True)
class Header:
    """Offset and bytes of each section; `size`: bytes of the whole file."""

    size: int
    sections: dict[str, tuple[int, int]]

    @property
    def places(self) -> npt.NDArray[np.uint64]:
        """Where the native half finds its data: offset and end of the slices, offset and length of other sections."""
        offset, size = self.sections["slices"]
        widths = (
            ("nodes", NODE_BYTES),
            ("lanes", LANE.itemsize),
            ("tracks", TRACK.itemsize),
            ("names", NAME.itemsize),
        )
        others = [(self.sections[name][0], self.sections[name][1] // width) for name, width in widths]
        return np.array([(offset, offset + size), *others], np.uint64).reshape(-1)

    def pack(self) -> bytes:
        """Return the bytes that the file begins with."""
        places = [number for name in SECTIONS for number in self.sections[name]]
        return _HEAD.pack(MAGIC, VERSION, self.size, *places).ljust(HEADER, b"\0")

    @classmethod
    def parse(cls, data: bytes, size: int) -> Header:
        """Read what a file of `size` bytes begins with. Raises ValueError with what is wrong."""
        if len(data) < HEADER:
            raise ValueError(f"it has only {len(data)} bytes")
        magic, version, whole, *places = _HEAD.unpack_from(data)
        if magic != MAGIC:
            raise ValueError("it does not begin like an index")
        if version != VERSION:
            raise ValueError(f"it has version {version}, this warplens reads {VERSION}")
        if whole != size:
            raise ValueError(f"it has {size} bytes and should have {whole}")
        sections = dict(zip(SECTIONS, zip(places[::2], places[1::2], strict=True), strict=True))
        for name, (offset, length) in sections.items():
            if offset < HEADER or offset > size or length > size - offset:
                raise ValueError(f"its section {name} lies outside of it")
        return cls(size, sections)
