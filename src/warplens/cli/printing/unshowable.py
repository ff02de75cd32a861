"""Escapes characters that standard output cannot take, for example in the C locale.

Each is written as the escape that JSON has for it.
"""

from __future__ import annotations

import codecs
import io
import sys

_NAME = "warplens-escape"


def write_escapes() -> None:
    r"""Write `\u2192` where a stream has no arrow, and a path's odd byte likewise.

    Otherwise an error would end a table in its middle.
    """
    codecs.register_error(_NAME, _escaped)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors=_NAME)


def _escaped(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    units = error.object[error.start : error.end].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2)), error.end
