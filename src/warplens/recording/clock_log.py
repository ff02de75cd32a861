"""Logs clock readings to `clocks.jsonl` in a spool directory.

One line a second; after days it keeps as many lines as after some hours.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from warplens.disk import files
from warplens.recording.agent.library import ClockSample

MOST = 16_384  # lines
_LATEST = 4096  # of them stay as they are
_EARLIER = 4096  # as many stay of all before


class ClockLog:
    """Takes readings in the order of time.

    `missed` counts those that a full disk kept out of the file.
    """

    def __init__(self, path: Path) -> None:
        self.missed = 0
        self._path = path
        self._samples: list[ClockSample] = []

    def add(self, sample: ClockSample) -> None:
        """Write one more line; where there are too many, write the file again with fewer."""
        self._samples.append(sample)
        if len(self._samples) > MOST:
            self._samples = thinned(self._samples, _LATEST, _EARLIER)
            if self._replace():
                return
        try:
            with files.append(self._path) as file:
                file.write(_line(sample).encode())
        except OSError:
            self.missed += 1

    def write_again(self) -> None:
        """Write all lines where the file was deleted with its directory."""
        if self._samples and not self._path.exists():
            self._replace()

    def _replace(self) -> bool:
        try:
            files.write(self._path, "".join(map(_line, self._samples)))
        except OSError:
            return False
        return True


def thinned(samples: Sequence[ClockSample], latest: int, earlier: int) -> list[ClockSample]:
    """Return the `latest` readings, and about `earlier` of those before, at equal distances.

    The first one stays.
    """
    old, new = samples[:-latest], samples[-latest:]
    distance = (old[-1].monotonic - old[0].monotonic) / earlier
    kept: list[ClockSample] = []
    for sample in old:
        if not kept or sample.monotonic - kept[-1].monotonic >= distance:
            kept.append(sample)
    return [*kept, *new]


def _line(sample: ClockSample) -> str:
    return (
        json.dumps({"counter": sample.counter, "monotonic": sample.monotonic, "realtime": sample.realtime})
        + "\n"
    )
