"""Parses colour arguments: names of PyPI `nvtx`, hexadecimal, and matplotlib's if it is installed."""

from __future__ import annotations

# Alpha is 0, as PyPI nvtx sends them; tools take that as opaque.
NAMES: dict[str, int] = {
    "blue": 0x0000FF,
    "cyan": 0x00FFFF,
    "darkgreen": 0x006400,
    "green": 0x008000,
    "orange": 0xFFA500,
    "purple": 0x800080,
    "rapids": 0x7400FF,
    "red": 0xFF0000,
    "white": 0xFFFFFF,
    "yellow": 0xFFFF00,
}

# Ready to be given as `color`, opaque.
RED, GREEN, BLUE = 0xFFFF0000, 0xFF00FF00, 0xFF0000FF
YELLOW, CYAN, MAGENTA = 0xFFFFFF00, 0xFF00FFFF, 0xFFFF00FF
ORANGE, PURPLE, WHITE, BLACK = 0xFFFFA500, 0xFF800080, 0xFFFFFFFF, 0xFF000000


def rgb(red: int, green: int, blue: int) -> int:
    """The opaque colour 0xFFRRGGBB of three parts from 0 to 255; ValueError for others."""
    return argb(255, red, green, blue)


def argb(alpha: int, red: int, green: int, blue: int) -> int:
    """The colour 0xAARRGGBB of four parts from 0 to 255 (alpha 255 is opaque).

    ValueError for others.
    """
    number = 0
    for name, part in (("alpha", alpha), ("red", red), ("green", green), ("blue", blue)):
        if not 0 <= part <= 255:
            raise ValueError(f"{name} must be from 0 to 255, not {part}")
        number = number << 8 | int(part)
    return number


def color_to_hex(color: object = None) -> int:
    """The colour as 0xAARRGGBB; blue for None.

    Raises:
        TypeError: `color` is no int, no known name and no hexadecimal colour, and matplotlib does not know it either.
    """
    if color is None:
        return NAMES["blue"]
    if isinstance(color, int):
        return color & 0xFFFFFFFF
    if isinstance(color, str):
        if color in NAMES:
            return NAMES[color]
        if color.startswith("#"):
            number = _hexadecimal(color[1:])
            if number is not None:
                return number
    number = _matplotlib(color)
    if number is not None:
        return number
    raise TypeError(
        f"unknown color {color!r}: use one of {', '.join(NAMES)}, '#rrggbb', or an int 0xAARRGGBB"
        " (matplotlib's colors work where matplotlib is installed)"
    )


def _hexadecimal(digits: str) -> int | None:
    """#rgb, #rrggbb or #rrggbbaa, the forms that matplotlib and CSS share."""
    if not all(d in "0123456789abcdefABCDEF" for d in digits):
        return None
    if len(digits) == 3:
        digits = "".join(d + d for d in digits)
    if len(digits) == 6:
        return 0xFF000000 | int(digits, 16)
    if len(digits) == 8:
        return int(digits[6:] + digits[:6], 16)
    return None


def _matplotlib(color: object) -> int | None:
    # Costs the program a second, once, as with PyPI nvtx; only for colours that would be a TypeError without it.
    try:
        import matplotlib.colors
    except ImportError:
        return None
    try:
        red, green, blue, alpha = matplotlib.colors.to_rgba(color)
    except (ValueError, TypeError):
        return None
    number = 0
    for part in (alpha, red, green, blue):
        number = number << 8 | round(part * 255)
    return number
