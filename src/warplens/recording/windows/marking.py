"""`warplens.capture()`: chooses what to capture of this program, in a run that waits for a start."""

from __future__ import annotations

import os
from _thread import RLock

from warplens.recording.windows.profiler_api import tell_run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, ParamSpec, TypeVar, overload

    P = ParamSpec("P")
    R = TypeVar("R")

_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = (
    0x80,
    0x20,
    0x200,
)  # CO_… of the inspect module, which is slow to import
_lock = RLock()
_depth = 0


class Capture:
    """The result of `warplens.capture()`: for a `with` block, or as a decorator.

    It can be used again, and inside of itself.
    """

    def __enter__(self) -> Capture:
        global _depth
        with _lock:
            _depth += 1
            if _depth == 1:
                tell_run("start")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        global _depth
        with _lock:
            if _depth == 0:
                return  # begun before a fork: the parent ends it
            _depth -= 1
            if _depth == 0:
                tell_run("stop")

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """Return `function` so that it is captured whenever it runs.

        Coroutine functions and generators while they last.
        """
        return _decorated(self, function)


if TYPE_CHECKING:

    @overload
    def capture() -> Capture: ...
    @overload
    def capture(function: Callable[P, R]) -> Callable[P, R]: ...


def capture(function: Callable[..., Any] | None = None) -> Capture | Callable[..., Any]:
    """Capture a `with` block, or the decorated function, in all threads and processes of the run.

        with warplens.capture():
            train_step()

    It opens a window in a run of `warplens profile -c cudaProfilerApi`, or of `warplens launch`, and closes it at its end: that of
    the last one where several threads or nested blocks capture. In any other run, and without one, nothing happens. `record` is
    for programs that want to record themselves.
    """
    return Capture() if function is None else Capture()(function)


def _decorated(captured: Capture, function: Callable[..., Any]) -> Callable[..., Any]:
    from functools import wraps

    flags = getattr(getattr(function, "__code__", None), "co_flags", 0)
    if flags & _ASYNC_GENERATOR:
        raise TypeError(
            f"warplens.capture() cannot decorate the asynchronous generator {function!r}: put a `with` block into it."
        )

    @wraps(function)
    async def coroutine(*arguments: Any, **named: Any) -> Any:
        with captured:
            return await function(*arguments, **named)

    @wraps(function)
    def generator(*arguments: Any, **named: Any) -> Any:
        with captured:
            return (yield from function(*arguments, **named))

    @wraps(function)
    def plain(*arguments: Any, **named: Any) -> Any:
        with captured:
            return function(*arguments, **named)

    return coroutine if flags & _COROUTINE else generator if flags & _GENERATOR else plain


def _after_fork_in_child() -> None:
    """The blocks that the parent is in are its own."""
    global _lock, _depth
    _lock, _depth = RLock(), 0


os.register_at_fork(after_in_child=_after_fork_in_child)
