"""The colours of ranges: those the program gave, else one per name."""

from __future__ import annotations

import zlib

# Of medium lightness, far apart in hue, so that black text is readable on all and neighbours differ.
_PALETTE = (
    0x8FBC5A,
    0x6FA8DC,
    0xE6A04C,
    0xC58BD6,
    0x57BBAA,
    0xE38686,
    0xD4C14E,
    0x9AA5F0,
    0x7FC97F,
    0xE58BB8,
    0xB59A78,
    0x77C0E0,
)


def color_of(name: str, domain: str | None, given: int | None) -> int:
    """Return 0xRRGGBB for a range."""
    if given is not None:
        return given & 0xFFFFFF
    return _PALETTE[zlib.crc32(f"{domain or ''}:{name}".encode()) % len(_PALETTE)]


def foreground(color: int, colors: int) -> str:
    """Return the escape sequence for text of a colour."""
    return f"\x1b[38;{_code(color, colors)}m"


def on(color: int, colors: int) -> str:
    """Return the escape sequence for readable text on a colour."""
    red, green, blue = color >> 16 & 255, color >> 8 & 255, color & 255
    # Perceived lightness (ITU-R BT.601): dark text on light colours and the other way round.
    text = 0x000000 if red * 299 + green * 587 + blue * 114 > 128_000 else 0xFFFFFF
    return f"\x1b[48;{_code(color, colors)};38;{_code(text, colors)}m"


def _code(color: int, colors: int) -> str:
    red, green, blue = color >> 16 & 255, color >> 8 & 255, color & 255
    if colors > 256:
        return f"2;{red};{green};{blue}"
    cube = [0 if part < 48 else 1 if part < 115 else (part - 35) // 40 for part in (red, green, blue)]
    return f"5;{16 + 36 * cube[0] + 6 * cube[1] + cube[2]}"
