"""What a program says it did, read from its own log, and the comparison with a report."""

from __future__ import annotations

import os
import struct
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from warplens.report import Report
from warplens.report import open as open_report

RANGE, HELLO, GOODBYE = 1, 2, 3
RECORD = struct.Struct("<IIQQQQQIIQ")
# The agent's clock is tied to the system's over milliseconds and then, in the reader, over the run.
CLOCK_SLACK_NS = 200_000

Key = tuple[int, str, int]  # process id, message, payload


@dataclass(frozen=True)
class Closed:
    """A range that was closed: it began and ended within these times (ns)."""

    before_start: int
    after_start: int
    before_end: int
    after_end: int


@dataclass
class Truth:
    """All that the processes of one program wrote."""

    closed: dict[Key, Closed] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)  # process id -> when it said so first
    primary: int | None = None
    code: int | None = None  # the exit code that the first process was about to return, and when
    ended: int | None = None

    @property
    def last(self) -> int:
        """When something was noted last."""
        return max(
            [closed.after_end for closed in self.closed.values()] + [*self.began.values(), self.ended or 0],
            default=0,
        )


def read(path: Path) -> Truth:
    """Read the log; what is half written at its end does not count."""
    truth = Truth()
    data = path.read_bytes() if path.exists() else b""
    for pid, thread, number, t0, t1, t2, t3, kind, _, time in RECORD.iter_unpack(
        data[: len(data) // RECORD.size * RECORD.size]
    ):
        if kind == RANGE:
            truth.closed[pid, f"t{thread}", number] = Closed(t0, t1, t2, t3)
        elif kind == HELLO:
            truth.began.setdefault(pid, time)
            if number:
                truth.primary = pid
        elif kind == GOODBYE:
            truth.code, truth.ended = number, time
    return truth


@dataclass(frozen=True)
class Allowed:
    """What may differ between truth and report.

    `killed`: processes killed on the way may have closed a range without noting it, and left ranges open. `until`: only what was
    closed before that time (ns) has to be there. `only`: only the ranges of these processes have to be there. `losses`: what the
    diagnostics count as lost may be missing, and `told` calls more, which the launcher could only say on stderr. `windows`: the
    capture was not open all the time; what overlaps none of its windows must not be there, what overlaps one must. `tree`: every
    process that said something has a row of its own.
    """

    killed: bool = False
    until: int | None = None
    only: frozenset[int] | None = None
    losses: bool = False
    told: int = 0
    windows: bool = False
    tree: bool = True


_RANGES = """
SELECT p.pid AS pid, r.message AS message, r.payload_int AS payload, r.start AS start, r."end" AS "end", r.unfinished AS unfinished
FROM nvtx_ranges r JOIN processes p ON p.process = r.process
"""
_NESTED = 2  # ranges that a program closes before it notes them, where an interrupt ends both
_LOSSES = ("dropped-records", "agent-failed", "spool-lost")


def compare(path: Path, truths: list[Truth], allowed: Allowed) -> list[str]:
    """Open the report, which finishes it, and say what is wrong with it; nothing where all is well."""
    with open_report(path) as report:
        return list(_compare(report, truths, allowed))


def _compare(report: Report, truths: list[Truth], allowed: Allowed) -> list[str]:
    wrong: list[str] = []
    misplaced: list[str] = []
    seen: Counter[Key] = Counter()
    unfinished: Counter[int] = Counter()
    nameless: Counter[int] = Counter()
    closed = {key: one for truth in truths for key, one in truth.closed.items()}
    for row in report.sql(_RANGES).to_pylist():
        if row["unfinished"]:
            unfinished[row["pid"]] += 1
            continue
        if row["message"] is None:
            nameless[row["pid"]] += 1
            continue
        key = row["pid"], row["message"], row["payload"]
        seen[key] += 1
        true = closed.get(key)
        if true is not None and not (
            true.before_start - CLOCK_SLACK_NS <= row["start"] <= true.after_start + CLOCK_SLACK_NS
            and true.before_end - CLOCK_SLACK_NS <= row["end"] <= true.after_end + CLOCK_SLACK_NS
        ):
            misplaced.append(f"{key} is said to last from {row['start']} to {row['end']}, but it was {true}")
    if misplaced:
        wrong.append(f"{len(misplaced)} ranges have wrong times: {misplaced[:3]}")
    if twice := [key for key, count in seen.items() if count > 1]:
        wrong.append(f"{len(twice)} ranges are there more than once: {twice[:3]}")
    extra = Counter((pid, message) for pid, message, payload in seen if (pid, message, payload) not in closed)
    if bad := {key: count for key, count in extra.items() if count > _NESTED * allowed.killed}:
        wrong.append(f"ranges that nobody closed (process, message: how many): {dict(list(bad.items())[:3])}")
    if unfinished and not allowed.killed and not allowed.losses and allowed.until is None:
        wrong.append(f"ranges said to be unfinished, of processes that ended well: {dict(unfinished)}")
    windows = [(row["start"], row["end"]) for row in report.table("capture_windows").to_pylist()]
    if allowed.windows and (
        outside := [key for key in seen if key in closed and not _touches(closed[key], windows)]
    ):
        wrong.append(
            f"{len(outside)} ranges lie in no window, e.g. {outside[0]} {closed[outside[0]]}; windows: {windows}"
        )
    missing = [
        key for key, one in closed.items() if key not in seen and _has_to_be_there(key[0], one, allowed)
    ]
    if allowed.windows:
        missing = [key for key in missing if _lies_in(closed[key], windows)]
    if allowed.tree and not allowed.losses:
        wrong += _without_rows(report, truths)
    diagnostics = report.table("diagnostics").to_pylist()
    excused = (
        sum(row["count"] or 0 for row in diagnostics if row["code"] in _LOSSES) + allowed.told
        if allowed.losses
        else 0
    )
    if len(missing) > excused + sum(nameless.values()):
        said = [f"{row['code']}: {row['message']} ({row['count']})" for row in diagnostics]
        wrong.append(
            f"{len(missing)} closed ranges of {len(closed)} are lost, e.g. {missing[:3]} {closed[missing[0]]}; it says {said}"
        )
    return wrong


def _touches(closed: Closed, windows: list[tuple[int, int]]) -> bool:
    """Whether the range may overlap a window."""
    slack = CLOCK_SLACK_NS
    return any(
        closed.before_start <= end + slack and closed.after_end >= start - slack for start, end in windows
    )


def _lies_in(closed: Closed, windows: list[tuple[int, int]]) -> bool:
    """Whether the range overlaps a window without doubt."""
    slack = CLOCK_SLACK_NS
    return any(
        closed.after_start < end - slack and closed.before_end > start + slack for start, end in windows
    )


def _without_rows(report: Report, truths: list[Truth]) -> Iterator[str]:
    """What the table of processes lacks."""
    rows = {row["pid"]: row for row in report.table("processes").to_pylist()}
    if lacking := [pid for one in truths for pid in one.began if pid not in rows]:
        yield f"no row for the processes {lacking[:5]} of {len(rows)}"
    for one in truths:
        status = rows[one.primary]["exit_status"] if one.primary in rows else None
        if one.code is not None and status is not None and status < 128 and status != one.code:
            yield f"the table of processes says that {one.primary} ended with {status}, not {one.code}"


def _has_to_be_there(pid: int, closed: Closed, allowed: Allowed) -> bool:
    return (allowed.until is None or closed.after_end <= allowed.until) and (
        allowed.only is None or pid in allowed.only
    )


def alive_in(folder: Path) -> list[int]:
    """The processes that work in this folder; a program of the suite never leaves it."""
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                if Path(f"/proc/{entry.name}/cwd").samefile(folder):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found
