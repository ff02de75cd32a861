"""What happens when the program has ended: the report is finished, behind a progress bar, and summed up."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from warpline.capture.launch import Outcome
from warpline.cli.summary import summary
from warpline.cli.telling import tell
from warpline.cli.words import short_path
from warpline.errors import WarplineError
from warpline.handover import pending
from warpline.query import open as open_report
from warpline.report.finish import finish

_PATIENCE_S = 0.3


def finish_and_summarise(note: pending.Pending, outcome: Outcome, *, quiet: bool) -> None:
    """Finish the recording `note` and print its summary; errors keep the program's exit code."""
    report = note.report
    try:
        if not note.path.exists():  # somebody deleted the report while the program ran
            note = pending.begin(report, note.spool, job=note.job, keep_raw=note.keep_raw)
        with progress_bar(quiet) as progress:
            manifest = finish(note, report, keep_raw=note.keep_raw, progress=progress)
        if quiet:
            return
        with open_report(report) as opened:
            for line in summary(opened, manifest):
                tell(line)
        if note.path.exists():
            tell(f"\nwarpline: the spool {short_path(Path(note.spool))} could not be removed; whatever opens the report tries again.")
    except KeyboardInterrupt:
        tell(f"\nwarpline: interrupted. Nothing is lost: `warpline info {short_path(report)}` finishes the report.")
        raise
    except WarplineError as error:
        error.exit_code = outcome.exit_status or error.exit_code
        raise


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """Yield what `finish` calls with a stage and how far it is (0 to 1): a bar on stderr, if that is a terminal and it takes a while."""
    begun = time.monotonic()
    bar: Any = None
    task: Any = None

    def show(stage: str, done: float) -> None:
        nonlocal bar, task
        if quiet or sys.stderr is None or not sys.stderr.isatty():
            return
        if bar is None:
            if time.monotonic() - begun < _PATIENCE_S:
                return
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            task = bar.add_task("report", total=1.0)
        bar.update(task, completed=done, description=stage)

    try:
        yield show
    finally:
        if bar is not None:
            bar.stop()
