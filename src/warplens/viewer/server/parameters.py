"""Reads the parameters of a request, each with its type and bounds.

UsageError names a wrong one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from warplens.errors import UsageError
from warplens.viewer import limits

_FURTHEST = 1 << 60  # ns
_TEXT = 10_000  # characters
_LAST = (1 << 62) - 1  # of tracks and generations


class Parameters:
    """The parameters of one request."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._given = given

    def has(self, name: str) -> bool:
        """Whether a parameter is there."""
        return name in self._given

    def text(self, name: str, default: str | None = None) -> str:
        """Return a text."""
        value = self._given.get(name, default)
        if value is None:
            raise UsageError(f"the parameter {name} is missing")
        if len(value) > _TEXT:
            raise UsageError(f"the parameter {name} is too long")
        return value

    def flag(self, name: str) -> bool:
        """Return whether a parameter says yes."""
        return self._given.get(name, "").lower() in ("1", "true", "yes")

    def whole(self, name: str, default: int | None = None, least: int = 0, most: int = 1 << 62) -> int:
        """Return a whole number; what is above `most` is `most`."""
        if name not in self._given and default is not None:
            return default
        text = self.text(name)
        try:
            number = int(text)
        except ValueError:
            raise UsageError(f"the parameter {name} is not an integer: {text[:40]!r}") from None
        if number < least:
            raise UsageError(f"the parameter {name} is less than {least}")
        return min(number, most)

    def time(self, name: str) -> float:
        """Return a time, ns from the report's origin."""
        text = self.text(name)
        try:
            number = float(text)
        except ValueError:
            raise UsageError(f"the parameter {name} is not a number: {text[:40]!r}") from None
        if not math.isfinite(number) or abs(number) > _FURTHEST:
            raise UsageError(f"the parameter {name} is not a time")
        return number

    def span(self) -> tuple[int, int] | tuple[None, None]:
        """Return begin and end, ns; None twice if neither is there."""
        if not self.has("begin") and not self.has("end"):
            return None, None
        begin, end = math.floor(self.time("begin")), math.ceil(self.time("end"))
        if end < begin:
            raise UsageError("the parameter end is before begin")
        return begin, end

    def numbers(self, name: str) -> list[int]:
        """Return a list of tracks: `1,4-9`."""
        text = self._given.get(name, "")
        tracks: list[int] = []
        for part in filter(None, text.split(",")):
            first, dash, last = part.partition("-")
            if not first.isdecimal() or (dash and not last.isdecimal()) or len(part) > 24:
                raise UsageError(
                    f"the parameter {name} is a list of numbers such as 1,4-9, not {part[:40]!r}"
                )
            low, high = int(first), int(last) if dash else int(first)
            if high > _LAST:
                raise UsageError(f"the parameter {name} has an impossible value: {part}")
            if high < low or high - low + len(tracks) >= limits.TRACKS:
                raise UsageError(f"the parameter {name} names more than {limits.TRACKS:,} tracks")
            tracks += range(low, high + 1)
        return tracks
