"""The layout of the buffer that kernels record into, for both halves.

Every field with its type and place (docs/dev/formats/intrakernel.md).
"""

from __future__ import annotations

MAGIC = 0x4B494C57  # "WLIK"
UNIT_MAGIC = 0x31554C57  # "WLU1"
VERSION = 1
HEADER_BYTES = 256
UNIT_HEADER_BYTES = 64
RECORD_BYTES = 16
RING_RECORD_BYTES = 8

MODES = ("slices", "claim", "smem")  # their number is their place
CLOCKS = ("globaltimer", "clock")

# Flags of a unit, and of a record.
ENDED = 1
MARK, ASYNC, HAS_GENERATION, HAS_PAYLOAD = 1, 2, 4, 8
RESERVED_TAG = 0xFFFF
RING_TAGS = 256
RING_LONGEST = 0xFFFFFF  # what a longer duration becomes in the ring

# What `wanted` says in its low half where a kernel cannot record into this buffer at all.
MISMATCH = 0xFFFFFFFF

# Where the host writes before a launch.
UNITS_AT = 16
GENERATION_AT = 32
CLAIMED_AT = 128

Field = tuple[str, str, int]  # name, NumPy type, offset
HEADER: tuple[Field, ...] = (
    ("magic", "<u4", 0),
    ("version", "<u2", 4),
    ("header_bytes", "<u2", 6),
    ("mode", "<u4", 8),
    ("clock", "<u4", 12),
    ("units", "<u4", UNITS_AT),
    ("slots", "<u4", 20),
    ("stride", "<u4", 24),
    ("warps", "<u4", 28),
    ("generation", "<u4", GENERATION_AT),
    ("sample_blocks", "<u4", 36),
    ("warp_mask", "<u8", 40),
    ("keep", "<u4", 48),
    ("claimed", "<u4", CLAIMED_AT),
    ("wanted", "<u8", 136),
)
UNIT: tuple[Field, ...] = (
    ("magic", "<u4", 0),
    ("version", "<u2", 4),
    ("flags", "<u2", 6),
    ("generation", "<u4", 8),
    ("cta", "<u4", 12),
    ("warp", "<u4", 16),
    ("sm_begin", "<u4", 20),
    ("sm_end", "<u4", 24),
    ("cursor", "<u4", 28),
    ("time_begin", "<u8", 32),
    ("time_end", "<u8", 40),
    ("clock_begin", "<u8", 48),
    ("clock_end", "<u8", 56),
)
# For readers of few fields of many heads: the place in 4-byte words, and in bytes.
HEADER_WORDS = {name: at // 4 for name, _, at in HEADER}
UNIT_PLACES = {name: at for name, _, at in UNIT}
RECORD: tuple[Field, ...] = (("t0", "<u4", 0), ("t1", "<u4", 4), ("word", "<u4", 8), ("payload", "<u4", 12))
