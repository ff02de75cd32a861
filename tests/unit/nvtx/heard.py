"""What a tool was told, as a tree of ranges: each with its task, its parent and whether it ended."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tests.unit.nvtx.conftest import Event


@dataclass
class Range:
    """One range; `begin` and `end` count the events, `task` is `library:name` or empty."""

    name: str
    style: str
    task: str
    parent: str | None
    thread: int
    begin: int
    end: int | None = None
    end_thread: int | None = None


@dataclass
class _Reading:
    """The state while the events are read."""

    tasks: dict[int, str] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    told: dict[int, int] = field(default_factory=dict)
    stacks: dict[tuple[int, str | None], list[Range]] = field(default_factory=dict)
    started: dict[int, tuple[Range, int]] = field(default_factory=dict)
    ended: dict[int, Range] = field(default_factory=dict)
    ranges: list[Range] = field(default_factory=list)

    def innermost(self, thread: int, task: int) -> str | None:
        pushed = [stack[-1] for (owner, _), stack in self.stacks.items() if owner == thread and stack]
        own = [found for found, of in self.started.values() if task and of == task]
        return max((*pushed, *own), key=lambda r: r.begin).name if pushed or own else None

    def named(self, identity: int) -> str:
        return (self.started[identity][0] if identity in self.started else self.ended[identity]).name


def ranges(events: Sequence[Event]) -> list[Range]:
    """The ranges in order of their beginning; fails where a pop has no push or an end no start."""
    state = _Reading()
    for at, event in enumerate(events):
        thread, kind, message = event["tid"], event["event"], str(event.get("message"))
        told = state.told.get(thread, 0)
        if kind == "task":
            state.tasks[event["id"]] = f"{event['library']}:{event['name']}"
        elif kind == "enter":
            assert event["task"] != told, "told twice"
            state.told[thread] = event["task"]
        elif kind == "push":
            found = Range(
                message, "push", state.tasks.get(told, ""), state.innermost(thread, told), thread, at
            )
            state.stacks.setdefault((thread, event["domain"]), []).append(found)
            state.ranges.append(found)
        elif kind == "pop":
            found = state.stacks[thread, event["domain"]].pop()
            assert found.task == state.tasks.get(told, ""), "popped in another task"
            found.end, found.end_thread = at, thread
        elif kind == "start":
            task = event.get("task", 0)
            parent = state.named(event["parent"]) if event.get("parent") else state.innermost(thread, task)
            found = Range(message, "start", state.tasks.get(task, ""), parent, thread, at)
            state.started[event["id"]] = (found, task)
            state.ranges.append(found)
        elif kind == "end":
            found, _ = state.started.pop(event["id"])
            state.ended[event["id"]] = found
            found.end, found.end_thread = at, thread
    return state.ranges


def tree(events: Sequence[Event]) -> list[tuple[str, str, str | None]]:
    """(name, task, parent) of each range; all have ended."""
    found = ranges(events)
    assert [r.name for r in found if r.end is None] == []
    return [(r.name, r.task, r.parent) for r in found]


def names(events: Sequence[Event]) -> list[tuple[str, str | None]]:
    """(name, parent) of each range; all have ended."""
    return [(name, parent) for name, _, parent in tree(events)]
