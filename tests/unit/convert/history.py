"""A process that never was: what threads do over a minute, and its spool as it was at any time."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from pathlib import Path

from warplens.testing import spool_writer as sw

SECOND = 10**9
_NAMES = sw.strings({number: f"name {number}" for number in range(1, 8)})


@dataclass
class _Open:
    start: int
    name: int
    domain: int
    category: int


@dataclass
class History:
    """Threads that push, pop, mark, start and end at random; `nested`: of two domains, none crosses another's range."""

    seed: int
    nested: bool = False
    threads: int = 3
    steps: int = 600
    per_chunk: int = 40  # records
    _stacks: list[list[_Open]] = field(default_factory=list)
    _shared: dict[int, tuple[_Open, int, int]] = field(default_factory=dict)  # id -> range, thread, task
    _chunks: list[tuple[int, list[bytes]]] = field(default_factory=list)  # thread, records

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self._stacks = [[] for _ in range(self.threads)]
        self.now = SECOND
        self._next = 1

    def run(self, steps: int) -> None:
        """Let so many things happen."""
        for _ in range(steps):
            # some things begin together, and some ranges last for long
            self.now += self._random.choice((0, *[1, 1000, SECOND // 100, SECOND // 5] * 8))
            self._do(self._random.randrange(self.threads))

    def pause(self) -> None:
        """Let a moment pass in which nothing happens, or so long that all that is open began long ago."""
        self.now += self._random.choice((SECOND // 500, 3 * SECOND))

    def end_one_here(self, thread: int) -> None:
        """Let a thread start a range and end it."""
        one = _Open(self.now, 1, 0, 0)
        self.now += 1000
        self._record(thread, self._event("start_end", one))

    def write(self, spool: Path, *, end: bool = False) -> None:
        """Write the spool as it is now; `end`: in an orderly way."""
        about = [
            sw.meta("thread", 1, thread=number, tid=100 + number, start=SECOND)
            for number in range(self.threads)
        ]
        about += [sw.meta("domain", 7, domain=1), sw.meta("category", 6, category=1)]
        tables = []
        for thread, stack in enumerate(self._stacks):
            items = [
                sw.event("range", one.start, 0, one.name, domain=one.domain, category=one.category)
                for one in stack
            ]
            tables.append(sw.chunk(3, 40, thread, b"".join(items), 16384))
        slots = []
        for number, (one, thread, task) in self._shared.items():
            record = sw.event("start_end", one.start, 0, one.name, domain=one.domain, category=one.category)
            slots.append(sw.slot(record, thread, number, task=task))
        tables.append(sw.chunk(3, 64, sw.NO_THREAD, b"".join(slots), 65536))
        size = -(-(64 + 40 * self.per_chunk) // 4096) * 4096
        records = [
            sw.chunk(1, 40, thread, b"".join(items), size, number)
            for number, (thread, items) in enumerate(self._chunks)
        ]
        chunks = [_NAMES, sw.records(sw.NO_THREAD, about), *tables, *records]
        sw.write(spool, sw.spool(chunks, end_ns=self.now + 1 if end else 0))

    def _do(self, thread: int) -> None:
        draw, stack = self._random.random(), self._stacks[thread]
        one = _Open(
            self.now, self._random.randrange(1, 6), self._random.randrange(2), self._random.randrange(2)
        )
        if draw < 0.35 and len(stack) < 12:
            stack.append(one)
        elif draw < 0.7:
            mine = [open_ for open_ in stack if self.nested or open_.domain == one.domain][-1:]
            if mine and (len(stack) > 1 or self._random.random() < 0.1):  # the outermost lasts longest
                stack.remove(mine[0])
                self._record(thread, self._event("range", mine[0]))
        elif draw < 0.8:
            self._record(
                thread, sw.event("mark", self.now, None, one.name, domain=one.domain, category=one.category)
            )
        elif draw < 0.9 and len(self._shared) < 20:
            self._shared[self._next] = one, thread, 0 if stack else 100 + self._next
            self._next += 1
        elif self._shared:
            number = self._random.choice(list(self._shared))
            ended, began, task = self._shared.pop(number)
            self._record(
                thread,
                self._event("start_end", ended),
                *([sw.origin(began, number, task=task)] if began != thread or task else []),
            )

    def _event(self, kind: str, one: _Open) -> bytes:
        return sw.event(kind, one.start, self.now, one.name, domain=one.domain, category=one.category)

    def _record(self, thread: int, *items: bytes) -> None:
        for owner, held in reversed(self._chunks):
            if owner == thread:
                if len(held) + len(items) <= self.per_chunk:
                    held.extend(items)
                    return
                break
        self._chunks.append((thread, list(items)))
