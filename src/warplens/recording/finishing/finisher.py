"""Finishes a report in a child process, so that the traced one never loads the packages for it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from warplens.recording.agent.announce import CUPTI, CUPTI_SEARCH, SPOOL, TOOLS
from warplens.recording.finishing.expendable import how_it_ended

# The child finds this very warplens, then what its own interpreter finds, then what the program had added to sys.path. Before it imports
# anything, it forgets the working directory: a types.py there is the program's.
_CHILD = """
import sys
sys.path[:] = [path for path in sys.path if path]
import importlib, importlib.util, json
request = json.load(sys.stdin)
sys.path += [path for path in request["search"] if path and path not in sys.path]
spec = importlib.util.spec_from_file_location(
    "warplens", request["package"] + "/__init__.py", submodule_search_locations=[request["package"]]
)
sys.modules["warplens"] = importlib.util.module_from_spec(spec)
spec.loader.exec_module(sys.modules["warplens"])
importlib.import_module(request["module"]).main(request)
"""
# What says where modules are; the others could make the child talk, wait or fail.
_KEPT = {
    f"PYTHON{name}"
    for name in (
        "HOME",
        "PATH",
        "PLATLIBDIR",
        "NOUSERSITE",
        "USERBASE",
        "UTF8",
        "DONTWRITEBYTECODE",
        "PYCACHEPREFIX",
    )
}


class Finisher:
    """One child that finishes one report.

    OSError if it cannot be started. `died` says how, where it ended without an answer.

    `module` is the one whose `main` the child calls; `passed` are descriptors that it gets.
    """

    def __init__(
        self,
        request: Mapping[str, Any],
        lock: int | None,
        *,
        module: str = "warplens.cli.finish_child",
        passed: tuple[int, ...] = (),
    ) -> None:
        self.died: str | None = None
        self._answer: dict[str, Any] | None = None
        self._lock = threading.Lock()
        package = str(Path(__file__).resolve().parents[2])
        text = json.dumps({**request, "module": module, "lock": lock, "package": package, "search": sys.path})
        with _scratch() as question:
            question.write(text.encode())
            question.flush()
            question.seek(0)
            self._output, self._errors = _scratch(), _scratch()
            try:
                self._child = subprocess.Popen(
                    [python(), "-c", _CHILD],
                    stdin=question,
                    stdout=self._output,
                    stderr=self._errors,
                    env=clean_environment(os.environ),
                    pass_fds=passed if lock is None else (*passed, lock),
                    start_new_session=True,  # Ctrl-C is for the program
                )
            except BaseException:
                self._output.close()
                self._errors.close()
                raise

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._child.pid

    def kill(self) -> None:
        """End it at once; what it would have done stays undone."""
        self._child.kill()
        self.wait()

    def done(self) -> bool:
        """Say whether it has ended, without waiting."""
        if self._child.poll() is not None:
            self._read()
        return self._answer is not None

    def wait(self) -> dict[str, Any]:
        """Wait for its end.

        Return what it found: `silent` (paths), `finished`, and `said`, lines for people. Empty
        where it died.
        """
        self._child.wait()
        self._read()
        return self._answer or {}

    def _read(self) -> None:
        with self._lock:
            if self._answer is not None:
                return
            with self._output as output, self._errors as errors:
                output.seek(0)
                errors.seek(0)
                try:
                    answer = json.loads(output.read())
                except ValueError:
                    answer = {}
                last = errors.read().decode(errors="replace").strip().rpartition("\n")[2]
            self._answer = answer if isinstance(answer, dict) else {}
            if not self._answer:
                self.died = how_it_ended(self._child.returncode) + (f", {last}" if last else "")


def python() -> str:
    """Return the interpreter that can run the child.

    FileNotFoundError where this program is none, or an application made of one.
    """
    name = sys.executable or ""
    if "python" not in os.path.basename(name).lower() or getattr(sys, "frozen", False):
        raise FileNotFoundError(2, "this program is not a Python interpreter", name)
    return name


def clean_environment(base: Mapping[str, str]) -> dict[str, str]:
    """Return `base` without what would record the child, or change how Python behaves in it."""
    recording = (*TOOLS, CUPTI, CUPTI_SEARCH, SPOOL)
    return {
        name: value
        for name, value in base.items()
        if name not in recording and (not name.startswith("PYTHON") or name in _KEPT)
    }


def _scratch() -> IO[bytes]:
    """A file that needs no disk, where the system has such."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("warplens"), "w+b")
    return tempfile.TemporaryFile()
