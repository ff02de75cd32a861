"""Reads the list of Python functions to trace (nsys's format) and writes it for the agents."""

from __future__ import annotations

import json
import string
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warplens.disk.files import write
from warplens.errors import UsageError

FILE = "python_functions.txt"  # kFunctionsFile in format.h
_KEYS = {"module", "functions", "color", "domain"}
_SHAPE = 'write [{"module": "package.module", "color": "green", "functions": ["function", "Class.method"]}]'
_COLORS = {
    "black": 0x000000,
    "blue": 0x0000FF,
    "brown": 0xA52A2A,
    "cyan": 0x00FFFF,
    "darkgreen": 0x006400,
    "gray": 0x808080,
    "green": 0x008000,
    "grey": 0x808080,
    "lime": 0x00FF00,
    "magenta": 0xFF00FF,
    "navy": 0x000080,
    "olive": 0x808000,
    "orange": 0xFFA500,
    "pink": 0xFFC0CB,
    "purple": 0x800080,
    "rapids": 0x7400FF,
    "red": 0xFF0000,
    "teal": 0x008080,
    "white": 0xFFFFFF,
    "yellow": 0xFFFF00,
}


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """A function to trace: its module, its dotted name in it, and its colour as 0xAARRGGBB."""

    module: str
    name: str
    color: int | None = None


def read_functions(path: Path) -> tuple[PythonFunction, ...]:
    """Return the functions that a file names.

    UsageError for one that cannot be read, or is not in nsys's format.
    """
    try:
        given = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise _wrong(path, f"it cannot be read ({error.strerror}).") from error
    except ValueError as error:  # no JSON, or no UTF-8
        raise _wrong(path, f"it is not JSON ({error}); {_SHAPE}.") from error
    entries = [given] if isinstance(given, dict) else given
    if not isinstance(entries, list) or not entries:
        raise _wrong(path, f"it is not a list of modules; {_SHAPE}.")
    return tuple(
        function for number, entry in enumerate(entries, 1) for function in _entry(path, number, entry)
    )


def write_functions(path: Path, spool: Path) -> None:
    """Write the functions of `path` down in the spool directory, for the agents."""
    lines = [
        f"{f.module}\t{'' if f.color is None else format(f.color, '08x')}\t{f.name}\n"
        for f in read_functions(path)
    ]
    write(spool / FILE, "".join(lines))


def _wrong(path: Path, what: str) -> UsageError:
    return UsageError(f"--python-functions-trace {path}: {what}")


def _entry(path: Path, number: int, entry: Any) -> list[PythonFunction]:
    if not isinstance(entry, dict):
        raise _wrong(path, f"entry {number} is not an object; {_SHAPE}.")
    unknown = sorted(key for key in entry if key not in _KEYS and not key.startswith("_"))
    if unknown:
        raise _wrong(
            path, f'entry {number}: unknown key "{unknown[0]}"; there are {", ".join(sorted(_KEYS))}.'
        )
    module, names = entry.get("module"), entry.get("functions")
    if not isinstance(module, str) or not _is_name(module):
        raise _wrong(
            path, f'entry {number}: "module" must be the name of a module, as in an import statement.'
        )
    if not isinstance(names, list) or not names or not all(map(_is_name, names)):
        raise _wrong(
            path, f'entry {number}: "functions" must be a list of names, as "function" or "Class.method".'
        )
    color = _color(path, number, entry["color"]) if entry.get("color") is not None else None
    return [PythonFunction(module, name, color) for name in names]


def _is_name(text: object) -> bool:
    return isinstance(text, str) and all(part.isidentifier() for part in text.split("."))


def _color(path: Path, number: int, color: Any) -> int:
    if isinstance(color, int) and not isinstance(color, bool) and 0 <= color <= 0xFFFFFFFF:
        return color if color > 0xFFFFFF else 0xFF000000 | color
    text = str(color).lower()
    if isinstance(color, str) and text in _COLORS:
        return 0xFF000000 | _COLORS[text]
    digits = text.removeprefix("#").removeprefix("0x")
    if isinstance(color, str) and len(digits) == 6 and set(digits) <= set(string.hexdigits):
        return 0xFF000000 | int(digits, 16)
    raise _wrong(
        path, f'entry {number}: unknown color {color!r}; write one of {", ".join(_COLORS)}, or "#rrggbb".'
    )
