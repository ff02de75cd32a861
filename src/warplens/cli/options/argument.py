"""One option of a recording as it is typed, with click and without."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Argument:
    """One option: its names, the long one last; what stands for its value, empty for a flag.

    And its help.
    """

    names: tuple[str, ...]
    value: str
    help: str

    @property
    def long(self) -> str:
        """The name that the others stand for."""
        return self.names[-1]
