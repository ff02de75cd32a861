"""How much is tried of what has no end or is much alike: a part each time, all of it by `make test-all` (WARPLENS_THOROUGH=1)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import pytest

THOROUGH = os.environ.get("WARPLENS_THOROUGH", "0") not in ("", "0")


def examples(number: int) -> int:
    """Return how many examples of `number` are tried: all, or a tenth, of few a few."""
    return number if THOROUGH else max(min(number, 8), number // 10)


def alike(values: Iterable[Any], *kept: Any) -> list[Any]:
    """Return parameters for one test, of which only those that are kept run each time. A value that is a tuple: in a `pytest.param`."""
    return [value if value in kept else _exhaustive(value) for value in values]


def _exhaustive(value: Any) -> Any:
    if isinstance(value, type(pytest.param())):
        return pytest.param(*value.values, marks=[*value.marks, pytest.mark.exhaustive], id=value.id)
    return pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=pytest.mark.exhaustive)


def few(values: Iterable[Any], number: int = 1, *, step: int = 0) -> list[Any]:
    """Return parameters for one test, of which only the first few run each time, or each `step`-th."""
    listed = list(values)
    return alike(listed, *(listed[::step] if step else listed[:number]))
