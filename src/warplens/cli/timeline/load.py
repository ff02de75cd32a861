"""Reads the rows of a terminal timeline from a report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.analysis.cpu.occupancy import ThreadActivity, cpu_threads
from warplens.analysis.gpu.occupancy import api_threads
from warplens.analysis.intrakernel.occupancy import inside_launches
from warplens.analysis.occupancy import Window, crowd, mark_cells
from warplens.cli.options.matching import matches, process_name
from warplens.cli.printing.words import counted
from warplens.cli.timeline.bars import bars_of
from warplens.cli.timeline.cpu import ROWS, cpu_rows
from warplens.cli.timeline.cuda import api_tracks, gpu_groups
from warplens.cli.timeline.gauges import gauges
from warplens.cli.timeline.inside import inside_groups
from warplens.cli.timeline.model import Band, Crowd, Group, Mark, Picture, Track
from warplens.cli.timeline.ranges import IndexedRanges, Ranges, lanes_of
from warplens.cli.timeline.work import IndexedWork, Work
from warplens.errors import MissingData, ReportError
from warplens.timeline.names import rank_label, task_label

if TYPE_CHECKING:
    from warplens.report import Report

_Key = tuple[int, int | None, int | None]  # process, thread (null: its start/end ranges, or a task's), task
# What PyPI nvtx (and ours) gives to ranges of no colour. Where nothing has another one, colours by name tell more.
_DEFAULT_COLOR = 0x0000FF
_OF_MANY = 3  # tracks of very many that are alike
_NONE = {"ranges": 0, "lanes": 0, "busy": 0}


@dataclass(frozen=True)
class Wish:
    """The user's choice: `processes` and `threads` by id or part of a name (empty: all), and limits of each kind.

    `fold`: of more tracks that are alike than those, a few. `rows`: of the CPU side, which (names of `cpu.ROWS`); `cpu`: below how many
    threads, the busiest. `inside`: a part of the names of launches whose inside to show; None: that of a launch that is alone there.
    """

    depth: int = 8
    processes: Sequence[str] = ()
    threads: Sequence[str] = ()
    tracks: int = 24
    fold: bool = True
    tasks: int = 6
    counters: int = 8
    rows: Sequence[str] = tuple(ROWS)
    cpu: int = 8
    inside: str | None = None


class _Loader:
    def __init__(self, report: Report, window: Window, columns: int, wish: Wish) -> None:
        self.report, self.window, self.columns, self.wish = report, window, columns, wish
        self.of_thread: dict[int, list[_Key]] = {}
        self._crowds: dict[int, list[float]] | None = None
        self.folded = 0
        self.alike = ""

    def _read(self) -> None:
        report, window, wish = self.report, self.window, self.wish
        recorded = (
            row for row in report.table("processes").to_pylist() if row["recorded"] is not False
        )  # the others have no track
        self.processes = {row["process"]: row for row in recorded}
        self.threads = {row["thread"]: row for row in report.table("threads").to_pylist()}
        self.tasks = {row["task"]: row for row in report.table("tasks").to_pylist()}
        lanes = lanes_of(report)
        self.ranges = Ranges(report) if lanes is None else IndexedRanges(report, lanes)
        self.work = Work(report) if lanes is None else IndexedWork.of(report, lanes)
        self.facts: dict[_Key, dict[str, Any]] = {
            (row["process"], row["thread"], row["task"]): row for row in self.ranges.tracks(window)
        }
        self.api = api_threads(report, window) if report.tables["cuda_api"] else {}
        self.cpu = (
            {key: seen for key, seen in cpu_threads(report, window).items() if self._shows(seen)}
            if wish.rows
            else {}
        )
        for key in sorted(
            (key for key in self.facts if key[2] is not None), key=lambda key: -int(self.facts[key]["busy"])
        ):
            if key[2] not in self.tasks:
                raise ReportError(
                    f"{report.path} is broken: its ranges name the task {key[2]}, which it lacks"
                )
            self.of_thread.setdefault(self.tasks[key[2]]["thread"], []).append(key)

    def picture(self) -> Picture:
        self._read()
        shown_tasks = {key[2]: key for keys in self.of_thread.values() for key in keys[: self.wish.tasks]}
        marked = mark_cells(
            self.report, self.window, self.columns, tasks=[task for task in shown_tasks if task is not None]
        ).to_pylist()
        for row in marked:
            if row["task"] is None:
                self.facts.setdefault((row["process"], row["thread"], None), _NONE)
        for thread, keys in self.of_thread.items():
            self.facts.setdefault((keys[0][0], thread, None), _NONE)
        for process, thread in (*self.api, *self.cpu):
            self.facts.setdefault((process, thread, None), _NONE)
        kept, hidden = self._kept()
        threads = [key[1] for key in kept if key[1] is not None and (key[0], key[1]) in self.api]
        calls = api_tracks(self.work, self.window, self.columns, threads=threads) if threads else {}
        below = self._below(kept)
        groups: dict[int, Group] = {}
        shown: dict[_Key, Track] = {}
        for key in sorted(kept, key=lambda key: (key[0], key[1] is None, key[1] or 0)):
            group = self._group(groups, key[0])
            shown[key] = self._track(key)
            group.rows.append(shown[key])
            if key[1] in calls:
                group.rows.append(calls[key[1]])
            group.rows += below.get(key[1], []) if key[1] is not None else []
            mine = self.of_thread.get(key[1], []) if key[1] is not None else []
            for task in sorted(mine[: self.wish.tasks], key=lambda task: task[2] or 0):
                shown[task] = self._track(task)
                group.rows.append(shown[task])
            if len(mine) > self.wish.tasks and key[1] is not None:
                group.rows.append(self._crowd(key[1], len(mine) - self.wish.tasks, list(shown_tasks)))
        self._fill(shown, marked)
        unseen = self._gauges(groups)
        gpus, hidden_rows, unseen_metrics = self._gpus()
        within, hidden_warps = inside_groups(
            self.report,
            self.window,
            self.columns,
            name=self.wish.inside,
            most=self.wish.tracks,
            depth=self.wish.depth,
        )
        if not groups and not gpus and self._whole():
            return self._longest_inside()
        gpus += within
        if not groups and not gpus:
            raise MissingData(self._nothing())
        return Picture(
            f"{self.report.name}: {counted(len(self.processes), 'process')}, {counted(len(self.threads), 'thread')}",
            self.window[0] - self.report.origin,
            self.window[1] - self.report.origin,
            columns=self.columns,
            groups=[*(groups[process] for process in sorted(groups)), *gpus],
            hidden=hidden + hidden_rows + hidden_warps,
            alike=self.alike,
            hidden_gauges=unseen + unseen_metrics,
            folded=self.folded,
            unfinished=any(
                bar.unfinished for track in shown.values() for lane in track.lanes for bar in lane
            ),
        )

    def _whole(self) -> bool:
        """Whether nobody asked for a part of the report."""
        return (
            self.wish.inside is None
            and not (self.wish.processes or self.wish.threads)
            and self.window == self.report.span
        )

    def _longest_inside(self) -> Picture:
        """What a report with only launches that recorded inside shows of itself.

        All of it would be next to nothing of each.
        """
        opened = inside_launches(self.report, None)
        if not opened:
            raise MissingData(self._nothing())
        window, name = (opened[0]["start"], opened[0]["end"]), str(opened[0]["name"] or "kernel")
        picture = load(self.report, window, self.columns, wish=replace(self.wish, inside=name))
        return replace(picture, launches=sum(not (window[0] <= row["start"] < window[1]) for row in opened))

    def _kept(self) -> tuple[list[_Key], int]:
        """Return the threads and start/end tracks to show, and how many of those wanted are left out."""
        for process, thread, _ in self.facts:
            if process not in self.processes or not (thread is None or thread in self.threads):
                raise ReportError(
                    f"{self.report.path} is broken: its ranges and marks name a process or thread that it lacks"
                )
        wanted = [key for key in self.facts if key[2] is None and self._wanted(key)]

        def busy(key: _Key) -> int:
            tasks = self.of_thread.get(key[1], [])[:1] if key[1] is not None else []
            calls = 0 if key[1] is None else self.api.get((key[0], key[1]), 0)
            return max(
                calls, self._cpu_busy(key), *(int(self.facts[each]["busy"] or 0) for each in (key, *tasks))
            )

        order = sorted(wanted, key=lambda key: -busy(key))
        kept = self._folded(order)[: self.wish.tracks] if self.wish.fold else order[: self.wish.tracks]
        return kept, len(wanted) - len(kept)

    def _folded(self, keys: list[_Key]) -> list[_Key]:
        """Leave out most of what is alike if that alone would fill the picture.

        For example thousands of short processes.
        """
        looks = [self._look(key) for key in keys]
        count = Counter(looks)
        seen: Counter[str] = Counter()
        kept = []
        for key, look in zip(keys, looks, strict=True):
            seen[look] += 1
            if count[look] <= self.wish.tracks or seen[look] <= _OF_MANY:
                kept.append(key)
        crowds = [
            f"{number - _OF_MANY:,} like {look}"
            for look, number in count.most_common(3)
            if number > self.wish.tracks
        ]
        self.alike = ", ".join(crowds)
        return kept

    def _look(self, key: _Key) -> str:
        """Return what a track is called, without numbers."""
        process, thread, _ = key
        name = str(self.threads[thread]["name"] or "") if thread is not None else "start/end"
        command = str(self.processes[process]["command"] or process_name(self.processes[process]))
        own = Path(command.split(" ", 1)[0]).name
        return re.sub("[0-9]+", "#", command if name in ("", own, own[:15]) else f"{name} of {command}")

    def _shows(self, seen: ThreadActivity) -> bool:
        return any(name.split()[0] in self.wish.rows for name in seen.lanes)

    def _cpu_busy(self, key: _Key) -> int:
        return self.cpu[key[0], key[1]].busy if key[1] is not None and (key[0], key[1]) in self.cpu else 0

    def _below(self, kept: list[_Key]) -> dict[int, list[Track | Band]]:
        """Return the CPU side of the threads shown.

        Of the busiest all, of the others their states alone.
        """
        known = [
            key for key in kept if key[1] is not None and (key[0], key[1]) in self.cpu
        ]  # the busiest first
        tracks_of: dict[int, list[Track | Band]] = {}
        for keys, rows in (
            (known[: self.wish.cpu], self.wish.rows),
            (known[self.wish.cpu :], [row for row in self.wish.rows if row == "states"]),
        ):
            seen = {key[1]: self.cpu[key[0], key[1]] for key in keys if key[1] is not None}
            tracks_of.update(
                cpu_rows(self.report, self.window, self.columns, seen=seen, rows=rows, depth=self.wish.depth)
            )
        self.folded = sum(
            any(row != "states" for row in self.cpu[key[0], key[1] or 0].lanes)
            for key in known[self.wish.cpu :]
        )
        return tracks_of

    def _gpus(self) -> tuple[list[Group], int, int]:
        """Return the GPUs of the chosen processes; none if threads are chosen."""
        if self.wish.threads:
            return [], 0, 0
        several = len(self.processes) > 1
        labels = {
            key: f"pid {row['pid']}" if several else process_name(row)
            for key, row in self.processes.items()
            if matches(row, "pid", self.wish.processes, name=process_name(row))
        }
        return gpu_groups(
            self.report,
            self.work,
            self.window,
            columns=self.columns,
            processes=labels,
            most=self.wish.tracks,
            counters=self.wish.counters,
        )

    def _wanted(self, key: _Key) -> bool:
        process, thread, _ = key
        if not matches(
            self.processes[process], "pid", self.wish.processes, name=process_name(self.processes[process])
        ):
            return False
        if not self.wish.threads:
            return True
        return thread is not None and matches(
            self.threads[thread], "tid", self.wish.threads, name=self.threads[thread]["name"] or ""
        )

    def _group(self, groups: dict[int, Group], process: int) -> Group:
        if process not in groups:
            hosts = len({row["host"] for row in self.processes.values()}) > 1
            groups[process] = Group(_process_label(self.processes[process], hosts))
        return groups[process]

    def _track(self, key: _Key) -> Track:
        _, thread, task = key
        if task is not None:
            label, id = task_label(self.tasks[task]), ""
        else:
            label, id = ("start/end", "") if thread is None else _thread_label(self.threads[thread])
        lanes = int(self.facts[key]["lanes"])
        depth = self.wish.depth
        return Track(
            label,
            id,
            [[] for _ in range(min(lanes, depth))],
            deeper=max(lanes - depth, 0),
            task=task is not None,
        )

    def _crowd(self, thread: int, number: int, shown: list[int | None]) -> Crowd:
        if self._crowds is None:
            self._crowds = {}
            for row in crowd(
                self.report, self.window, self.columns, but=[task for task in shown if task is not None]
            ).to_pylist():
                self._crowds.setdefault(row["thread"], [0.0] * self.columns)[row["col"]] = row["number"]
        return Crowd(number, tuple(self._crowds.get(thread, [0.0] * self.columns)))

    def _fill(self, shown: dict[_Key, Track], marked: list[dict[str, Any]]) -> None:
        for row in marked:
            track = shown.get((row["process"], row["thread"], row["task"]))
            if track is not None:
                track.marks.append(Mark(int(row["col"]), row["message"] or "", int(row["number"])))
        threads = [thread for _, thread, _ in shown if thread is not None]
        tasks = [task for _, _, task in shown if task is not None]
        collected: dict[tuple[_Key, int], list[dict[str, Any]]] = {}
        for row in self.ranges.cells(self.window, self.columns, self.wish.depth, threads, tasks):
            key = (row["process"], row["thread"], row["task"])
            if key in shown:
                collected.setdefault((key, row["depth"]), []).append(row)
        for (key, lane), rows in collected.items():
            if lane < 0:
                raise ReportError(f"{self.report.path} is broken: it has ranges of the depth {lane}")
            shown[key].lanes[lane] = bars_of(rows)
        for track in shown.values():
            track.lanes = [lane for lane in track.lanes if lane]
        if {bar.color for track in shown.values() for lane in track.lanes for bar in lane} == {
            _DEFAULT_COLOR
        }:
            for track in shown.values():
                track.lanes = [[replace(bar, color=None) for bar in lane] for lane in track.lanes]

    def _gauges(self, groups: dict[int, Group]) -> int:
        """Put counters under their processes; return how many have no room."""
        if self.wish.threads:
            return 0
        unseen = 0
        gauges_of = gauges(self.report, self.window, self.columns)
        for process, items in gauges_of.items():
            row = self.processes.get(process)
            if row is None:
                raise ReportError(f"{self.report.path} is broken: its counters name a process that it lacks")
            if matches(row, "pid", self.wish.processes, name=process_name(row)):
                self._group(groups, process).gauges = items[: self.wish.counters]
                unseen += max(len(items) - self.wish.counters, 0)
        return unseen

    def _nothing(self) -> str:
        named = (*self.wish.processes, *self.wish.threads)
        if named:
            return (
                f"no process or thread of {self.report.path.name} with ranges is called {', '.join(named)}."
            )
        inside = inside_launches(self.report, self.window)
        more = (
            f" {counted(len(inside), 'launch')} recorded inside their kernels: --inside {inside[0]['name'] or 'kernel'}."
            if inside
            else ""
        )
        return f"{self.report.path.name} has no NVTX ranges, marks or counters and nothing of CUDA or the CPU side in this time.{more}"


def load(report: Report, window: Window, columns: int, wish: Wish) -> Picture:
    """Ask the report for what a picture of `window` in `columns` columns needs.

    Raises MissingData if nothing is left.
    """
    return _Loader(report, window, columns, wish=wish).picture()


def _process_label(row: dict[str, Any], hosts: bool) -> str:
    where = f" on {row['host']}" if hosts else ""
    return f"{rank_label(row)}{row['command'] or process_name(row)} (pid {row['pid']}{where})"


def _thread_label(row: dict[str, Any]) -> tuple[str, str]:
    return (row["name"], str(row["tid"])) if row["name"] else (str(row["tid"]), "")
