"""Computes an answer once for each open report: many rules need the same one."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from warplens.report.report import Report

P = ParamSpec("P")
T = TypeVar("T")


def once(compute: Callable[Concatenate[Report, P], T]) -> Callable[Concatenate[Report, P], T]:
    """Keep the answers of `compute` while their report lives; the other arguments are hashable.

    All callers get the same object, so they must not change it. Errors are not kept.
    """
    kept: WeakKeyDictionary[Report, dict[Hashable, T]] = WeakKeyDictionary()

    @wraps(compute)
    def answer(report: Report, /, *args: P.args, **kwargs: P.kwargs) -> T:
        known = kept.setdefault(report, {})
        key = (args, tuple(sorted(kwargs.items())))
        if key not in known:
            known[key] = compute(report, *args, **kwargs)
        return known[key]

    return answer
