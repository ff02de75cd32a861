"""Encodes a profile of pprof (perftools.profiles.Profile, github.com/google/pprof/proto/profile.proto)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from warplens.exporters.protobuf import message, number, text, varint

if TYPE_CHECKING:
    from warplens.exporters.profiles.stacks import Labels

# Field numbers of Profile.
_TYPE, _SAMPLE, _MAPPING, _LOCATION, _FUNCTION, _TEXT, _TIME, _DURATION, _PERIOD_TYPE, _PERIOD = (
    1,
    2,
    3,
    4,
    5,
    6,
    9,
    10,
    11,
    12,
)
_DEFAULT_TYPE = 14


class PprofProfile:
    """Samples with their stacks.

    Texts, functions, locations and mappings are numbered as they come.
    """

    def __init__(self, labels: Labels, time: str) -> None:
        """`labels`: of the frames that stacks are made of, distinguished by line.

        `time`: what the ns of samples are, `cpu` or `wall`.
        """
        self._labels = labels
        self._time = time
        self._texts = {"": 0}
        self._mappings: dict[tuple[str, str], int] = {}
        self._functions: dict[tuple[str, str, int], int] = {}
        self._locations: dict[tuple[int, int, int, int], int] = {}
        self._of_frame: dict[int, int] = {}
        self._stacks: dict[int, bytes] = {}
        self._packed: list[bytes] = []

    def add(
        self, stack: int, count: int, weight: int, texts: Mapping[str, str], numbers: Mapping[str, int]
    ) -> None:
        """Add samples of one stack (position of its innermost frame), with labels."""
        if stack not in self._stacks:
            self._stacks[stack] = _numbers(
                1, [self._location(position) for position in reversed(self._labels.positions(stack))]
            )
        said = [
            message(3, number(1, self._text(key)), number(2, self._text(value)))
            for key, value in texts.items()
        ]
        said += [message(3, number(1, self._text(key)), number(3, value)) for key, value in numbers.items()]
        self._packed.append(message(_SAMPLE, self._stacks[stack], _numbers(2, (count, weight)), *said))

    def pieces(self, begin: int, duration: int, period: int) -> Iterator[bytes]:
        """Yield the encoded profile. `begin`: ns since 1970; `period`: ns between samples."""
        time = self._value(self._time, "nanoseconds")
        yield message(_TYPE, *self._value("samples", "count")) + message(_TYPE, *time)
        yield from self._packed
        for (file, build), id in self._mappings.items():
            texts = number(5, self._text(file)) + number(6, self._text(build))
            yield message(_MAPPING, number(1, id), texts, number(7, 1), number(8, 1), number(9, 1))
        for (mapping, address, function, line), id in self._locations.items():
            place = number(2, mapping) + number(3, address) if mapping else b""
            yield message(_LOCATION, number(1, id), place, message(4, number(1, function), number(2, line)))
        for (name, file, line), id in self._functions.items():
            called = self._text(name)
            yield message(
                _FUNCTION,
                number(1, id),
                number(2, called),
                number(3, called),
                number(4, self._text(file)),
                number(5, line),
            )
        yield (
            number(_TIME, begin)
            + number(_DURATION, duration)
            + message(_PERIOD_TYPE, *time)
            + number(_PERIOD, period)
        )
        yield number(_DEFAULT_TYPE, self._text(self._time))
        yield b"".join(text(_TEXT, each) for each in self._texts)

    def _value(self, what: str, unit: str) -> tuple[bytes, bytes]:
        return number(1, self._text(what)), number(2, self._text(unit))

    def _text(self, value: str) -> int:
        return self._texts.setdefault(value, len(self._texts))

    def _location(self, position: int) -> int:
        known = self._of_frame.get(position)
        if known is None:
            frame = self._labels.frames.frame(position)
            path, build, address = self._labels.code(position)
            file, mapping = path or frame.module, 0
            if file:
                mapping = self._mappings.setdefault((file, build), len(self._mappings) + 1)
            function = (frame.function, frame.file or "", frame.first_line or 0)
            id = self._functions.setdefault(function, len(self._functions) + 1)
            key = (mapping, address, id, frame.line or 0)
            known = self._of_frame[position] = self._locations.setdefault(key, len(self._locations) + 1)
        return known


def _numbers(field: int, values: Sequence[int]) -> bytes:
    """Encode a packed repeated integer field."""
    return text(field, b"".join(map(varint, values)))
