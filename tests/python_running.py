"""Programs of any CPython with the hooks of the CPU side in them, without a launcher: how they went, and what the agent wrote."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.capturing import Capture
from tests.process_register import STUB
from tests.spool_records import RawSpool, Record, read_spools
from tools.pythons import candidates, look
from warpline.capture.agent import CpuSettings

GIL, GC, IMPORTS, FUNCTIONS, PYTHON_CALLS, PYTHON_EVENTS = (1 << bit for bit in range(5, 11))
HOLD, WAIT, BRIEF = 1, 2, 3  # GilAction
FUNCTION, COLLECTION, IMPORT, EXCEPTION, WARNING, TASK = range(1, 7)  # SpanKind
GIL_UNKNOWN, BOOTSTRAP, NOT_FOUND = 14, 15, 16  # CpuNotice
CPU_STUB = STUB.with_name("libwarpline_preload_cpu.so")
PATIENCE_S = 100


@cache
def interpreters() -> list[str]:
    """The CPythons of this machine: one path for each minor version, and the system's own."""
    found: dict[tuple[Any, ...], str] = {}
    for path in [*candidates(), Path("/usr/bin/python3")]:
        seen = look(path) if path.exists() else None
        if seen is not None:
            found.setdefault((seen[0], path.resolve().is_relative_to("/usr/bin")), str(path))
    return [found[key] for key in sorted(found)]


def version_of(python: str) -> tuple[int, int]:
    """Return major and minor."""
    seen = look(Path(python))
    assert seen is not None
    return seen[0]


@dataclass
class PythonRun:
    """One run, of a process and what it started."""

    status: int
    stdout: str
    stderr: str
    spools: list[RawSpool]

    def of(self, kind: str) -> list[Record]:
        """Records of one type, of all processes."""
        return [record for spool in self.spools for record in spool.of(kind)]

    def spans(self, kind: int) -> list[Record]:
        """What Python did, of one kind."""
        return [record for record in self.of("python_span") if record["domain"] == kind]

    def names(self, kind: int) -> list[str | None]:
        """Their names."""
        return [record.name for record in self.spans(kind)]

    def gil(self, *actions: int) -> list[Record]:
        """Who had the GIL, or waited for it."""
        return [record for record in self.of("gil") if record["domain"] in actions]

    def notices(self, notice: int | None = None) -> list[str | None]:
        """What was told of the recording itself."""
        return [record.name for record in self.of("cpu_notice") if notice in (None, record["notice"])]


class PythonPrograms:
    """Runs programs below `folder`, each recording into a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def capture(self, flags: int, **settings: Any) -> Capture:
        """A control file for the next run. `settings`: those of CpuSettings, and `open`."""
        number = len(list(self.folder.glob("spool*")))
        is_open = settings.pop("open", True)
        cpu = CpuSettings(**{"flags": flags, "gil_threshold_ns": 10_000, **settings})
        capture = Capture(self.folder / f"spool{number}", cpu=cpu, open=is_open)
        (capture.spool / "processes.log").touch()
        return capture

    def environment(self, capture: Capture, **variables: str) -> dict[str, str]:
        """What makes a program record into it."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WARPLINE_"))}
        return {
            **kept,
            "LD_PRELOAD": str(CPU_STUB),
            "WARPLINE_SPOOL": str(capture.spool),
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }

    def run(
        self, command: Sequence[str | Path], flags: int, stdin: str = "", capture: Capture | None = None, **variables: str
    ) -> PythonRun:
        """Run a command to its end."""
        capture = capture or self.capture(flags)
        done = subprocess.run(
            [str(word) for word in command],
            env=self.environment(capture, **variables),
            cwd=self.folder,
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
        return PythonRun(done.returncode, done.stdout, done.stderr, read_spools(capture.spool))

    def bare(self, command: Sequence[str | Path], stdin: str = "", **variables: str) -> subprocess.CompletedProcess[str]:
        """The same without us."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WARPLINE_"))}
        return subprocess.run(
            [str(word) for word in command],
            env={**kept, "PYTHONDONTWRITEBYTECODE": "1", **variables},
            cwd=self.folder,
            input=stdin,
            text=True,
            capture_output=True,
            check=False,
            timeout=PATIENCE_S,
        )
