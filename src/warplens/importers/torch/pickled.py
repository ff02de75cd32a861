"""Reads pickles of plain values: numbers, texts, lists and dicts. Nothing in them is imported or called."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path
from typing import Any, NoReturn

from warplens.errors import ReportError

_LARGEST = 4 << 30  # bytes
_HEAD = 4096


class PlainUnpickler(pickle.Unpickler):
    """Refuses every name: without one a pickle can make no object and call no function."""

    def find_class(self, module_name: str, global_name: str, /) -> NoReturn:
        """Raise UnpicklingError."""
        raise pickle.UnpicklingError(f"it names {module_name}.{global_name}, and plain values need no names")


def load(path: Path) -> Any:
    """Return the value in a file; ReportError for one that is broken, or holds more than plain values."""
    if path.stat().st_size > _LARGEST:
        raise ReportError(f"{path} is larger than 4 GiB.")
    collects = gc.isenabled()
    gc.disable()  # millions of values come and none goes: collections would take a third of the time
    with open(path, "rb") as file:
        try:
            return PlainUnpickler(file).load()
        except (pickle.UnpicklingError, EOFError, ValueError, TypeError, AttributeError) as error:
            raise ReportError(f"{path} is broken: {error}.") from error
        except (LookupError, OverflowError, MemoryError, RecursionError) as error:
            raise ReportError(f"{path} is broken: {type(error).__name__}.") from error
        finally:
            if collects:
                gc.enable()


def begins_with_keys(path: Path, *keys: bytes) -> bool:
    """Say whether the file is a pickle whose first bytes hold one of these keys. Raises OSError."""
    with open(path, "rb") as file:
        head = file.read(_HEAD)
    return head.startswith(b"\x80") and any(key in head for key in keys)
