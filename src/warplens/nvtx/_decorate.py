"""Wraps functions for `@annotate(...)`.

The binding calls it when a decorator is applied, not per call.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from warplens.nvtx._binding import annotate, annotated_function, wrap

# Flags of code objects (inspect.CO_*); inspect itself is too heavy to import here.
_GENERATOR, _COROUTINE, _ITERABLE_COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x100, 0x200


def decorate(annotation: annotate, func: Any) -> Any:
    """`func` so that each call is a range; raises TypeError if it cannot be called."""
    if isinstance(func, (staticmethod, classmethod)):
        return type(func)(decorate(annotation, func.__func__))
    if not callable(func):
        raise TypeError(f"@annotate() decorates functions, not {type(func).__name__}")
    flags = _code_flags(func)
    if flags & (_COROUTINE | _ITERABLE_COROUTINE):
        return _coroutine(annotation, func)
    if flags & _ASYNC_GENERATOR:
        return _async_generator(annotation, func)
    if flags & _GENERATOR:
        return _generator(annotation, func)
    return functools.update_wrapper(wrap(annotation, func, _name(func)), func)


def _name(func: Any) -> str:
    inner = _innermost(func)
    name = getattr(func, "__name__", None) or getattr(inner, "__name__", None)
    return str(name or type(inner).__name__)


def _innermost(func: Any) -> Any:
    while isinstance(func, functools.partial):
        func = func.func
    return func


def _code_flags(func: Any) -> int:
    inner = _innermost(func)
    code = getattr(getattr(inner, "__func__", inner), "__code__", None)
    return int(getattr(code, "co_flags", 0))


# These are interrupted and continue, so the range is entered from code of their kind: the binding then takes it for one of
# the task, or of the generator, and not of the thread.


def _range(annotation: annotate, func: Any) -> annotate:
    arguments = annotation.__reduce__()[1]
    return annotate(_name(func) if arguments[0] is None else arguments[0], *arguments[1:])


def _like(func: Any, annotated: Any) -> Any:
    """`annotated` with the looks of `func`.

    Its code too, for a generator's task has the code's name.
    """
    name = _name(func)
    names = {"co_name": name}
    if sys.version_info >= (3, 11):
        names["co_qualname"] = str(getattr(func, "__qualname__", name))
    annotated.__code__ = annotated.__code__.replace(**names)
    return functools.update_wrapper(annotated, func)


def _coroutine(annotation: annotate, func: Callable[..., Coroutine[Any, Any, Any]]) -> Any:
    around = _range(annotation, func)

    async def annotated(*args: Any, **kwargs: Any) -> Any:
        with around:
            return await func(*args, **kwargs)

    return _like(func, annotated)


def _generator(annotation: annotate, func: Callable[..., Generator[Any, Any, Any]]) -> Any:
    around = _range(annotation, func)

    def annotated(*args: Any, **kwargs: Any) -> Generator[Any, Any, Any]:
        with around:
            return (yield from func(*args, **kwargs))

    return _like(func, annotated)


def _async_generator(annotation: annotate, func: Callable[..., AsyncGenerator[Any, Any]]) -> Any:
    around = _range(annotation, func)

    async def annotated(*args: Any, **kwargs: Any) -> AsyncGenerator[Any, Any]:
        inner = func(*args, **kwargs)
        with around:
            # What `yield from` does for plain generators, spelled out: values, exceptions and close pass through.
            step = inner.__anext__()
            while True:
                try:
                    item = await step
                except StopAsyncIteration:
                    return
                try:
                    sent = yield item
                except GeneratorExit:
                    await inner.aclose()
                    raise
                except BaseException as error:
                    step = inner.athrow(error)
                else:
                    step = inner.__anext__() if sent is None else inner.asend(sent)

    return _like(func, annotated)


def reduce(wrapper: Any) -> Any:
    """How a decorated function pickles: by reference, as the function would.

    By value for cloudpickle.

    cloudpickle sends functions of __main__ and nested functions by value (Ray, Dask, joblib), which a reference breaks.
    """
    name: str = wrapper.__qualname__
    if "cloudpickle" in str(sys._getframe(1).f_globals.get("__name__")) and not _importable(wrapper, name):
        return decorate, (wrapper.__annotation__, wrapper.__wrapped__)
    return name


def _importable(wrapper: Any, name: str) -> bool:
    if wrapper.__module__ == "__main__":
        return False
    value: Any = sys.modules.get(wrapper.__module__)
    for part in name.split("."):
        value = getattr(value, part, None)
    return value is wrapper


__all__ = ["annotated_function", "decorate", "reduce"]
