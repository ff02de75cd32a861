"""Pictures that tests compare: reads and writes PNG with the standard library, and says how much of two differs."""

from __future__ import annotations

import os
import struct
import zlib
from pathlib import Path

import numpy as np

from warplens.arrays import Float64Array

GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "view"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_FAR = 48  # of 255, in any colour: more than smooth edges differ
_COMMON = 0.9  # of the larger picture that both must have
_BLOCK = (
    4  # pixels: a picture is compared by the means of squares, for a glyph or an edge may lie a pixel beside
)


def pixels(png: bytes) -> tuple[int, int, bytes]:
    """Return width, height and the RGB bytes of a PNG with 8 bits a channel, without interlace, as browsers write them."""
    assert png.startswith(_SIGNATURE)
    at, packed, width, height, channels = len(_SIGNATURE), b"", 0, 0, 0
    while at < len(png):
        (length,), kind = struct.unpack_from(">I", png, at), png[at + 4 : at + 8]
        content = png[at + 8 : at + 8 + length]
        if kind == b"IHDR":
            width, height, bits, color, _, _, interlace = struct.unpack(">IIBBBBB", content)
            assert (bits, interlace) == (8, 0)
            channels = {2: 3, 6: 4}[color]
        elif kind == b"IDAT":
            packed += content
        at += 12 + length
    rows = _unfiltered(zlib.decompress(packed), width * channels, height, channels)
    if channels == 3:
        return width, height, bytes(rows)
    kept = bytearray(width * height * 3)
    for channel in range(3):
        kept[channel::3] = rows[channel::4]
    return width, height, bytes(kept)


def _unfiltered(raw: bytes, stride: int, height: int, step: int) -> bytearray:
    out, above = bytearray(), bytes(stride)
    for row in range(height):
        kind, line = (
            raw[row * (stride + 1)],
            bytearray(raw[row * (stride + 1) + 1 : (row + 1) * (stride + 1)]),
        )
        if kind == 1:
            for i in range(step, stride):
                line[i] = (line[i] + line[i - step]) & 255
        elif kind == 2:
            line = bytearray((a + b) & 255 for a, b in zip(line, above, strict=True))
        elif kind == 3:
            for i in range(stride):
                line[i] = (line[i] + ((line[i - step] if i >= step else 0) + above[i]) // 2) & 255
        elif kind == 4:
            for i in range(stride):
                left, up, corner = (
                    (line[i - step], above[i], above[i - step]) if i >= step else (0, above[i], 0)
                )
                guess = left + up - corner
                far = (abs(guess - left), abs(guess - up), abs(guess - corner))
                line[i] = (
                    line[i] + (left if far[0] == min(far) else up if far[1] == min(far) else corner)
                ) & 255
        out += line
        above = bytes(line)
    return out


def kept(name: str, picture: bytes) -> bytes:
    """Return the picture of that name that is held to; WARPLENS_PICTURES=keep keeps this one instead.."""
    path = GOLDEN / name
    if os.environ.get("WARPLENS_PICTURES") == "keep":
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(picture)
    assert path.exists(), f"there is no picture {name}: WARPLENS_PICTURES=keep keeps this one"
    return path.read_bytes()


def differing(before: bytes, after: bytes, out: Path) -> float:
    """Return the share of two pictures that differs, 0 to 1; both go beside `out` where it is not nothing.

    Other fonts move the edges of the page by some pixels: what both have is compared, which must be nearly all.
    """
    old, new = _array(before), _array(after)
    height, width = (min(*sides) for sides in zip(old.shape[:2], new.shape[:2], strict=True))
    most = max(old.shape[0] * old.shape[1], new.shape[0] * new.shape[1])
    far = np.abs(_means(old, height, width) - _means(new, height, width)).max(axis=2) > _FAR
    share = float(far.mean()) if height * width >= _COMMON * most else 1.0
    if share > 0:
        out.write_bytes(after)
        out.with_suffix(".before.png").write_bytes(before)
    return share


def _array(png: bytes) -> Float64Array:
    width, height, rows = pixels(png)
    return np.frombuffer(rows, np.uint8).reshape(height, width, 3).astype(np.float64)


def _means(whole: Float64Array, height: int, width: int) -> Float64Array:
    high, wide = height // _BLOCK, width // _BLOCK
    found: Float64Array = (
        whole[: high * _BLOCK, : wide * _BLOCK].reshape(high, _BLOCK, wide, _BLOCK, 3).mean(axis=(1, 3))
    )
    return found
