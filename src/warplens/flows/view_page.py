"""`warplens view --export`: the timeline with its data in one file.

It opens from disk, for tickets and mail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from warplens.disk.files import output
from warplens.disk.replacing import replacing
from warplens.errors import UsageError
from warplens.flows.viewing import view_of
from warplens.viewer import bundle
from warplens.viewer.answers.answers import Answers
from warplens.viewer.page.baked import INSTEAD, baked
from warplens.viewer.page.single_page import single_page

if TYPE_CHECKING:
    from warplens.report.report import Report

MOST_BYTES = 20_000_000  # what mail and trackers take, and a browser opens without waiting
LOSES = (
    "SQL, sums over a marked time and tables of a part of it: they ask the report itself",
    "with very many events, details of all except the longest and those of findings",
)


def write(reports: Sequence[Report], out: Path, progress: Callable[[str, float], None] | None = None) -> None:
    """Write the page of reports that are open.

    Raises UsageError if it would be too large or the page is not built, OSError.
    """
    view = view_of(reports, progress)
    answers = dict(baked(Answers(view), progress))
    page = single_page(bundle.files(single=True), view.title, answers)
    if len(page) > MOST_BYTES:
        most = f"more than {MOST_BYTES / 1e6:.0f} MB are too many to send"
        raise UsageError(f"the page would have {len(page) / 1e6:,.1f} MB, and {most}. {INSTEAD}")
    with replacing(out) as partial, output(partial) as file:
        file.write(page)
