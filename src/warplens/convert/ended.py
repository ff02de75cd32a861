"""Converts processes that ended during the recording, each as a whole.

Small ones are converted together, as at the end of a recording.
What is known of them then must be what is known at the end; `ProcessWriter.check` compares.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from warplens.convert.processes import ProcessWriter, Spool
from warplens.convert.windows import Windows
from warplens.errors import SpoolError
from warplens.handover import pending as pendings
from warplens.spool.clock import ClockReading
from warplens.spool.layout import Head
from warplens.spool.reader import Bounds, identify
from warplens.spool.windows import CaptureWindows
from warplens.storage.writer import PartWriter

_LEAST = 8 << 20  # bytes of spools that are worth it


class _Whole(NamedTuple):
    """The spool of a process that has ended."""

    spool: Spool
    head: Head


@dataclass
class Ended:
    """Those of one recording, written into `part`.

    `processes` has what was converted, and continues when the recording is over.
    """

    part: PartWriter
    processes: ProcessWriter = field(init=False)
    _waiting: dict[str, _Whole] = field(default_factory=dict)
    # names of spools that are read when the recording is over
    _left: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.processes = ProcessWriter(self.part)

    def look(self, spools: Iterable[Path], followed: Container[str]) -> None:
        """Look which spools are those of processes that have ended; some are `followed` by others."""
        for path in spools:
            name = path.name
            if name in self._left or name in self.processes.converted or name in self._waiting:
                continue
            if name in followed or pendings.living_writer(path) is not None:
                continue
            try:
                head, process, layouts = identify(path)
            except SpoolError:
                self._left.add(name)
                continue
            # Of a process that was killed, the launcher knows at the end when that was.
            if head.end_ns == 0 or head.buffered:
                self._left.add(name)
            else:
                self._waiting[name] = _Whole(Spool(path, process, layouts), head)

    def __contains__(self, name: str) -> bool:
        """Say whether the process with this spool file is or will be converted here."""
        return name in self._waiting or name in self.processes.converted

    @property
    def worth_it(self) -> bool:
        """Whether enough processes have ended."""
        return bool(self._waiting) and sum(one.head.chunk_end for one in self._waiting.values()) >= _LEAST

    def step(
        self,
        keys: Mapping[str, int],
        capture: CaptureWindows,
        samples: list[ClockReading],
        pace: Callable[[], bool],
    ) -> bool:
        """Convert those that ended before the clocks were read last; say whether there was any.

        `keys`: of the processes that have one by now. `pace` is called now and then, and may wait;
        where it says that the recording is over, no other process is begun.
        """
        windows = Windows(capture)
        bounds = Bounds(windows=windows.spans(), only=windows.only(), capture=capture)
        self.processes.begin(samples)
        done, last = False, -1
        for name, key in sorted(keys.items(), key=lambda item: item[1]):
            one = self._waiting.get(name)
            if one is None or not _is_on(one.head, samples) or not pace():
                continue
            if key != last + 1:
                self.processes.flush()  # rows of another process come in between
            self.processes.add(one.spool, key, bounds, tell=lambda part: _wait(pace))
            del self._waiting[name]
            done, last = True, key
        self.processes.flush()
        return done


def _wait(pace: Callable[[], bool]) -> None:
    pace()


def _is_on(head: Head, samples: list[ClockReading]) -> bool:
    """Say whether the clocks were read after a process ended.

    Its times are corrected as at the end then.
    """
    if head.clock.kind == "monotonic" or not samples:
        return head.clock.kind == "monotonic"
    return head.clock.ns(samples[-1].counter) > head.end_ns
