"""Converts the register of processes to lives: one for each program that ran in a process.

With its parent, beginning and end.
"""

from __future__ import annotations

import os
from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from warplens.spool.registry import (
    EXEC,
    EXIT,
    FOREIGN,
    FORK,
    NOT_SPAWNED,
    PROGRAM,
    REASONS,
    RUNNING,
    WAITED,
    RegisterEntry,
)

LAUNCH = "launch"
_AT_ONCE_NS = 100_000_000  # so soon behind its try ends a child that could not become another program
_NO_PROGRAM = (
    126,
    127,
)  # exit statuses of a child that could not become another program, as shells have them
_UNHEARD = "could not be followed"


@dataclass(slots=True, eq=False)
class Life:
    """One program in one process.

    It ends with the process, with its next program, or where the register ends.

    `began`: launch, fork, spawn, exec, or empty. `ended`: exit, signal, exec, running, or None. `end` is None if it is not known.
    `foreign` says why the program could not be followed. `pid` 0: not known. `texts` are the executable and the command line.
    """

    pid: int
    ppid: int
    start: int
    began: str = ""
    parent: Life | None = None
    texts: tuple[bytes, ...] = ()
    cut: bool = False
    end: int | None = None
    ended: str | None = None
    exit_status: int | None = None
    usage: tuple[int, ...] | None = None
    rank: int | None = None
    local_rank: int | None = None
    foreign: str | None = None
    heard: bool = True  # false: others told of it, but the program itself has not been heard
    next: RegisterEntry | None = None  # the program that it is about to become
    tried: tuple[RegisterEntry, str] | None = (
        None  # the last one that it could not become, a fork child, and why
    )

    @property
    def executable(self) -> str:
        """Path of the program."""
        return self.texts[0].decode("utf-8", errors="replace") if self.texts else ""

    @property
    def command(self) -> tuple[str, ...]:
        """The command line."""
        return tuple(text.decode("utf-8", errors="replace") for text in self.texts[1:])


@dataclass(slots=True)
class _Tree:
    primary: int | None
    lives: list[Life] = field(default_factory=list)
    current: dict[int, Life] = field(default_factory=dict)
    unnamed: dict[int, list[Life]] = field(
        default_factory=dict
    )  # foreign children whose id is not known, by their parent's
    waited: dict[int, Life] = field(
        default_factory=dict
    )  # over, and their ids free; a child may still say whose it was
    launched: bool = False

    def begin(
        self, entry: RegisterEntry, pid: int, began: str, texts: tuple[bytes, ...], parent: Life | None = None
    ) -> Life:
        life = Life(
            pid,
            entry.ppid,
            entry.time,
            began=began,
            parent=parent or self.of(entry.ppid),
            texts=texts,
            cut=entry.cut,
        )
        life.rank, life.local_rank = entry.rank, entry.local_rank
        self.lives.append(life)
        if pid:
            earlier = self.current.get(pid)
            if earlier is not None and earlier.end is None and earlier is not parent:
                self.settle(
                    earlier
                ).end = entry.time  # of a process that nobody saw end; its id was used again
            if pid == self.primary and not self.launched and began != "fork":
                life.began, self.launched = LAUNCH, True
            self.current[pid] = life
        return life

    def of(self, pid: int) -> Life | None:
        """The life of a parent: of daemons' parents it is over."""
        return self.current.get(pid) or self.waited.get(pid)

    def replace(self, entry: RegisterEntry, earlier: Life) -> Life:
        """Another program in the process of `earlier`."""
        earlier.end, earlier.ended = entry.time, "exec"
        life = self.begin(entry, earlier.pid, "exec", texts=entry.texts, parent=earlier)
        life.ppid = earlier.ppid
        life.rank = earlier.rank if life.rank is None else life.rank
        life.local_rank = earlier.local_rank if life.local_rank is None else life.local_rank
        return life

    def known(self, entry: RegisterEntry, began: str = "") -> Life:
        """The life of a process, also where its beginning was not recorded."""
        life = self.current.get(entry.pid)
        if life is None and (unnamed := self.unnamed.get(entry.ppid)):
            life = self.current[entry.pid] = unnamed.pop(0)
            life.pid = entry.pid
        if life is None:
            life = self.begin(entry, entry.pid, began, texts=())
            life.heard = False
        return self.settle(life)

    def settle(self, life: Life) -> Life:
        """It became the program that was announced, though that was never heard.

        Return that one's life.
        """
        entry, life.next = life.next, None
        if entry is None or life.end is not None:
            return life
        if life.heard:
            life = self.replace(entry, life)
            life.heard = False
        life.texts, life.cut = entry.texts, entry.cut
        life.foreign = (
            REASONS.get(entry.status, "another kind of program") if entry.kind == FOREIGN else _UNHEARD
        )
        return life


def lives(entries: Iterable[RegisterEntry], primary: int | None = None) -> list[Life]:
    """Return the lives that the entries (in order of time) tell of.

    `primary` is the process that the launcher started.

    Process ids are reused and programs replace each other in a process: only the order of time tells which life is meant.
    """
    tree = _Tree(primary)
    for entry in entries:
        _HANDLERS[entry.kind](tree, entry)
    for life in list(tree.lives):
        tree.settle(life)
        if not life.heard and life.foreign is None:
            life.foreign = _UNHEARD
    return tree.lives


def fold(all_lives: list[Life], recorded: Container[int]) -> list[Life]:
    """Return `found` without the fork children that only started another program.

    That program's life begins with the fork.

    `recorded` has the `id()` of lives that stay whatever they did.
    """
    gone: dict[int, Life] = {}
    kept = []
    for life in all_lives:
        earlier = life.parent
        if (
            life.began == "exec"
            and earlier is not None
            and earlier.began == "fork"
            and id(earlier) not in recorded
        ):
            gone[id(earlier)] = life
            life.began, life.start, life.parent = "spawn", earlier.start, earlier.parent
    for life in all_lives:
        if id(life) in gone:
            continue
        while life.parent is not None and id(life.parent) in gone:
            life.parent = gone[id(life.parent)]
        kept.append(life)
    return kept


def _program(tree: _Tree, entry: RegisterEntry) -> None:
    life = tree.current.get(entry.pid)
    if life is None or life.end is not None:
        tree.begin(entry, entry.pid, "spawn", entry.texts)
    elif not life.heard:
        life.texts, life.cut, life.heard, life.foreign, life.next = entry.texts, entry.cut, True, None, None
        life.rank, life.local_rank = entry.rank, entry.local_rank
    elif life.next is not None or life.ppid == entry.ppid:
        announced = life.next.time if life.next is not None else entry.time
        life.next = None
        tree.replace(entry, life).start = life.end = announced
    else:
        tree.begin(entry, entry.pid, "spawn", entry.texts)


def _fork(tree: _Tree, entry: RegisterEntry) -> None:
    parent = tree.of(entry.ppid)
    life = tree.begin(entry, entry.pid, "fork", parent.texts if parent is not None else (), parent)
    if parent is not None:
        life.cut = parent.cut
        life.rank = parent.rank if life.rank is None else life.rank
        life.local_rank = parent.local_rank if life.local_rank is None else life.local_rank


def _announced(tree: _Tree, entry: RegisterEntry) -> None:
    life = tree.current.get(entry.pid) if entry.pid else None
    if not entry.texts:
        if life is not None and life.end is None:
            if life.began == "fork" and life.next is not None:
                life.tried = life.next, _not_started(entry.status)
            life.next = None  # it did not become another program
            life.foreign = life.foreign if life.heard else _not_started(entry.status)
        return
    if life is None or life.end is not None:
        # the first words of a child of vfork, or the only ones of a foreign program that was spawned
        life = tree.begin(entry, entry.pid, "spawn", entry.texts)
        life.heard = False
        if not entry.pid:
            tree.unnamed.setdefault(entry.ppid, []).append(life)
    life.next = entry


def _not_started(number: int) -> str:
    return f"could not be started: {os.strerror(number)}" if 0 < number < 4096 else "could not be started"


def _not_spawned(tree: _Tree, entry: RegisterEntry) -> None:
    """A program that `posix_spawn` could not start: the C library's child ended with 127, and nobody knows its id."""
    life = tree.begin(entry, 0, "spawn", entry.texts)
    life.end, life.ended, life.exit_status = entry.time, "exit", 127
    life.heard, life.foreign = False, _not_started(entry.status)


def _exit(tree: _Tree, entry: RegisterEntry) -> None:
    parent = tree.of(entry.ppid)
    if (
        entry.pid not in tree.current
        and not tree.unnamed.get(entry.ppid)
        and parent is not None
        and parent.heard
    ):
        _fork(
            tree, entry
        )  # a child of vfork that says so itself: it became no other program, as there was none of that name, say
    life = tree.known(entry)
    if life.ended is None:
        life.end, life.ended, life.exit_status = entry.time, "exit", _status(entry.status)
        life.usage = entry.usage
    if life.tried is not None and (
        entry.status in _NO_PROGRAM or (entry.status and entry.time - life.tried[0].time < _AT_ONCE_NS)
    ):
        # It was there for that program alone.
        announced, life.foreign = life.tried
        life.texts, life.cut = announced.texts, announced.cut


def _waited(tree: _Tree, entry: RegisterEntry) -> None:
    life = tree.known(entry, "spawn")
    tree.waited[entry.pid] = tree.current.pop(entry.pid)  # the system may give the id to another now
    status = _status(entry.status)
    if life.ended is None:
        life.ended = "signal" if status is not None and status > 128 else "exit"
        life.end = entry.time
    life.exit_status = status


def _running(tree: _Tree, entry: RegisterEntry) -> None:
    life = tree.known(entry)
    if life.ended is None:
        life.end, life.ended = entry.time, "running"


def _status(status: int) -> int | None:
    return status if 0 <= status < 512 else None


_HANDLERS = {
    PROGRAM: _program,
    FORK: _fork,
    EXEC: _announced,
    EXIT: _exit,
    WAITED: _waited,
    FOREIGN: _announced,
    RUNNING: _running,
    NOT_SPAWNED: _not_spawned,
}
