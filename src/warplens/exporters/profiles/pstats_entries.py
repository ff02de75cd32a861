"""The entries of a profile of cProfile: calls and times of each function, and those by caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

Name = tuple[str, int, str]  # file, line where the function begins, function
Row = tuple[int, int, float, float]


@dataclass
class _Sums:
    primitive: int = 0  # those that were in no other of the same
    calls: int = 0
    own: int = 0  # ns
    total: int = 0


@dataclass
class _Entry(_Sums):
    callers: dict[Name, _Sums] = field(default_factory=dict)


class Entries:
    """Collects what was called, by stacks or call by call."""

    def __init__(self) -> None:
        self._of: dict[Name, _Entry] = {}

    def sampled(self, stack: Sequence[Name], count: int, weight: int) -> None:
        """Take samples of a stack, outermost function first: each is a call of all functions in it.

        `weight`: ns.
        """
        met: set[Name | tuple[Name, Name]] = set()
        before: Name | None = None
        for place, name in enumerate(stack):
            last = place == len(stack) - 1
            entry = self._entry(name)
            keys: list[tuple[_Sums, Name | tuple[Name, Name]]] = [(entry, name)]
            if before is not None:
                keys.append((entry.callers.setdefault(before, _Sums()), (before, name)))
            for sums, key in keys:
                sums.calls += count
                sums.own += weight if last else 0
                if key not in met:
                    met.add(key)
                    sums.primitive += count
                    sums.total += weight
            before = name

    def called(self, name: Name, caller: Name | None, own: int, length: int, outermost: bool) -> None:
        """Take one call; times in ns. `outermost`: the function was not active already."""
        entry = self._entry(name)
        for sums in (entry, entry.callers.setdefault(caller, _Sums())) if caller is not None else (entry,):
            sums.calls += 1
            sums.own += max(own, 0)
            sums.primitive += outermost
            sums.total += length if outermost else 0

    def stats(self) -> dict[Name, tuple[int, int, float, float, dict[Name, Row]]]:
        """Return the entries that `pstats` reads.

        Times in seconds, calls of functions before their primitive ones and of callers behind them.
        """
        entries = {}
        for name, entry in self._of.items():
            callers = {
                caller: (sums.calls, sums.primitive, sums.own / 1e9, sums.total / 1e9)
                for caller, sums in entry.callers.items()
            }
            entries[name] = (entry.primitive, entry.calls, entry.own / 1e9, entry.total / 1e9, callers)
        return entries

    def _entry(self, name: Name) -> _Entry:
        entry = self._of.get(name)
        if entry is None:
            entry = self._of[name] = _Entry()
        return entry
