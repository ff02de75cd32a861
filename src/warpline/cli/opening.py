"""Opens the report that a command asks about: behind a progress bar, and saying which recordings it lacks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from warpline.cli.finishing import progress_bar
from warpline.cli.telling import tell

if TYPE_CHECKING:
    from warpline.query import Report


@contextmanager
def opened(path: Path, *, say: bool = True) -> Iterator[Report]:
    """Yield the report at `path`; unless `say` is false, a warning on stderr names each recording that is not in it."""
    from warpline.query.report import Report
    from warpline.report.store import open_store

    with progress_bar() as progress:
        stored = open_store(path, progress)
    if say:
        for text in stored.waiting:
            tell(f"warpline: warning: not in this report: {text}")
    with Report(stored) as report:
        yield report
