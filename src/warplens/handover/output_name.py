"""Converts `-o NAME` to the path of the report.

`%p` is the launcher's process id, `%h` the host, `%n` the first free number from 1, `%q{NAME}` a variable of the environment,
`%%` a percent sign. Suffixes of other tools' reports make way for `.warplens`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from warplens.disk.folder import PRIVATE_FOLDER
from warplens.errors import ReportError, UsageError
from warplens.handover.naming import SUFFIX, is_readable
from warplens.handover.wording import COMMAND_LINE, Wording

DEFAULT = "report%n"
FOREIGN = (
    ".nsys-rep",
    ".qdrep",
    ".qdstrm",
    ".sqlite",
    ".json.gz",
    ".json",
)  # Nsight Systems, PyTorch's profiler
_FIELD = re.compile(r"%(q\{([^}]*)\}|.|$)", re.DOTALL)


def expand(
    template: str, *, number: int, host: str, environment: Mapping[str, str], wording: Wording = COMMAND_LINE
) -> str:
    """Return `template` with its %-fields filled in.

    UsageError names a field or variable that does not exist.
    """
    asked = f"{wording.output} {template}"

    def fill(match: re.Match[str]) -> str:
        code, variable = match[1], match[2]
        if code == "p":
            return str(os.getpid())
        if code == "h":
            return host
        if code == "n":
            return str(number)
        if code == "%":
            return "%"
        if variable is not None:
            if variable not in environment:
                raise UsageError(f"{asked}: the variable {variable} is not set.")
            return environment[variable].replace("/", "_")
        raise UsageError(f"{asked}: there is no %{code}. Known are %p, %h, %n, %q{{NAME}} and %%.")

    return _FIELD.sub(fill, template)


def with_suffix(name: str, wording: Wording = COMMAND_LINE) -> Path:
    """Return the report's path for a name as typed.

    `x`, `x.warplens` and `x.nsys-rep` are `x.warplens`, `x.out` stays in the name.
    """
    if name.endswith("/") or name in ("", ".", ".."):
        raise UsageError(
            f"{wording.output} {name}: a report needs a name, e.g. {wording.output} {name.rstrip('/') or '.'}/report1."
        )
    for foreign in (SUFFIX, *FOREIGN):
        if name.endswith(foreign) and Path(name).name != foreign:
            name = name.removesuffix(foreign)
            break
    return Path(name + SUFFIX)


def _refuse_device(path: Path, wording: Wording) -> None:
    """Raise ReportError for `-o /dev/null` and a pipe: the report would lie beside it."""
    try:
        special = path.exists() and not path.is_file() and not path.is_dir()
    except OSError:  # no permission to look: creating the report says so
        return
    if special:
        raise ReportError(
            f"{path} is a device or a pipe, but a report is a directory.\nName another place with "
            f"{wording.output}."
        )


def claim(
    template: str | None,
    *,
    host: str,
    environment: Mapping[str, str] | None = None,
    wording: Wording = COMMAND_LINE,
) -> tuple[Path, bool]:
    """Return the report's absolute path and whether its (empty) directory was created by this call.

    A name with a number goes to the first that is free, even when two launchers look at once. ReportError if the directory
    cannot be created.
    """
    environ = os.environ if environment is None else environment
    template = template or DEFAULT
    numbered = any(match[1] == "n" for match in _FIELD.finditer(template))
    number = 0
    while True:
        number += 1
        name = expand(template, number=number, host=host, environment=environ, wording=wording)
        _refuse_device(Path(name), wording)
        path = with_suffix(name, wording).absolute()
        if not is_readable(path):
            raise ReportError(
                f"{path} is not UTF-8, so the report could not be read.\nName another place with "
                f"{wording.output}."
            )
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.mkdir(PRIVATE_FOLDER)
            return path, True
        except FileExistsError as error:
            if not path.parent.is_dir():
                raise ReportError(
                    f"Cannot create the report {path}: {path.parent} is not a directory."
                ) from error
            if not numbered:
                return path, False
        except OSError as error:
            raise ReportError(
                f"Cannot create the report {path}: {error.strerror}.\nName another place with {wording.output}."
            ) from error
