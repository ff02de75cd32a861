"""Builds the rows of `processes` from spools, the register of processes and the launcher's notes."""

from __future__ import annotations

import re
import shlex
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warplens.convert.program_name import program_name
from warplens.handover.pending import writer_of
from warplens.spool.directory import Control, LaunchNotes
from warplens.spool.lives import LAUNCH, Life, fold, lives
from warplens.spool.notes import Note
from warplens.spool.process import Process
from warplens.spool.registry import REASONS, USAGE, read_register

_UNSAFE = re.compile(r"[^\w@%+=:,./ -]", re.ASCII)
_PYTHON = ("gc", "import", "python", "python-events", "torch")  # sources that other programs have nothing of
_NEAR_NS = 1_000_000_000  # a spool may be a little older than the record of its process

Row = dict[str, Any]


@dataclass
class Family:
    """The processes of one run. `rows` fill in the order in which keys are given out."""

    launch: LaunchNotes
    control: Control | None
    host: str
    rows: list[Row] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    _facts: list[Process] = field(default_factory=list)
    _row_lives: list[Life | None] = field(default_factory=list)
    _lives: list[Life] = field(default_factory=list)
    _mine: dict[int, Life] = field(default_factory=dict)  # position in `spools` -> its life
    _keys: dict[int, int] = field(default_factory=dict)  # id of a life -> key
    _broken: frozenset[int] = frozenset()
    _inside: frozenset[int] = frozenset()  # ids of lives whose own agent wrote a spool

    @classmethod
    def of(
        cls,
        directory: Path,
        launch: LaunchNotes,
        control: Control | None,
        host: str,
        spools: Sequence[Process],
        broken: Sequence[Path],
    ) -> Family:
        """Read the register in `directory` and tell which life each of the spools belongs to.

        `broken` ones cannot be read.
        """
        family = cls(launch, control, launch.host or host)
        register = read_register(directory)
        lives_begun = lives(register.entries, launch.pid)
        family._mine = dict(_matched(lives_begun, spools))
        family._inside = frozenset(
            id(life) for number, life in family._mine.items() if not spools[number].outside
        )
        family._lives = fold(lives_begun, {id(life) for life in family._mine.values()})
        family._broken = frozenset(writer[0] for path in broken if (writer := writer_of(path)))
        if register.damaged:
            text = (
                f"{register.damaged} damaged or cut-off places in the register of processes; "
                "processes may be missing"
            )
            family.notes.append(
                Note("warning", "register-damaged", "spool", message=text, count=register.damaged)
            )
        if register.unread:
            text = f"{register.unread:,} bytes of the register of processes were not read: it is too long"
            family.notes.append(Note("warning", "register-too-long", "spool", message=text))
        if foreign := Counter(life.foreign for life in family._lives if life.foreign in REASONS.values()):
            kinds = ", ".join(f"{count:,} x {reason}" for reason, count in foreign.most_common())
            text = (
                f"Some programs cannot be recorded: {kinds}. `warplens info` lists them; their "
                "child processes may be missing."
            )
            family.notes.append(Note("info", "not-followed", "launcher", message=text, count=foreign.total()))
        return family

    def go_on(self, now: int) -> None:
        """The recording continues: a process that has not ended runs at `now` (ns)."""
        for life in (*self._lives, *self._mine.values()):
            if life.end is None:
                life.end, life.ended = max(now, life.start), "running"

    def end_of(self, number: int) -> int | None:
        """Return when the process of spool `number` ended (ns), where the register tells."""
        life = self._mine.get(number)
        return life.end if life is not None else None

    def running_at(self, number: int) -> int | None:
        """Return the end (ns) of the recording after which the process of spool `number` went on.

        Only if the register has it.
        """
        life = self._mine.get(number)
        return life.end if life is not None and life.ended == "running" else None

    def add_silent_primary(self, key: int) -> None:
        """The launched program itself recorded nothing (a shell, say).

        It still has the command line and the exit status.
        """
        launch = self.launch
        start = launch.start_ns or 0
        facts = Process(
            pid=launch.pid or 0,
            host=launch.host,
            boot_id=launch.boot_id,
            start_ns=start,
            command=launch.command,
        )
        mine = [
            life
            for life in self._lives
            if life.pid == launch.pid and life.began in (LAUNCH, "exec") and self._of_primary(life)
        ]
        life = mine[-1] if mine else None
        if life is not None and life.texts:
            self._add(self._silent(key, life), facts, life)
        else:
            self._add(
                {
                    "process": key,
                    "pid": launch.pid,
                    "parent_pid": 0,
                    "host": self.host,
                    "executable": launch.command[0] if launch.command else "",
                    "command": shlex.join(launch.command),
                    "name": program_name("", launch.command),
                    "start": start,
                    "end": max(launch.primary_end_ns or launch.end_ns or 0, start),
                    "exited": launch.exit_status is not None and launch.exit_status < 128,
                    "ended": None
                    if launch.exit_status is None
                    else "signal"
                    if launch.exit_status > 128
                    else "exit",
                    "recorded": False,
                    "not_recorded": self._why(None),
                },
                facts,
                None,
            )
        self._make_primary(self.rows[-1])

    def add_spool(self, number: int, key: int, facts: Process, begin: int, end: int, orderly: bool) -> None:
        """Add the process of spool `number`.

        `begin` and `end` are what the spool tells, in ns of CLOCK_MONOTONIC.
        """
        life, launch = self._mine.get(number), self.launch
        primary = (
            launch.pid is not None
            and facts.pid == launch.pid
            and not any(row["primary"] for row in self.rows)
            # Watched from outside until the agent came: what its agent recorded says more.
            and not (facts.outside and id(life) in self._inside)
        )
        command = (
            facts.command or (life.command if life is not None else ()) or (launch.command if primary else ())
        )
        row: Row = {
            "process": key,
            "pid": facts.pid,
            "parent_pid": facts.ppid,
            "host": facts.host or self.host,
            "rank": facts.rank,
            "local_rank": facts.local_rank,
            "executable": facts.executable,
            "command": shlex.join(command),
            "name": program_name(facts.executable, command),
            "start": begin,
            "end": end,
            "exited": orderly,
            "began": "fork" if facts.fork_ns else None,
            "ended": "exit" if orderly else None,
            "recorded": True,
        }
        if life is not None:
            row |= {
                "parent_pid": life.ppid,
                "start": min(life.start, begin) if begin else life.start,
                "end": max(life.end or 0, end),
                "exit_status": life.exit_status,
                "began": life.began or row["began"],
                "ended": life.ended or row["ended"],
                **_usage(life),
            }
            row["rank"] = life.rank if row["rank"] is None else row["rank"]
            row["local_rank"] = life.local_rank if row["local_rank"] is None else row["local_rank"]
            if life.tried is not None and life.foreign is not None:
                # A fork child that recorded a little before it could not become its program: named after that one.
                row |= {
                    "executable": life.executable,
                    "command": shlex.join(life.command),
                    "name": program_name(life.executable, life.command),
                    "not_recorded": life.foreign,
                }
        self._add(row, facts, life)
        if primary:
            self._make_primary(row)

    def add_silent(self, key: Callable[[int], int]) -> None:
        """Add all others, in the order in which they began.

        `key` gives the key of a row by its number.
        """
        for life in sorted(
            (life for life in self._lives if id(life) not in self._keys), key=lambda life: life.start
        ):
            self._add(self._silent(key(len(self.rows)), life), Process(), life)

    def link(self) -> None:
        """Find the parents; name a primary where the launcher could not."""
        by_pid: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
        for row, facts in zip(self.rows, self._facts, strict=True):
            if facts.pid:
                by_pid.setdefault((facts.boot_id, facts.host, facts.pid), []).append(
                    (facts.start_ns, row["process"])
                )
        for row, facts, life in zip(self.rows, self._facts, self._row_lives, strict=True):
            if life is not None and life.parent is not None:
                row["parent"] = self._keys.get(id(life.parent))
            if row["parent"] is None and facts.ppid:
                # Process ids are reused: the parent is the last one of that id that was there before.
                older = by_pid.get((facts.boot_id, facts.host, facts.ppid), [])
                before = (
                    entry for entry in older if entry[0] <= facts.start_ns and entry[1] != row["process"]
                )
                row["parent"] = max(before, default=(0, None))[1]
        if self.rows and not any(row["primary"] for row in self.rows):
            root = next((row for row in self.rows if row["parent"] is None), self.rows[0])
            root["primary"] = True
            message = (
                "the launcher did not note which process it started; taking the first one, "
                f"{root['pid']}, for it"
            )
            self.notes.append(Note("warning", "no-launch-record", "report", message=message))

    def known(self) -> Process:
        """Return the facts of a process whose boot is known."""
        return next((facts for facts in self._facts if facts.boot_id), Process())

    def primary(self) -> Process:
        """Return the facts of the primary process."""
        return next(
            (facts for row, facts in zip(self.rows, self._facts, strict=True) if row["primary"]), Process()
        )

    def _add(self, row: Row, facts: Process, life: Life | None) -> None:
        row.setdefault("primary", False)
        row["parent"] = None
        if life is not None:
            self._keys.setdefault(id(life), row["process"])
        self.rows.append(row)
        self._facts.append(facts)
        self._row_lives.append(life)

    def _make_primary(self, row: Row) -> None:
        row["primary"] = True
        row["began"] = row.get("began") or LAUNCH
        if self.launch.exit_status is not None:
            row["exit_status"] = self.launch.exit_status

    def _silent(self, key: int, life: Life) -> Row:
        command = life.command
        end = life.end or max(self.launch.end_ns or 0, life.start)
        return {
            "process": key,
            "pid": life.pid,
            "parent_pid": life.ppid,
            "host": self.host,
            "rank": life.rank,
            "local_rank": life.local_rank,
            "executable": life.executable,
            "command": _joined(command) + (" …" if life.cut else ""),
            "name": program_name(life.executable, command),
            "start": life.start,
            "end": max(end, life.start),
            "exit_status": life.exit_status,
            "exited": life.ended == "exit",
            "began": life.began or None,
            "ended": life.ended,
            "recorded": False,
            "not_recorded": self._why(life),
            **_usage(life),
        }

    def _why(self, life: Life | None) -> str:
        if life is not None and life.foreign:
            return life.foreign
        if life is not None and life.pid in self._broken:
            return "its spool cannot be read"
        if self.launch.present and not self.launch.sources:
            return "nothing was traced"
        heard = [name.upper() for name in ("nvtx", "cuda") if name in self.launch.sources]
        others = [name for name in self.launch.sources if name not in ("nvtx", "cuda", *_PYTHON)]
        silent = f"made no {' or '.join(heard)} call" if heard or not others else "had nothing to record"
        silent += f", and had nothing to record of {', '.join(others)}" if heard and others else ""
        if self.control is not None and self.control.failed:
            silent += ", or no spool could be opened"
        if any(note.code == "ended-before" for note in self.launch.notes):
            silent += ", or ended before the time that --keep-last keeps"
        return silent

    def _of_primary(self, life: Life) -> bool:
        while life.began == "exec" and life.parent is not None:
            life = life.parent
        return life.began == LAUNCH


def _matched(lives: Sequence[Life], spools: Sequence[Process]) -> Iterator[tuple[int, Life]]:
    """Yield the number of each spool and its life.

    The latest of its process id that had begun, and had not ended.
    """
    by_pid: dict[int, list[Life]] = {}
    for life in lives:
        by_pid.setdefault(life.pid, []).append(life)
    for number, facts in enumerate(spools):
        mine = by_pid.get(facts.pid, [])
        if facts.fork_ns:
            mine = [life for life in mine if life.began == "fork"]
        at = bisect_right(mine, facts.start_ns, key=lambda life: life.start)
        near = [life for life in mine[max(at - 1, 0) : at + 1] if _distance(life, facts.start_ns) < _NEAR_NS]
        if near:
            yield number, min(near, key=lambda life: _distance(life, facts.start_ns))


def _usage(life: Life) -> Row:
    return dict(zip(USAGE, life.usage, strict=True)) if life.usage is not None else {}


def _distance(life: Life, time: int) -> int:
    return max(life.start - time, time - life.end if life.end is not None else 0, 0)


def _joined(command: Sequence[str]) -> str:
    text = " ".join(command)
    # most need no quotes, and of a large build there are millions of words
    return (
        shlex.join(command)
        if _UNSAFE.search(text) or text.count(" ") != len(command) - 1 or "" in command
        else text
    )
