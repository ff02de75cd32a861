"""Programs of any CPython with the hooks of the CPU side in them, without a launcher: how they went, and what the agent wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.support.programs.capturing import Capture
from tests.support.programs.process_register import STUB
from tests.support.reports.spool_records import RawSpool, Record, read_spools
from warplens.recording.agent.library import CpuSettings

GIL, GC, IMPORTS, FUNCTIONS, PYTHON_CALLS, PYTHON_EVENTS = (1 << bit for bit in range(5, 11))
HOLD, WAIT, BRIEF = 1, 2, 3  # GilAction
FUNCTION, COLLECTION, IMPORT, EXCEPTION, WARNING, TASK, LOCK, PAUSE = range(1, 9)  # SpanKind
GIL_UNKNOWN, BOOTSTRAP, NOT_FOUND, OLDER = 14, 15, 16, 19  # CpuNotice
ROOT = Path(__file__).resolve().parents[3]
CPU_STUB = STUB.with_name("libwarplens_preload_cpu.so")
PATIENCE_S = 100


@cache
def _names() -> dict[str, str]:
    """Paths, each with the name of its version: `3.14`, free-threaded `3.14t`."""
    tool = ROOT / "tools" / "pythons.py"
    listed = subprocess.run([sys.executable, str(tool)], capture_output=True, text=True, check=True).stdout
    return {path: name for name, _, path in (line.partition(" ") for line in listed.splitlines())}


@cache
def _versions() -> dict[str, tuple[int, int]]:
    numbers = {path: tuple(map(int, name.rstrip("t").split(".")[:2])) for path, name in _names().items()}
    return {path: (major, minor) for path, (major, minor) in numbers.items()}


@cache
def interpreters() -> list[str]:
    """The CPythons of this machine, one of each minor version, with and without a GIL, and the one that Debian links into one file."""
    system = Path("/usr/bin/python3")
    own = (
        [str(system)]
        if _is_static(system) and system.resolve() not in map(Path.resolve, map(Path, _versions()))
        else []
    )
    return [*_versions(), *own]


def is_free_threaded(python: str) -> bool:
    """Whether it was built to run without a GIL."""
    return _names().get(python, "").endswith("t")


def free_threaded() -> list[str]:
    """Those of them."""
    return [path for path in interpreters() if is_free_threaded(path)]


def representatives(*, gil: bool = False) -> list[Any]:
    """The same as parameters of a test, of which the newest and our own run each time: the others are exhaustive.

    `gil`: only those with a GIL, for what it does. Of those without one the newest release runs each time, too.
    """
    chosen = [path for path in interpreters() if not (gil and is_free_threaded(path))]
    newest = max(
        (version for path, version in _versions().items() if not is_free_threaded(path)), default=None
    )
    kept = {
        path
        for path in chosen
        if _versions().get(path) in (newest, sys.version_info[:2]) and not is_free_threaded(path)
    }
    kept |= {path for path in free_threaded()[:1] if path in chosen}
    return [
        pytest.param(path, marks=() if path in kept or not kept else pytest.mark.exhaustive)
        for path in chosen
    ]


def _is_static(python: Path) -> bool:
    return python.exists() and b"PySys_AddAuditHook" in python.read_bytes()


def version_of(python: str) -> tuple[int, int]:
    """Return major and minor."""
    if python in _versions():
        return _versions()[python]
    asked = subprocess.run(
        [python, "-c", "import sys; print(*sys.version_info[:2])"], capture_output=True, text=True, check=True
    )
    major, minor = map(int, asked.stdout.split())
    return major, minor


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
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WARPLENS_"))
        }
        return {
            **kept,
            "LD_PRELOAD": str(CPU_STUB),
            "WARPLENS_SPOOL": str(capture.spool),
            "PYTHONDONTWRITEBYTECODE": "1",
            **variables,
        }

    def run(
        self,
        command: Sequence[str | Path],
        flags: int,
        stdin: str = "",
        capture: Capture | None = None,
        **variables: str,
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

    def bare(
        self, command: Sequence[str | Path], stdin: str = "", **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """The same without us."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "WARPLENS_"))
        }
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
