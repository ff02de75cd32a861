"""Finds the program to run, with the exit codes that shells use if it cannot be found."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from warplens.errors import NotStarted

NOT_FOUND = 127
NOT_EXECUTABLE = 126


def find_program(name: str, environment: Mapping[str, str] | None = None) -> str:
    """Return the path that `name` stands for, searched in PATH as `execvp` does.

    NotStarted says why there is none.
    """
    environ = os.environ if environment is None else environment
    if not name:
        raise NotStarted("The program's name is empty.", NOT_FOUND)
    if "/" in name:
        _check(name, name)
        return name
    refused: NotStarted | None = None
    for directory in environ.get("PATH", os.defpath).split(os.pathsep):
        path = str(Path(directory or ".") / name)
        try:
            _check(path, name)
        except NotStarted as error:
            # what lies behind a directory that we may not enter is as good as not there, as for shells
            if os.access(path, os.F_OK) and not Path(path).is_dir():
                refused = refused or error
            continue
        return path
    if refused is not None:
        raise refused
    hint = (
        f" There is a file of that name here: write ./{name}, or name its interpreter."
        if Path(name).exists()
        else ""
    )
    raise NotStarted(f"Program not found: {name} is in no directory of PATH.{hint}", NOT_FOUND)


def _check(path: str, name: str) -> None:
    try:
        mode = Path(path).stat().st_mode
    except PermissionError as error:
        raise NotStarted(f"No permission to reach the program {path}.", NOT_EXECUTABLE) from error
    except OSError as error:
        raise NotStarted(f"Program not found: {name}: {error.strerror}.", NOT_FOUND) from error
    if stat.S_ISDIR(mode):
        raise NotStarted(f"{path} is a directory, not a program.", NOT_EXECUTABLE)
    if not os.access(path, os.X_OK):
        hint = (
            f" Run it with its interpreter, e.g. python {path}."
            if path.endswith(".py")
            else f" Try chmod +x {path}."
        )
        raise NotStarted(f"{path} is not executable.{hint}", NOT_EXECUTABLE)
