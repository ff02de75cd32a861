"""The names of `warplens.nvtx` without recording.

Used if there is no binding for this interpreter, or NVTX_DISABLE is set.

Their types are those of `_binding.pyi`; tests/unit/nvtx/test_signatures.py compares names, parameters and defaults with it.
"""

from __future__ import annotations

import operator

_unset = object()
_domains = {}


class _Block:
    """A with block that does nothing."""

    __slots__ = ()

    def __enter__(self):
        return self

    def __exit__(self, exc_type, exc_value, traceback, /):
        return False


class _Event(_Block):
    """Keeps its arguments, for copies and for its text."""

    __slots__ = ("_arguments", "payload")

    def __init__(self, message=None, color=None, domain=None, category=None, payload=None):
        self._arguments = (message, color, domain, category, payload)
        self.payload = payload

    def __reduce__(self):
        return type(self), self._arguments

    def __repr__(self):
        return f"{type(self).__name__}{self._arguments!r}"


class annotate(_Event):
    """A with block or decorator that does nothing; a decorated function is the function itself."""

    __slots__ = ("_attributes",)

    @property
    def domain(self):
        """The domain that the range would belong to."""
        return get_domain(self._arguments[2])

    @property
    def attributes(self):
        """The attributes that the range would have."""
        try:
            return self._attributes
        except AttributeError:
            message, color, _, category, payload = self._arguments
            self._attributes = self.domain.get_event_attributes(message, color, category, payload)
            return self._attributes

    def __call__(self, func):
        return func


class start_end_range(_Event):
    """A with block that does nothing."""

    __slots__ = ()


def mark(message=None, color="blue", domain=None, category=None, payload=None):
    """Nothing."""


def push_range(message=None, color="blue", domain=None, category=None, payload=None):
    """Nothing; no depth."""


def pop_range(domain=None, *, message=None, color=None, category=None, payload=None):
    """Nothing; no depth."""


def start_range(message=None, color=None, domain=None, category=None, payload=None):
    """Nothing; end_range() takes the None."""


def end_range(range_id, *, message=None, color=None, category=None, payload=None):
    """Nothing."""


def name_category(id, name, domain=None):
    """Nothing."""


def name_thread(name, tid=None):
    """Nothing."""


def name_cuda_device(device, name):
    """Nothing."""


def name_cuda_stream(stream, name):
    """Nothing."""


def name_cuda_event(event, name):
    """Nothing."""


def name_cuda_context(context, name):
    """Nothing."""


def attached():
    """False: no tool can hear this."""
    return False


def get_domain(name=None):
    """The domain `name`; the same object for the same name."""
    return Domain(name)


class Profile(_Block):
    """Annotates nothing."""

    __slots__ = ("annotate_cfuncs", "linenos")

    def __init__(self, linenos=True, annotate_cfuncs=True):
        self.linenos, self.annotate_cfuncs = linenos, annotate_cfuncs

    def enable(self):
        """Nothing."""

    def disable(self):
        """Nothing."""


class RegisteredString:
    """A message of a domain."""

    __slots__ = ("domain", "string")

    def __init__(self, domain, string):
        self.domain, self.string = domain, string

    def __eq__(self, other):
        return isinstance(other, RegisteredString) and (self.domain, self.string) == (
            other.domain,
            other.string,
        )

    def __hash__(self):
        return hash(self.string)


class EventAttributes:
    """The attributes of an event; keeps what it is given."""

    __slots__ = ("_category", "_domain", "_message", "color", "payload")

    def __init__(self, domain):
        self._domain, self._message, self._category = domain, None, 0
        self.color = self.payload = None

    @property
    def message(self):
        """The message, None if there is none; takes a str as well."""
        return self._message

    @message.setter
    def message(self, value):
        self._message = RegisteredString(self._domain, value) if isinstance(value, str) else value

    @property
    def category(self):
        """The category's number, 0 for none; takes a name as well."""
        return self._category

    @category.setter
    def category(self, value):
        self._category = self._domain.get_category_id(value) if isinstance(value, str) else value or 0


class Domain(_Block):
    """A domain that nothing is recorded in; one object per name."""

    __slots__ = ("_categories", "_counters", "name")

    def __new__(cls, name=None):
        known = _domains.get(name)
        if known is None:
            known = super().__new__(cls)
            known.name, known._categories, known._counters = name, {}, {}
            known = _domains.setdefault(name, known)
        return known

    def __reduce__(self):
        return type(self), (self.name,)

    def get_registered_string(self, string, /):
        """The message `string`."""
        return RegisteredString(self, string)

    def get_category_id(self, name, /):
        """The number of the category `name`; new names get the next number."""
        return self._categories.setdefault(name, len(self._categories) + 1)

    def name_category(self, id, name):
        """Makes the name mean the number."""
        self._categories[name] = id

    def get_event_attributes(self, message=None, color=None, category=None, payload=None):
        """The attributes of an event."""
        attributes = EventAttributes(self)
        self.set_event_attributes(
            attributes, message=message, color=color, category=category, payload=payload
        )
        return attributes

    def set_event_attributes(
        self, attributes, *, message=_unset, color=_unset, category=_unset, payload=_unset
    ):
        """Changes the attributes that are given; the others stay."""
        for name, value in (
            ("message", message),
            ("color", color),
            ("category", category),
            ("payload", payload),
        ):
            if value is not _unset:
                setattr(attributes, name, value)

    def mark(self, attributes=None, *, message=_unset, color=_unset, category=_unset, payload=_unset):
        """Nothing, apart from changing `attributes`."""
        if attributes is not None:
            self.set_event_attributes(
                attributes, message=message, color=color, category=category, payload=payload
            )

    def push_range(self, attributes=None, *, message=_unset, color=_unset, category=_unset, payload=_unset):
        """Nothing, apart from changing `attributes`; no depth."""
        self.mark(attributes, message=message, color=color, category=category, payload=payload)

    def pop_range(self, *, message=None, color=None, category=None, payload=None):
        """Nothing; no depth."""

    def start_range(self, attributes=None, *, message=_unset, color=_unset, category=_unset, payload=_unset):
        """Nothing, apart from changing `attributes`; 0, which end_range() takes."""
        self.mark(attributes, message=message, color=color, category=category, payload=payload)
        return 0

    def end_range(self, range_id, *, message=None, color=None, category=None, payload=None):
        """Nothing."""

    def annotate(self, message=None, color=None, *, category=None, payload=None):
        """A with block or decorator that does nothing."""
        if isinstance(message, EventAttributes):
            attributes = message
            message, color, category, payload = (
                attributes.message,
                attributes.color,
                attributes.category or None,
                attributes.payload,
            )
        return annotate(_text(message), color, self.name, category, payload)

    def start_end_range(self, message=None, color=None, *, category=None, payload=None):
        """A with block that does nothing."""
        return start_end_range(_text(message), color, self.name, category, payload)

    def get_counter(self, name, dtype, *, description=None, scope=None, semantics=None, time_domain=None):
        """A counter that records nothing; TypeError where no counter can have the dtype."""
        from warplens.nvtx._counters import spec_of
        from warplens.nvtx._enums import TimestampType

        spec, dtype = spec_of(dtype)
        clock = time_domain if time_domain is not None else TimestampType.TOOL_PROVIDED
        key = (name, spec, description, scope, semantics, clock)
        known = self._counters.get(key)
        if known is None:
            facts = {
                "dtype": dtype,
                "description": description,
                "scope": scope,
                "semantics": semantics,
                "time_domain": clock,
            }
            made = (Int64Counter, Float64Counter, ExtCounter)[spec[0]]._made(self, name, **facts)
            known = self._counters.setdefault(key, made)
        return known

    def get_timestamp(self):
        """0: there is no tool to ask."""
        return 0

    def create_resource(self, name, identifier, kind="pointer"):
        """A resource that no tool knows."""
        return Resource._made(self, name)

    def create_sync(self, name):
        """A synchronisation object that no tool knows."""
        return SyncObject._made(self, name)

    def destroy(self):
        """Return False: there is no tool."""
        return False


def _text(message):
    return message.string if isinstance(message, RegisteredString) else message


class _OfDomain:
    """What a method of a domain makes, and nothing else."""

    __slots__ = ("domain", "name")
    _makers = "made by a method of Domain"

    def __new__(cls, *_):
        raise TypeError(cls._makers)

    @classmethod
    def _made(cls, domain, name, **more):
        made = object.__new__(cls)
        made.domain, made.name = domain, name
        for attribute, value in more.items():
            setattr(made, attribute, value)
        return made


class Counter(_OfDomain):
    """A counter that records nothing."""

    __slots__ = ("description", "dtype", "scope", "semantics", "time_domain")
    _makers = "counters are made by Domain.get_counter()"

    def sample_no_value(self, reason, /):
        """Nothing."""

    def batch_submit(self, values, timestamps):
        """Nothing."""


class Int64Counter(Counter):
    """A counter of 64-bit integers that records nothing."""

    __slots__ = ()

    def sample(self, value, /):
        """Nothing."""


class Float64Counter(Counter):
    """A counter of doubles that records nothing."""

    __slots__ = ()

    def sample(self, value, /):
        """Nothing."""


class ExtCounter(Counter):
    """A counter of other numbers, or a group of counters, that records nothing."""

    __slots__ = ()

    def sample(self, value, /):
        """Nothing."""


class _Object(_OfDomain, _Block):
    __slots__ = ()

    def destroy(self):
        """Nothing."""


class Resource(_Object):
    """Something with a name for tools, that do not exist."""

    __slots__ = ()


class SyncObject(_Object):
    """Something that threads wait for, seen by no tool."""

    __slots__ = ()

    def acquire_start(self):
        """Nothing."""

    def acquire_failed(self):
        """Nothing."""

    def acquire_success(self):
        """Nothing."""

    def releasing(self):
        """Nothing."""


class _Int(int):
    __slots__ = ()
    _range = (0, 0)

    def __new__(cls, value):
        number = operator.index(value)
        if not cls._range[0] <= number <= cls._range[1]:
            raise OverflowError(f"{number} does not fit in {cls.__name__}")
        return super().__new__(cls, number)

    def __repr__(self):
        return f"{type(self).__name__}({int.__repr__(self)})"

    def __str__(self):
        return int.__repr__(self)


def _integer(name, least, greatest):
    kind = f"{'An unsigned' if least == 0 else 'A signed'} {greatest.bit_length() + (least < 0)}-bit integer"
    text = f"{kind} as a payload; OverflowError if the value does not fit."
    return type(name, (_Int,), {"__slots__": (), "__doc__": text, "_range": (least, greatest)})


int32 = _integer("int32", -(1 << 31), (1 << 31) - 1)
uint32 = _integer("uint32", 0, (1 << 32) - 1)
int64 = _integer("int64", -(1 << 63), (1 << 63) - 1)
uint64 = _integer("uint64", 0, (1 << 64) - 1)


class _Float(float):
    __slots__ = ()

    def __new__(cls, value):
        return super().__new__(cls, value)

    def __repr__(self):
        return f"{type(self).__name__}({float.__repr__(self)})"

    def __str__(self):
        return float.__repr__(self)


class float64(_Float):
    """A double as a payload."""

    __slots__ = ()


class float32(_Float):
    """A float of 32 bits as a payload; OverflowError if the value is too large."""

    __slots__ = ()

    def __new__(cls, value):
        number = super().__new__(cls, value)
        if abs(number) >= 3.4028235677973366e38 and number - number == 0:
            raise OverflowError("the number is too large for float32")
        return number


for _type in [
    value for name, value in globals().items() if isinstance(value, type) and not name.startswith("_")
]:
    _type.__module__ = "warplens.nvtx"
