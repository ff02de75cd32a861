"""Finishes a recording: its spool becomes a part of a report, once, whatever interrupts it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from warpline.report import pending as pendings
from warpline.report.manifest import Manifest


def finish(
    source: pendings.Pending | str | os.PathLike[str],
    report: str | os.PathLike[str],
    *,
    keep_raw: bool = False,
    progress: Callable[[str, float], None] | None = None,
) -> Manifest:
    raise NotImplementedError  # follows
