"""What a recording is asked to do, and what it does when nothing is asked."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Wait = Literal["primary", "all"]


@dataclass(frozen=True, slots=True)
class CaptureOptions:
    """One recording.

    `trace` names the sources that record; `environment` is added to the program's environment; `wait` says whether the
    recording ends with the launched process (`primary`) or with its last descendant (`all`); `spool_dir` overrides the
    choice of a node-local directory; `keep_raw` keeps the spool in the report.
    """

    trace: tuple[str, ...] = ("nvtx",)
    environment: tuple[tuple[str, str], ...] = ()
    wait: Wait = "all"
    spool_dir: Path | None = None
    keep_raw: bool = False


# The one place where the defaults are written down: what a user gets without any option.
DEFAULTS = CaptureOptions()
