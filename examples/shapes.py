"""Sums up areas: of shapes of one class, and of several, for which CPython has no specialised instructions.

warplens profile -f --python-sampling-opcodes=true -o shapes python shapes.py, then warplens source --opcodes shapes
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Protocol


class Shape(Protocol):
    """What has an area."""

    def area(self) -> float:
        """Work it out."""


class Square:
    """A square."""

    def __init__(self, side: float) -> None:
        self.side = side

    def area(self) -> float:
        """Multiply."""
        return self.side * self.side


class Circle:
    """A circle, roughly."""

    def __init__(self, radius: float) -> None:
        self.radius = radius

    def area(self) -> float:
        """Multiply."""
        return 3 * self.radius * self.radius


def total(shapes: Sequence[Shape]) -> float:
    """Sum up the areas."""
    area = 0.0
    for shape in shapes:
        area += shape.area()
    return area


def main(seconds: float = 2.0) -> None:
    """Sum up for a while."""
    same = [Square(3.0)] * 2000
    mixed: list[Shape] = [Square(3), Circle(2), Square(2.5), Circle(1)] * 500
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        total(same)
        total(mixed)


if __name__ == "__main__":
    main()
