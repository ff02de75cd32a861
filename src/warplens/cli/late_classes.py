"""Lets dataclasses of ours become such when they are first used, in a process that uses few of those that it loads.

`dataclass` writes and compiles the methods of a class while its module loads: 0.8 ms for each. The launcher of a recording
loads 30 of them before its program starts, and the child that converts a short run 90.
"""

from __future__ import annotations

import dataclasses
from threading import RLock
from typing import Any

_OURS = "warplens."
_FIELDS = "__dataclass_fields__"
_dataclass: Any = dataclasses.dataclass
_making = RLock()


def make_late() -> None:
    """Make `dataclass` late for modules of ours that are loaded from now on. Slots are left out: they need another class."""
    dataclasses.dataclass = _late


def _late(cls: Any = None, /, **options: Any) -> Any:
    if cls is None:
        return lambda cls: _late(cls, **options)
    if not cls.__module__.startswith(_OURS) or "__init__" in cls.__dict__:
        return _dataclass(cls, **options)
    options.pop("slots", None)

    def make() -> None:
        with _making:  # several threads convert
            if cls.__dict__.get("__init__") is begin:
                del cls.__init__
                delattr(cls, _FIELDS)
                _dataclass(cls, **options)

    def begin(self: Any, /, *args: Any, **named: Any) -> None:
        make()
        cls.__init__(self, *args, **named)

    cls.__init__ = begin
    setattr(cls, _FIELDS, _Fields(cls, make))
    return cls


class _Fields:
    """The fields of a class that is no dataclass yet. A look at them, by `fields()` or a subclass, makes it one."""

    def __init__(self, cls: Any, make: Any) -> None:
        self._cls, self._make = cls, make

    def __get__(self, instance: object, owner: Any) -> Any:
        self._make()
        return getattr(self._cls, _FIELDS)
