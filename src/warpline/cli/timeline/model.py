"""What the terminal timeline shows: tracks with lanes, lanes with bars, in columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warpline.cli.words import counted
from warpline.errors import MissingData, ReportError
from warpline.query.occupancy import Window, cells, mark_cells, tracks

if TYPE_CHECKING:
    from warpline.query import Report

# A range of so few columns has no room for its name: neighbours of one name are drawn together.
_SMALL = 2


@dataclass(frozen=True)
class Bar:
    """Columns `first` to `last` of a lane: one range (`many` false), or `number` small ones of which `name` took the most time.

    `busy` holds the share of each column's time, 0 to 1.
    """

    first: int
    last: int
    name: str
    domain: str | None
    color: int | None
    many: bool
    number: int
    busy: tuple[float, ...]
    unfinished: bool = False

    @property
    def width(self) -> int:
        """How many columns."""
        return self.last - self.first + 1


@dataclass(frozen=True)
class Mark:
    """Marks of one column; `name` is that of the first."""

    column: int
    name: str
    number: int


@dataclass
class Track:
    """A thread, or the start/end ranges of a process; `deeper` lanes were cut."""

    label: str
    id: str = ""
    ranges: int = 0
    lanes: list[list[Bar]] = field(default_factory=list)
    marks: list[Mark] = field(default_factory=list)
    deeper: int = 0


@dataclass
class Group:
    """A process."""

    label: str
    tracks: list[Track] = field(default_factory=list)


@dataclass
class Picture:
    """All that is drawn. `begin` and `end` are ns from the report's begin; `hidden` counts the tracks that were left out."""

    title: str
    begin: int
    end: int
    columns: int
    groups: list[Group]
    hidden: int = 0
    unfinished: bool = False


def load(
    report: Report,
    window: Window,
    columns: int,
    depth: int,
    *,
    processes: Sequence[str] = (),
    threads: Sequence[str] = (),
    most: int = 24,
) -> Picture:
    """Ask the report for what a picture of `window` in `columns` columns needs.

    `processes`, `threads`: ids, or parts of names, that are wanted; empty: all. `most`: keep so many tracks, the busiest.
    Raises MissingData where nothing is left.
    """
    process_rows = {row["process"]: row for row in report.table("processes").to_pylist()}
    thread_rows = {row["thread"]: row for row in report.table("threads").to_pylist()}
    found: dict[tuple[int, int | None], dict[str, Any]] = {
        (row["process"], row["thread"]): row for row in tracks(report, window).to_pylist()
    }
    marked = mark_cells(report, window, columns).to_pylist()
    for row in marked:
        found.setdefault((row["process"], row["thread"]), {"ranges": 0, "lanes": 0, "busy": 0})
    for process, thread in found:
        if process not in process_rows or not (thread is None or thread in thread_rows):
            raise ReportError(f"{report.path} is broken: its ranges and marks name a process or thread that it lacks")
    wanted = [
        key
        for key in found
        if _matches(process_rows[key[0]], processes, "pid", _process_name(process_rows[key[0]]))
        and (not threads or (key[1] is not None and _matches(thread_rows[key[1]], threads, "tid", thread_rows[key[1]]["name"] or "")))
    ]
    if not wanted:
        filtered = processes or threads
        raise MissingData(
            f"no process or thread of {report.path.name} with ranges is called {', '.join((*processes, *threads))}."
            if filtered
            else f"{report.path.name} has no NVTX ranges or marks in this time."
        )
    kept = set(sorted(wanted, key=lambda key: -int(found[key]["busy"] or 0))[:most])
    shown: dict[tuple[int, int | None], Track] = {}
    groups: list[Group] = []
    owner: dict[int, Group] = {}
    for key in sorted(kept, key=lambda key: (key[0], key[1] is None, key[1] or 0)):
        process, thread = key
        if process not in owner:
            owner[process] = Group(_process_label(process_rows[process], len({row["host"] for row in process_rows.values()}) > 1))
            groups.append(owner[process])
        label, id = ("start/end", "") if thread is None else _thread_label(thread_rows[thread])
        lanes = int(found[key]["lanes"])
        shown[key] = Track(label, id, int(found[key]["ranges"]), [[] for _ in range(min(lanes, depth))], deeper=max(lanes - depth, 0))
        owner[process].tracks.append(shown[key])
    for row in marked:
        track = shown.get((row["process"], row["thread"]))
        if track is not None:
            track.marks.append(Mark(int(row["col"]), row["message"] or "", int(row["number"])))
    wanted_threads = [thread for _, thread in kept if thread is not None]
    collected: dict[tuple[int, int | None, int], list[dict[str, Any]]] = {}
    for row in cells(report, window, columns, depth, wanted_threads).to_pylist():
        if (row["process"], row["thread"]) in shown:
            collected.setdefault((row["process"], row["thread"], row["depth"]), []).append(row)
    for (process, thread, lane), rows in collected.items():
        if lane < 0:
            raise ReportError(f"{report.path} is broken: it has ranges of the depth {lane}")
        shown[process, thread].lanes[lane] = _bars(rows)
    for track in shown.values():
        track.lanes = [lane for lane in track.lanes if lane]
    bars = [bar for track in shown.values() for lane in track.lanes for bar in lane]
    title = f"{report.name}: {counted(len(process_rows), 'process')}, {counted(len(thread_rows), 'thread')}"
    return Picture(
        title,
        window[0] - report.origin,
        window[1] - report.origin,
        columns,
        groups,
        hidden=len(wanted) - len(kept),
        unfinished=any(bar.unfinished for bar in bars),
    )


def _bars(rows: list[dict[str, Any]]) -> list[Bar]:
    """Join neighbouring columns: first those of one range, then small ranges of one name."""
    single: list[list[dict[str, Any]]] = []
    for row in rows:
        last = single[-1][-1] if single else None
        if (
            last is not None
            and row["col"] == last["col"] + 1
            and not _many(row)
            and not _many(last)
            and row["top"]["id"] == last["top"]["id"]
        ):
            single[-1].append(row)
        else:
            single.append([row])
    runs: list[list[list[dict[str, Any]]]] = []
    for columns in single:
        last_run = runs[-1][-1] if runs else None
        joins = last_run is not None and columns[0]["col"] == last_run[-1]["col"] + 1 and _name(columns) == _name(last_run)
        if joins and _small(columns) and last_run is not None and _small(last_run):
            runs[-1].append(columns)
        else:
            runs.append([columns])
    return [_bar([row for columns in run for row in columns], len(run) > 1 or _many(run[0][0])) for run in runs]


def _bar(rows: list[dict[str, Any]], many: bool) -> Bar:
    top = rows[0]["top"]
    number = max(sum(row["top"]["begun"] for row in rows), 1) if many else 1
    unfinished = any(row["top"]["unfinished"] for row in rows)
    busy = tuple(row["busy"] for row in rows)
    return Bar(rows[0]["col"], rows[-1]["col"], top["message"] or "", top["domain"], top["color"], many, number, busy, unfinished)


def _many(row: dict[str, Any]) -> bool:
    # Up to two ranges meet in a column at the edge between them; more are small ones.
    return bool(row["number"] > 2)


def _small(columns: list[dict[str, Any]]) -> bool:
    return len(columns) <= _SMALL


def _name(columns: list[dict[str, Any]]) -> tuple[str | None, str | None]:
    return columns[0]["top"]["message"], columns[0]["top"]["domain"]


def _matches(row: dict[str, Any], wanted: Sequence[str], id: str, name: str) -> bool:
    return not wanted or any(text == str(row[id]) or (not text.isdigit() and text.lower() in name.lower()) for text in wanted)


def _process_name(row: dict[str, Any]) -> str:
    return Path(row["executable"]).name or str(row["command"])


def _process_label(row: dict[str, Any], hosts: bool) -> str:
    rank = "" if row["rank"] is None else f"rank {row['rank']}: "
    where = f" on {row['host']}" if hosts else ""
    return f"{rank}{row['command'] or _process_name(row)} (pid {row['pid']}{where})"


def _thread_label(row: dict[str, Any]) -> tuple[str, str]:
    return (row["name"], str(row["tid"])) if row["name"] else (str(row["tid"]), "")
