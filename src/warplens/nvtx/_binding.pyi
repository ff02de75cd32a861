"""Types of the native binding (native/bindings)."""

from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Literal, ParamSpec, SupportsFloat, SupportsIndex, TypeVar, final, overload

from typing_extensions import Self

from warplens.nvtx._counters import CounterSemantics
from warplens.nvtx._enums import CounterNoValueReason, PredefinedScope, TimestampType
from warplens.nvtx._ranges import start_end_range

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
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...
    def __call__(self, func: Callable[_P, _R]) -> Callable[_P, _R]: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    @property
    def domain(self) -> Domain: ...
    @property
    def attributes(self) -> EventAttributes: ...
    payload: object

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
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
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
    def pop_range(
        self,
        *,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> int | None: ...
    def start_range(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: str | RegisteredString | None = ...,
        color: str | int | None = ...,
        category: str | int | None = ...,
        payload: object = ...,
    ) -> int: ...
    def end_range(
        self,
        range_id: int,
        *,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> None: ...
    def annotate(
        self,
        message: str | RegisteredString | EventAttributes | None = None,
        color: str | int | None = None,
        *,
        category: str | int | None = None,
        payload: object = None,
    ) -> annotate: ...
    def start_end_range(
        self,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        *,
        category: str | int | None = None,
        payload: object = None,
    ) -> start_end_range: ...
    @overload
    def get_counter(
        self,
        name: str,
        dtype: type[int],
        *,
        description: str | None = None,
        scope: str | PredefinedScope | None = None,
        semantics: CounterSemantics | None = None,
        time_domain: TimestampType | None = None,
    ) -> Int64Counter: ...
    @overload
    def get_counter(
        self,
        name: str,
        dtype: type[float],
        *,
        description: str | None = None,
        scope: str | PredefinedScope | None = None,
        semantics: CounterSemantics | None = None,
        time_domain: TimestampType | None = None,
    ) -> Float64Counter: ...
    @overload
    def get_counter(
        self,
        name: str,
        dtype: object,
        *,
        description: str | None = None,
        scope: str | PredefinedScope | None = None,
        semantics: CounterSemantics | None = None,
        time_domain: TimestampType | None = None,
    ) -> Any: ...  # an Int64Counter, Float64Counter or ExtCounter, as the NumPy dtype says
    def get_timestamp(self) -> int: ...
    def create_resource(self, name: str, identifier: int, kind: str | int = "pointer") -> Resource: ...
    def create_sync(self, name: str) -> SyncObject: ...
    def name_category(self, id: int, name: str) -> None: ...
    def destroy(self) -> bool: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

class Counter:
    @property
    def name(self) -> str: ...
    @property
    def domain(self) -> Domain: ...
    @property
    def dtype(self) -> Any: ...
    @property
    def description(self) -> str | None: ...
    @property
    def scope(self) -> str | PredefinedScope | None: ...
    @property
    def semantics(self) -> CounterSemantics | None: ...
    @property
    def time_domain(self) -> TimestampType: ...
    def sample_no_value(self, reason: CounterNoValueReason, /) -> None: ...
    def batch_submit(self, values: Iterable[Any], timestamps: Iterable[int]) -> None: ...

@final
class Int64Counter(Counter):
    def sample(self, value: SupportsIndex, /) -> None: ...

@final
class Float64Counter(Counter):
    def sample(self, value: SupportsFloat | SupportsIndex, /) -> None: ...

@final
class ExtCounter(Counter):
    def sample(self, value: Any, /) -> None: ...

@final
class Resource:
    @property
    def name(self) -> str: ...
    @property
    def domain(self) -> Domain: ...
    def destroy(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

@final
class SyncObject:
    @property
    def name(self) -> str: ...
    @property
    def domain(self) -> Domain: ...
    def acquire_start(self) -> None: ...
    def acquire_failed(self) -> None: ...
    def acquire_success(self) -> None: ...
    def releasing(self) -> None: ...
    def destroy(self) -> None: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> Literal[False]: ...

@final
class int32(int):
    def __new__(cls, value: SupportsIndex) -> Self: ...

@final
class uint32(int):
    def __new__(cls, value: SupportsIndex) -> Self: ...

@final
class int64(int):
    def __new__(cls, value: SupportsIndex) -> Self: ...

@final
class uint64(int):
    def __new__(cls, value: SupportsIndex) -> Self: ...

@final
class float32(float):
    def __new__(cls, value: SupportsFloat | SupportsIndex) -> Self: ...

@final
class float64(float):
    def __new__(cls, value: SupportsFloat | SupportsIndex) -> Self: ...

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
def pop_range(
    domain: str | None = None,
    *,
    message: str | None = None,
    color: str | int | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> int | None: ...
def start_range(
    message: str | None = None,
    color: str | int | None = None,
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> RangeId | None: ...
def end_range(
    range_id: RangeId | None,
    *,
    message: str | None = None,
    color: str | int | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> None: ...
def get_domain(name: str | None = None) -> Domain: ...
def name_category(id: int, name: str, domain: str | None = None) -> None: ...
def name_thread(name: str, tid: int | None = None) -> None: ...
def name_cuda_device(device: object, name: str) -> None: ...
def name_cuda_stream(stream: object, name: str) -> None: ...
def name_cuda_event(event: object, name: str) -> None: ...
def name_cuda_context(context: object, name: str) -> None: ...
def attached() -> bool: ...
def mute() -> None: ...
def look_again() -> bool: ...
def emit_operators(path: str, /) -> int: ...
def stop_operators(number: int, /) -> None: ...
def wrap(annotation: annotate, func: Callable[_P, _R], name: str, /) -> Callable[_P, _R]: ...
