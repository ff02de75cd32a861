"""The names of `warpline.nvtx`, recording nothing: no binding for this interpreter, or NVTX_DISABLE is set."""

from __future__ import annotations

from typing import Any, Literal, TypeVar

_Function = TypeVar("_Function")


class annotate:
    """A with block or decorator that does nothing; a decorated function is the function itself."""

    __slots__ = ("_arguments",)

    def __init__(
        self,
        message: str | None = None,
        color: str | int | None = None,
        domain: str | None = None,
        category: str | int | None = None,
        payload: object = None,
    ) -> None:
        self._arguments = (message, color, domain, category, payload)

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


annotate.__module__ = "warpline.nvtx"


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


def pop_range(domain: str | None = None) -> int | None:
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


def end_range(range_id: object) -> None:
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


Profile.__module__ = "warpline.nvtx"


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

    __slots__ = ("_categories", "name")

    name: str | None
    _categories: dict[str, int]

    def __new__(cls, name: str | None = None) -> Domain:
        known = _domains.get(name)
        if known is None:
            known = super().__new__(cls)
            known.name = name
            known._categories = {}
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

    def _update(self, attributes: EventAttributes | None, changes: dict[str, Any]) -> None:
        if attributes is not None and changes:
            self.set_event_attributes(attributes, **changes)

    def mark(self, attributes: EventAttributes | None = None, **changes: Any) -> None:
        """Nothing, apart from changing `attributes`."""
        self._update(attributes, changes)

    def push_range(self, attributes: EventAttributes | None = None, **changes: Any) -> int | None:
        """Nothing, apart from changing `attributes`; no depth."""
        self._update(attributes, changes)
        return None

    def pop_range(self) -> int | None:
        """Nothing; no depth."""
        return None

    def start_range(self, attributes: EventAttributes | None = None, **changes: Any) -> int:
        """Nothing, apart from changing `attributes`; 0, which end_range() takes."""
        self._update(attributes, changes)
        return 0

    def end_range(self, range_id: int) -> None:
        """Nothing."""


Domain.__module__ = "warpline.nvtx"
_domains: dict[str | None, Domain] = {}


def get_domain(name: str | None = None) -> Domain:
    """The domain `name`; the same object for the same name."""
    return Domain(name)
