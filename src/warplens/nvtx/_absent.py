"""The names of `warplens.nvtx`, recording nothing: no binding for this interpreter, or NVTX_DISABLE is set."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal, SupportsFloat, SupportsIndex, TypeVar

if TYPE_CHECKING:
    from typing_extensions import Self

    from warplens.nvtx._counters import CounterSemantics
    from warplens.nvtx._ranges import start_end_range

_Function = TypeVar("_Function")


class annotate:
    """A with block or decorator that does nothing; a decorated function is the function itself."""

    __slots__ = ("_arguments", "_attributes", "payload")

    def __init__(
        self,
        message: str | None = None,
        color: str | int | None = None,
        domain: str | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> None:
        self._arguments = (message, color, domain, category, payload)
        self._attributes: EventAttributes | None = None
        self.payload = payload

    @property
    def domain(self) -> Domain:
        """The domain that the range would belong to."""
        return get_domain(self._arguments[2])

    @property
    def attributes(self) -> EventAttributes:
        """The attributes that the range would have."""
        if self._attributes is None:
            message, color, _, category, payload = self._arguments
            self._attributes = self.domain.get_event_attributes(message, color, category, payload)
        return self._attributes

    def __enter__(self) -> annotate:
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> Literal[False]:
        return False

    def __call__(self, func: _Function) -> _Function:
        return func

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def __repr__(self) -> str:
        return f"annotate{self._arguments!r}"


annotate.__module__ = "warplens.nvtx"


def mark(
    message: str | None = None,
    color: str | int | None = "blue",
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> None:
    """Nothing."""


def push_range(
    message: str | None = None,
    color: str | int | None = "blue",
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> int | None:
    """Nothing; no depth."""
    return None


def pop_range(
    domain: str | None = None,
    *,
    message: str | None = None,
    color: str | int | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> int | None:
    """Nothing; no depth."""
    return None


def start_range(
    message: str | None = None,
    color: str | int | None = None,
    domain: str | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> object:
    """Nothing; end_range() takes the None."""
    return None


def end_range(
    range_id: object,
    *,
    message: str | None = None,
    color: str | int | None = None,
    category: str | int | None = None,
    payload: object = None,
) -> None:
    """Nothing."""


def name_category(id: int, name: str, domain: str | None = None) -> None:
    """Nothing."""


def name_thread(name: str, tid: int | None = None) -> None:
    """Nothing."""


def name_cuda_device(device: object, name: str) -> None:
    """Nothing."""


def name_cuda_stream(stream: object, name: str) -> None:
    """Nothing."""


def name_cuda_event(event: object, name: str) -> None:
    """Nothing."""


def name_cuda_context(context: object, name: str) -> None:
    """Nothing."""


def attached() -> bool:
    """False: no tool can hear this."""
    return False


class Profile:
    """Annotates nothing."""

    __slots__ = ("annotate_cfuncs", "linenos")

    def __init__(self, linenos: bool = True, annotate_cfuncs: bool = True) -> None:
        self.linenos = linenos
        self.annotate_cfuncs = annotate_cfuncs

    def enable(self) -> None:
        """Nothing."""

    def disable(self) -> None:
        """Nothing."""

    def __enter__(self) -> Profile:
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> Literal[False]:
        return False


Profile.__module__ = "warplens.nvtx"


class RegisteredString:
    """A message of a domain."""

    __slots__ = ("domain", "string")

    def __init__(self, domain: Domain, string: str) -> None:
        self.domain = domain
        self.string = string

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RegisteredString) and (self.domain, self.string) == (other.domain, other.string)

    def __hash__(self) -> int:
        return hash(self.string)


class EventAttributes:
    """What an event would say; keeps what it is given."""

    __slots__ = ("_category", "_domain", "_message", "color", "payload")

    def __init__(self, domain: Domain) -> None:
        self._domain = domain
        self._message: RegisteredString | None = None
        self._category = 0
        self.color: str | int | None = None
        self.payload: object = None

    @property
    def message(self) -> RegisteredString | None:
        """The message, None where there is none; takes a str as well."""
        return self._message

    @message.setter
    def message(self, value: str | RegisteredString | None) -> None:
        self._message = RegisteredString(self._domain, value) if isinstance(value, str) else value

    @property
    def category(self) -> int:
        """The category's number, 0 for none; takes a name as well."""
        return self._category

    @category.setter
    def category(self, value: str | int | None) -> None:
        self._category = self._domain.get_category_id(value) if isinstance(value, str) else value or 0


_unset: Any = object()


class Domain:
    """A domain that nothing is recorded in; one object per name."""

    __slots__ = ("_categories", "_counters", "name")

    name: str | None
    _categories: dict[str, int]
    _counters: dict[Any, Counter]

    def __new__(cls, name: str | None = None) -> Domain:
        known = _domains.get(name)
        if known is None:
            known = super().__new__(cls)
            known.name = name
            known._categories = {}
            known._counters = {}
            known = _domains.setdefault(name, known)
        return known

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.name,)

    def get_registered_string(self, string: str, /) -> RegisteredString:
        """The message `string`."""
        return RegisteredString(self, string)

    def get_category_id(self, name: str, /) -> int:
        """The number of the category `name`; new names get the next number."""
        return self._categories.setdefault(name, len(self._categories) + 1)

    def get_event_attributes(
        self,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> EventAttributes:
        """What an event would say."""
        attributes = EventAttributes(self)
        self.set_event_attributes(attributes, message=message, color=color, category=category, payload=payload)
        return attributes

    def set_event_attributes(
        self,
        attributes: EventAttributes,
        *,
        message: Any = _unset,
        color: Any = _unset,
        category: Any = _unset,
        payload: Any = _unset,
    ) -> None:
        """Changes the attributes that are given; the others stay."""
        given = {"message": message, "color": color, "category": category, "payload": payload}
        for name, value in given.items():
            if value is not _unset:
                setattr(attributes, name, value)

    def _update(self, attributes: EventAttributes | None, message: Any, color: Any, category: Any, payload: Any) -> None:
        if attributes is not None:
            self.set_event_attributes(attributes, message=message, color=color, category=category, payload=payload)

    def mark(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: Any = _unset,
        color: Any = _unset,
        category: Any = _unset,
        payload: Any = _unset,
    ) -> None:
        """Nothing, apart from changing `attributes`."""
        self._update(attributes, message, color, category, payload)

    def push_range(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: Any = _unset,
        color: Any = _unset,
        category: Any = _unset,
        payload: Any = _unset,
    ) -> int | None:
        """Nothing, apart from changing `attributes`; no depth."""
        self._update(attributes, message, color, category, payload)
        return None

    def pop_range(
        self,
        *,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> int | None:
        """Nothing; no depth."""
        return None

    def start_range(
        self,
        attributes: EventAttributes | None = None,
        *,
        message: Any = _unset,
        color: Any = _unset,
        category: Any = _unset,
        payload: Any = _unset,
    ) -> int:
        """Nothing, apart from changing `attributes`; 0, which end_range() takes."""
        self._update(attributes, message, color, category, payload)
        return 0

    def end_range(
        self,
        range_id: int,
        *,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> None:
        """Nothing."""

    def annotate(
        self,
        message: str | RegisteredString | EventAttributes | None = None,
        color: str | int | None = None,
        *,
        category: str | int | None = None,
        payload: object = None,
    ) -> annotate:
        """A with block or decorator that does nothing."""
        if isinstance(message, EventAttributes):
            attributes = message
            message, color, category, payload = attributes.message, attributes.color, attributes.category or None, attributes.payload
        text = message.string if isinstance(message, RegisteredString) else message
        return annotate(text, color, self.name, category, payload)

    def start_end_range(
        self,
        message: str | RegisteredString | None = None,
        color: str | int | None = None,
        *,
        category: str | int | None = None,
        payload: object = None,
    ) -> start_end_range:
        """A with block that does nothing."""
        from warplens.nvtx._ranges import start_end_range

        text = message.string if isinstance(message, RegisteredString) else message
        return start_end_range(text, color, self.name, category, payload)

    def get_counter(
        self,
        name: str,
        dtype: Any,
        *,
        description: str | None = None,
        scope: Any = None,
        semantics: CounterSemantics | None = None,
        time_domain: Any = None,
    ) -> Counter:
        """A counter that records nothing; TypeError where no counter can have the dtype."""
        from warplens.nvtx._counters import spec_of
        from warplens.nvtx._enums import TimestampType

        spec, dtype = spec_of(dtype)
        clock = time_domain if time_domain is not None else TimestampType.TOOL_PROVIDED
        key = (name, spec, description, scope, semantics, clock)
        known = self._counters.get(key)
        if known is None:
            made = (Int64Counter, Float64Counter, ExtCounter)[spec[0]]._made(self, dtype, *key)
            known = self._counters.setdefault(key, made)
        return known

    def get_timestamp(self) -> int:
        """0: there is no tool to ask."""
        return 0

    def create_resource(self, name: str, identifier: int, kind: str | int = "pointer") -> Resource:
        """A resource that no tool knows."""
        return Resource._made(self, name)

    def create_sync(self, name: str) -> SyncObject:
        """A synchronisation object that no tool knows."""
        return SyncObject._made(self, name)

    def name_category(self, id: int, name: str) -> None:
        """Makes the name mean the number."""
        self._categories[name] = id

    def destroy(self) -> bool:
        """False: no tool was told."""
        return False

    def __enter__(self) -> Domain:
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> Literal[False]:
        return False


Domain.__module__ = "warplens.nvtx"


class Counter:
    """A counter that records nothing."""

    __slots__ = ("description", "domain", "dtype", "name", "scope", "semantics", "time_domain")

    domain: Domain
    dtype: Any
    name: str
    description: str | None
    scope: Any
    semantics: CounterSemantics | None
    time_domain: Any

    def __new__(cls, *_: Any) -> Counter:
        raise TypeError("counters are made by Domain.get_counter()")

    @classmethod
    def _made(cls, domain: Domain, dtype: Any, name: str, _: Any, *rest: Any) -> Counter:
        made = object.__new__(cls)
        made.domain, made.dtype, made.name = domain, dtype, name
        made.description, made.scope, made.semantics, made.time_domain = rest
        return made

    def sample_no_value(self, reason: Any, /) -> None:
        """Nothing."""

    def batch_submit(self, values: Any, timestamps: Any) -> None:
        """Nothing."""


class Int64Counter(Counter):
    """A counter of 64-bit integers that records nothing."""

    __slots__ = ()

    def sample(self, value: int, /) -> None:
        """Nothing."""


class Float64Counter(Counter):
    """A counter of doubles that records nothing."""

    __slots__ = ()

    def sample(self, value: float, /) -> None:
        """Nothing."""


class ExtCounter(Counter):
    """A counter of other numbers, or a group of counters, that records nothing."""

    __slots__ = ()

    def sample(self, value: Any, /) -> None:
        """Nothing."""


class _Object:
    __slots__ = ("domain", "name")

    domain: Domain
    name: str

    def __new__(cls, *_: Any) -> Self:
        raise TypeError("made by a method of Domain")

    @classmethod
    def _made(cls, domain: Domain, name: str) -> Self:
        made = object.__new__(cls)
        made.domain, made.name = domain, name
        return made

    def destroy(self) -> None:
        """Nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, exc_type: object, exc_value: object, traceback: object, /) -> Literal[False]:
        return False


class Resource(_Object):
    """Something with a name for tools, of which there is none."""

    __slots__ = ()


class SyncObject(_Object):
    """Something that threads wait for, seen by no tool."""

    __slots__ = ()

    def acquire_start(self) -> None:
        """Nothing."""

    def acquire_failed(self) -> None:
        """Nothing."""

    def acquire_success(self) -> None:
        """Nothing."""

    def releasing(self) -> None:
        """Nothing."""


class _Int(int):
    __slots__ = ()
    _range = (0, 0)

    def __new__(cls, value: SupportsIndex) -> Self:
        number = operator.index(value)
        if not cls._range[0] <= number <= cls._range[1]:
            raise OverflowError(f"{number} does not fit in {cls.__name__}")
        return super().__new__(cls, number)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({int.__repr__(self)})"

    def __str__(self) -> str:
        return int.__repr__(self)


class int32(_Int):
    """A signed 32-bit integer as a payload; OverflowError where the value does not fit."""

    __slots__ = ()
    _range = (-(1 << 31), (1 << 31) - 1)


class uint32(_Int):
    """An unsigned 32-bit integer as a payload; OverflowError where the value does not fit."""

    __slots__ = ()
    _range = (0, (1 << 32) - 1)


class int64(_Int):
    """A signed 64-bit integer as a payload; OverflowError where the value does not fit."""

    __slots__ = ()
    _range = (-(1 << 63), (1 << 63) - 1)


class uint64(_Int):
    """An unsigned 64-bit integer as a payload; OverflowError where the value does not fit."""

    __slots__ = ()
    _range = (0, (1 << 64) - 1)


class _Float(float):
    __slots__ = ()

    def __new__(cls, value: SupportsFloat | SupportsIndex) -> Self:
        return super().__new__(cls, value)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({float.__repr__(self)})"

    def __str__(self) -> str:
        return float.__repr__(self)


class float64(_Float):
    """A double as a payload."""

    __slots__ = ()


class float32(_Float):
    """A float of 32 bits as a payload; OverflowError where the value is too large."""

    __slots__ = ()

    def __new__(cls, value: SupportsFloat | SupportsIndex) -> Self:
        number = super().__new__(cls, value)
        if abs(number) >= 3.4028235677973366e38 and number - number == 0:
            raise OverflowError("the number is too large for float32")
        return number


for _type in (Counter, Int64Counter, Float64Counter, ExtCounter, Resource, SyncObject, int32, uint32, int64, uint64, float32, float64):
    _type.__module__ = "warplens.nvtx"
_domains: dict[str | None, Domain] = {}


def get_domain(name: str | None = None) -> Domain:
    """The domain `name`; the same object for the same name."""
    return Domain(name)
