"""Decides which processes are converted during the recording, and when."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from warplens.convert.cpu.frames import look_up
from warplens.convert.ended import Ended
from warplens.convert.following import Follower, Surprise
from warplens.disk.folder import Folder
from warplens.errors import SpoolError
from warplens.handover import pending as pendings
from warplens.model.tables import TABLES
from warplens.spool import clock as clocks
from warplens.spool import directory as spools
from warplens.spool.process import Process
from warplens.spool.reader import SpoolFile, identify
from warplens.storage import generations
from warplens.storage.manifest import Manifest
from warplens.storage.writer import DURING, PartWriter

_MORE = 1.125  # times as many frames as the last time are worth a look at their symbols
_LEAST = 8 << 20  # bytes of a spool that are worth a slice
_SETTLED_NS = 2_000_000_000  # which process began before which is known by then


class Begun:
    """The part of the recording `note`, as far as it is written; one thread at a time.

    `pace` is called between two slices, and may wait; it returns whether to continue.
    """

    def __init__(self, note: pendings.Pending, pace: Callable[[], bool] = lambda: True) -> None:
        self._pace = pace
        self._spool = Path(note.spool)
        self._gives_back = not note.keep_raw
        self.part = PartWriter(note.report, note.id, note.host, during=True)
        self.ended = Ended(self.part)
        self.followers: dict[str, Follower] = {}
        self._left: set[str] = set()  # files that are read when the recording is over
        self._processes: dict[str, Process] = {}
        self._looked_up: dict[str, int] = {}  # frames that were there then

    def step(self, now: int) -> bool:
        """Write what is worth it at the time `now` (ns, CLOCK_MONOTONIC).

        Return whether that was anything.

        Raises Surprise if what was written has to be given up; OSError, pyarrow's errors if nothing can be written.
        """
        files = spools.spool_files(self._spool)
        self.ended.look(files, {name for name, one in self.followers.items() if one.wrote})
        large = [path for path in files if self._is_large(path)]
        if not large and not self.ended.worth_it:
            return False
        keys = self._keys(files, now)
        worth_it = self._worth_it(large, keys, now)
        if not worth_it and not self.ended.worth_it:
            return False
        control = spools.read_control(self._spool)
        capture = control.capture if control is not None else None
        if (
            capture is None
            or capture.keep_ns
            or any(window.closed_by == "keep" for window in capture.windows)
        ):
            raise Surprise("not everything that is recorded is kept")
        if not capture.windows or capture.windows[-1].end:
            return False  # whether what is open now will be recorded is known when it ends
        samples = clocks.read_samples(self._spool / "clocks.jsonl")
        done = self.ended.worth_it and self.ended.step(keys, capture, samples, self._pace)
        for path in worth_it:
            try:
                done |= self.followers[path.name].step(now, samples, self._pace)
                self._look_up(path)
                while self._gives_back and self._pace() and self.followers[path.name].give_back():
                    pass
            except Surprise:
                if self.followers[path.name].wrote:
                    raise
                self.followers.pop(path.name).close()
                self._left.add(path.name)
        return done

    def abandon(self) -> None:
        """Remove what was written."""
        for follower in self.followers.values():
            follower.close()
        self.part.abandon()

    def _look_up(self, path: Path) -> None:
        """Look up the native code of a process that continues, if there is much that is new."""
        with SpoolFile(path) as spool:
            frames = len(spool.wide.get("cpu_frame", ()))
            if frames > _MORE * self._looked_up.get(path.name, 0):
                self._looked_up[path.name] = frames
                look_up(spool.wide, spool.strings, spool.process, symbols=self.ended.processes.symbols)

    def _is_large(self, path: Path) -> bool:
        """Say whether a file is worth a follower, or has one."""
        name = path.name
        if name in self.ended:
            if (follower := self.followers.pop(name, None)) is not None:  # it has written nothing
                follower.close()
            return False
        return name not in self._left and path.stat().st_size >= _LEAST

    def _worth_it(self, large: Sequence[Path], keys: Mapping[str, int], now: int) -> list[Path]:
        """Return the files that have grown enough, each with a follower."""
        for path in large:
            if path.name not in self.followers and path.name in keys:
                self.followers[path.name] = Follower(path, keys[path.name], self.part.write, begun_ns=now)
        return [
            path
            for path in large
            if path.name in self.followers and self.followers[path.name].grown() >= _LEAST
        ]

    def _keys(self, files: Sequence[Path], now: int) -> dict[str, int]:
        """Return the keys of processes by the names of their spool files, as far as they are known.

        As in `Builder`: the launched one comes first.
        """
        primary = spools.read_launch(self._spool).pid
        if primary is None:
            return {}
        for path in files:
            if path.name not in self._processes and spools.is_begun(path):
                try:
                    self._processes[path.name] = identify(path)[1]
                except SpoolError:
                    continue
        order = sorted(
            (process.pid != primary, process.start_ns, name) for name, process in self._processes.items()
        )
        # A launched process that has no spool has the first row all the same.
        return {
            name: self.part.key(number + int(order[0][0]))
            for number, (_, start, name) in enumerate(order)
            if start <= now - _SETTLED_NS
        }


def remove_begun(report: Path, manifest: Manifest) -> None:
    """Remove the files of a killed converter whose part is in the report."""
    with Folder(report) as folder:
        for table in TABLES:
            try:
                folder.remove(
                    f"{generations.file_name(table, pendings.safe(manifest.host), manifest.part, generation=0)}{DURING}"
                )
            except OSError:
                continue
