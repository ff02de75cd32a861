"""Types of the native binding (native/bindings)."""

from collections.abc import Callable
from types import TracebackType
from typing import Any, Literal, ParamSpec, TypeVar, final

from typing_extensions import Self

_P = ParamSpec("_P")
_R = TypeVar("_R")

class annotate:
    def __init__(
        self,
        message: str | None = None,
        color: str | int | None = None,
        domain: str | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None, /
    ) -> Literal[False]: ...
    def __call__(self, func: Callable[_P, _R]) -> Callable[_P, _R]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

class Profile:
    def __init__(self, linenos: bool = True, annotate_cfuncs: bool = True) -> None: ...
    @property
    def linenos(self) -> bool: ...
    @property
    def annotate_cfuncs(self) -> bool: ...
    def enable(self) -> None: ...
    def disable(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self, exc_type: type[BaseException] | None, exc_value: BaseException | None, traceback: TracebackType | None, /
    ) -> Literal[False]: ...

@final
class RegisteredString:
    @property
    def string(self) -> str: ...
    @property
    def domain(self) -> Domain: ...

@final
class EventAttributes:
    @property
    def message(self) -> RegisteredString | None: ...
    @message.setter
    def message(self, value: str | RegisteredString | None) -> None: ...
    color: str | int | None
    @property
    def category(self) -> int: ...
    @category.setter
    def category(self, value: str | int | None) -> None: ...
    payload: object

@final
class RangeId: ...

@final
class annotated_function:
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    @property
    def __annotation__(self) -> annotate: ...

@final
class Domain:
    def __new__(cls, name: str | None = None) -> Self: ...
    @property
    def name(self) -> str | None: ...
    def get_registered_string(self, string: str, /) -> RegisteredString: ...
    def get_category_id(self, name: str, /) -> int: ...
    def get_event_attributes(
        self,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> EventAttributes: ...
    def set_event_attributes(
        self,
        attributes: EventAttributes,
        *,
        message: str | RegisteredString | None = ...,
        color: str | int | None = ...,
        category: str | int | None = ...,
        payload: object = ...,
    ) -> None: ...
    def mark(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: str | RegisteredString | None = ...,
        color: str | int | None = ...,
        category: str | int | None = ...,
        payload: object = ...,
    ) -> None: ...
    def push_range(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: str | RegisteredString | None = ...,
        color: str | int | None = ...,
        category: str | int | None = ...,
        payload: object = ...,
    ) -> int | None: ...
    def pop_range(self) -> int | None: ...
    def start_range(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: str | RegisteredString | None = ...,
        color: str | int | None = ...,
        category: str | int | None = ...,
        payload: object = ...,
    ) -> int: ...
    def end_range(self, range_id: int) -> None: ...

def mark(
    message: str | None = None,
    color: str | int | None = "blue",
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> None: ...
def push_range(
    message: str | None = None,
    color: str | int | None = "blue",
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> int | None: ...
def pop_range(domain: str | None = None) -> int | None: ...
def start_range(
    message: str | None = None,
    color: str | int | None = None,
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> RangeId | None: ...
def end_range(range_id: RangeId | None) -> None: ...
def get_domain(name: str | None = None) -> Domain: ...
def attached() -> bool: ...
def look_again() -> bool: ...
def wrap(annotation: annotate, func: Callable[_P, _R], name: str, /) -> Callable[_P, _R]: ...
