"""Opens the report, or a window of it, for a command.

Shows a progress bar, and names the recordings that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from warplens.cli.finishing import progress_bar
from warplens.cli.printing.messages import tell
from warplens.handover.naming import is_report

if TYPE_CHECKING:
    from warplens.report import Report


window_option = click.option(
    "--window",
    type=click.IntRange(1),
    metavar="N",
    help="Only window N of the capture; rows that cross its edges are cut. `warplens info` lists the windows.",
)


@contextmanager
def opened(
    path: Path, *, window: int | None = None, say: bool = True, quiet: bool = False, trust: bool = False
) -> Iterator[Report]:
    """Yield the report at `path`, or one window of it.

    Unless `say` is false, stderr gets a warning for each recording that is not in it.

    A file or folder of another tool is imported first, with a message unless `quiet`. `trust`: recordings of others are finished, too.

    Raises MissingData if there is no such window.
    """
    from warplens.report.report import Report
    from warplens.report.store import open_store

    if path.exists() and not is_report(path):
        from warplens.flows.foreign import imported  # only what may be another tool's pays for it
        from warplens.importers.importing import is_foreign

        if is_foreign(path):
            with progress_bar() as progress:
                path = imported(path, tell if say and not quiet else None, progress)
    with progress_bar() as progress:
        stored = open_store(path, progress, trust=trust)
    if say:
        for text in stored.waiting:
            tell(f"warplens: warning: not in this report: {text}")
        for text in stored.snapshots:
            tell(f"warplens: warning: not complete: {text}")
    with Report(stored) as report:
        if window is None:
            yield report
        else:
            with report.window(window) as part:
                yield part
