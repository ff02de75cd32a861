"""Finishes the report after the program ended, behind a progress bar, and prints the summary."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.cli.light import give_back_early
from warplens.cli.printing.messages import complain, tell
from warplens.cli.printing.words import short_path
from warplens.handover import pending
from warplens.storage import manifest as manifests

if TYPE_CHECKING:
    from warplens.recording.finishing.converting import Converting

_PATIENCE_S = 0.3


def finish_and_summarise(note: pending.Pending, converting: Converting | None = None, *, quiet: bool) -> None:
    """Finish the recording `note` and print its summary; where that cannot be made, say why.

    Raises what `finish` does.

    `converting` has written most of the report by now, or nothing.
    """
    report = note.report
    if not note.path.exists():  # somebody deleted the report while the program ran
        note = pending.begin(report, note.spool, job=note.job, keep_raw=note.keep_raw, name=note.id)
    with progress_bar(quiet) as progress:
        said = converting.finish(progress) if converting is not None else None
        manifest = _finish(note, report, progress) if said is None else None
    if quiet:
        return
    for text in summed_up(report, manifest) if manifest is not None else said or ():
        tell(text)
    if note.path.exists():
        tell(
            f"\nwarplens: the spool {short_path(Path(note.spool))} could not be removed; the next "
            "command that opens the report tries again."
        )


def _finish(
    note: pending.Pending, report: Path, progress: Callable[[str, float], None]
) -> manifests.Manifest:
    """Finish a recording here. What that needs takes half a second to load."""
    give_back_early()
    from warplens.convert.finish import finish

    return finish(note, report, keep_raw=note.keep_raw, progress=progress)


def load() -> None:
    """Load now what `finish_and_summarise` would load later."""
    from warplens.cli.printing import summary  # noqa: F401
    from warplens.convert import finish  # noqa: F401
    from warplens.storage.writer import prepare

    prepare()


def summed_up(report: Path, manifest: manifests.Manifest) -> Iterator[str]:
    """Yield the lines about a part that was just finished; where they cannot be made, say why."""
    from warplens.cli.printing.summary import summary
    from warplens.report import open as open_report

    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # other ranks of the job still record: that is as it should be
            opened = open_report(report)
        with opened:
            yield from summary(opened, manifest)
    except Exception as error:
        if manifests.path_of(report, manifest.id).exists():
            complain(f"{short_path(report)} is finished, but cannot be summed up: {error}")
        else:
            complain(
                f"{short_path(report)} was finished, and has been removed or overwritten "
                "since.\nName another report with -o."
            )


@contextmanager
def progress_bar(quiet: bool = False) -> Iterator[Callable[[str, float], None]]:
    """Yield a progress function for `finish`: it takes a stage and its share (0 to 1).

    It draws a bar on stderr, if that is a terminal and it takes a while.
    """
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
