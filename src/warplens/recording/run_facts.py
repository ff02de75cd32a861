"""Writes the facts of a run, and its notes, to `launch.json` in the spool."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from warplens.disk import files
from warplens.recording import facts

_MEASURED = ("nvtx",)  # sources whose cost for one record is measured where they record
ROOM = 16384  # launch.json is padded to it, so that its end can be written even when the disk has become full


class RunFacts:
    """`saved` is False if the facts, diagnostics among them, could not be written into the spool."""

    def __init__(
        self,
        spool: Path,
        command: Sequence[str],
        traces: Iterable[str],
        job: str | None,
        *,
        source: str = "launcher",
    ) -> None:
        self.saved = True
        self.diagnostics: list[dict[str, Any]] = []
        self._path = spool / "launch.json"
        self._source = source
        self._facts: dict[str, Any] = {
            "command": list(command),
            "host": facts.host_name(),
            "boot_id": facts.boot_id(),
            "job": job,
            "pid": None,
            "start_ns": 0,
            "end_ns": 0,
            "primary_end_ns": 0,
            "exit_status": None,
            "sources": {
                name: {"on": True, **({"cost_ns": None} if name in _MEASURED else {})} for name in traces
            },
            "diagnostics": self.diagnostics,
            "target": facts.target(),
        }

    @classmethod
    def load(cls, spool: Path, *, source: str) -> RunFacts | None:
        """Return the facts that were saved in `spool`, to add to them.

        None if there are none.
        """
        try:
            saved = json.loads((spool / "launch.json").read_bytes())
            loaded = cls.__new__(cls)
            loaded.diagnostics = saved["diagnostics"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        loaded.saved, loaded._path, loaded._source, loaded._facts = True, spool / "launch.json", source, saved
        return loaded

    @property
    def start_ns(self) -> int:
        """When the recording began, 0 before that."""
        return int(self._facts["start_ns"])

    def set(self, **values: Any) -> None:
        """Change facts by their names."""
        self._facts.update(values)

    def set_cost(self, trace: str, cost_ns: float | None) -> None:
        """Say what one record of a source costs."""
        self._facts["sources"][trace]["cost_ns"] = cost_ns

    def traces(self, name: str) -> bool:
        """Say whether the source `name` records."""
        return name in self._facts["sources"]

    def note(
        self, severity: str, code: str, message: str, count: int | None = None, time_ns: int | None = None
    ) -> None:
        """Add a row for the report's diagnostics; `time_ns`: when it was, ns of CLOCK_MONOTONIC."""
        row = {
            "severity": severity,
            "code": code,
            "source": self._source,
            "message": message,
            "count": count,
            "time": time_ns,
        }
        self.diagnostics.append(row)

    def forget(self, code: str) -> None:
        """Take the rows of a code out again: what they say has changed."""
        self.diagnostics[:] = [row for row in self.diagnostics if row["code"] != code]

    def save(self) -> None:
        """Write all to the file, in one step where there is room for two."""
        text = json.dumps(self._facts).ljust(ROOM)
        try:
            files.write(self._path, text)
            self.saved = True
        except OSError as error:
            self.saved = _overwrite(self._path, text)
            if not self.saved:
                # never harms the program: the report then lacks these facts
                self.note(
                    "warning",
                    "launch-facts",
                    f"The facts of the run could not be written to {self._path}: {error.strerror}.",
                )


def _overwrite(path: Path, text: str) -> bool:
    """Write `text` over the file's contents where it has the room: that works on a full disk."""
    try:
        with files.update(path) as file:
            room = os.fstat(file.fileno()).st_size
            if len(text.rstrip()) > room:
                return False
            file.write(text.rstrip().ljust(room).encode("ascii"))
    except OSError:
        return False
    return True
