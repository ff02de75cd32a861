"""Start/end ranges for `with` blocks, and locks that record which thread waits for them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any, Literal

from warplens.nvtx._active import active

if TYPE_CHECKING:
    from typing_extensions import Self


class start_end_range:
    """A start/end range around a with block: it may overlap others and end on another thread.

    Takes the arguments of `annotate`. A payload set within the block (`with … as r: r.payload = …`) is recorded with the end.
    One object may be entered again, also before it was left; the innermost ends first.
    """

    __slots__ = ("_arguments", "_late", "_open")

    def __init__(
        self,
        message: str | None = None,
        color: str | int | None = None,
        domain: str | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> None:
        self._arguments = (message, color, domain, category, payload)
        self._open: list[Any] = []
        self._late: object = None

    @property
    def payload(self) -> object:
        """The payload; set within the block, that of the end."""
        return self._late if self._late is not None else self._arguments[4]

    @payload.setter
    def payload(self, value: object) -> None:
        self._late = value

    def __enter__(self) -> Self:
        if self._late is not None:
            self._arguments = (*self._arguments[:4], self._late)
            self._late = None
        self._open.append(active.start_range(*self._arguments))
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> Literal[False]:
        late, self._late = self._late, None
        active.end_range(self._open.pop(), payload=late)
        return False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def __repr__(self) -> str:
        return f"start_end_range{self._arguments!r}"


start_end_range.__module__ = "warplens.nvtx"


class Lock:
    """A lock whose waiting and holding tools can see, through a synchronisation object of NVTX.

    Args:
        name: what tools call it.
        lock: the lock to watch: anything with `acquire` and `release` (`threading.RLock()`, a semaphore); a new
            `threading.Lock` by default.
        domain: name of the domain that it belongs to.
    """

    __slots__ = ("_lock", "_sync")

    def __init__(self, name: str, lock: Any = None, domain: str | None = None) -> None:
        self._lock = lock if lock is not None else threading.Lock()
        self._sync = active.get_domain(domain).create_sync(name)

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """As `threading.Lock.acquire`; timeout in seconds."""
        self._sync.acquire_start()
        done = False
        try:
            done = bool(
                self._lock.acquire(blocking) if timeout == -1 else self._lock.acquire(blocking, timeout)
            )
        finally:
            if done:
                self._sync.acquire_success()
            else:
                self._sync.acquire_failed()
        return done

    def release(self) -> None:
        """As `threading.Lock.release`."""
        self._sync.releasing()
        self._lock.release()

    def locked(self) -> bool:
        """True while somebody holds it; AttributeError where the watched lock cannot tell."""
        return bool(self._lock.locked())

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> None:
        self.release()

    def __repr__(self) -> str:
        return f"<Lock {self._sync.name!r} around {self._lock!r}>"


Lock.__module__ = "warplens.nvtx"
