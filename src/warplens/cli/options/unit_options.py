"""Parses the options of units behind their name.

`cuda_gpu_kern_sum:base`, `collapsed:lines:kind=native`.
"""

from __future__ import annotations

from typing import Any

from warplens.catalog import Option, Unit
from warplens.errors import UsageError


def unit_options(unit: Unit, arguments: list[str]) -> dict[str, Any]:
    """Read the arguments behind a unit's name as values of its options.

    Raises UsageError, which lists what the unit takes.
    """
    known = {
        option.name: option for option in unit.options if isinstance(option.value, bool | int | float | str)
    }
    result: dict[str, Any] = {}
    for argument in arguments:
        name, equals, value = argument.partition("=")
        option = known.get(name.replace("-", "_"))
        # as nsys has it: `:base` switches something on, `:rows=20` says how much
        if option is None or isinstance(option.value, bool) == bool(equals):
            takes = ", ".join(_spelled(option) for option in known.values()) or "none"
            raise UsageError(f"{unit.id} has no argument {argument!r}; it takes: {takes}.")
        try:
            result[option.name] = type(option.value)(value) if equals else True
        except ValueError:
            raise UsageError(f"{unit.id} takes a number for {name}=…, not {value!r}.") from None
    return result


def _spelled(option: Option) -> str:
    return option.name.replace("_", "-") + ("" if isinstance(option.value, bool) else "=…")
