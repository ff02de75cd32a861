"""Runs `warplens view`: makes a view of reports, compares two, and follows a running recording."""

from __future__ import annotations

import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.disk.folder import Folder
from warplens.errors import MissingData, WarplensError
from warplens.flows.foreign import cache
from warplens.report.report import Report
from warplens.report.selection import Selection
from warplens.storage.generations import INDEX_SUFFIX
from warplens.viewer.answers.answers import View
from warplens.viewer.answers.loaded_report import Opened

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.flows.explaining import Explanation
    from warplens.viewer.bundle import File
    from warplens.viewer.server.app import News

_FOLLOW_S = 2.0
_KEPT_S = 30 * 86_400.0
_REST, _LONGEST_S = 4, 30.0
_MOST_ANCHORS = 2_000
_EXPLAINED = "what explains it"
Progress = Callable[[str, float], None]


def view_of(reports: Sequence[Report], progress: Progress | None = None) -> View:
    """Return the view of reports that are open; of two of them also how they differ."""
    folder = index_cache()
    opened = [
        Opened(number, report, cache=folder, progress=progress) for number, report in enumerate(reports)
    ]
    return View(
        " and ".join(report.name for report in reports), opened, compare if len(reports) == 2 else None
    )


def index_cache() -> Path | None:
    """Return the folder for indexes of reports that are not written to.

    None if there is none.
    """
    try:
        with Folder(cache().parent / "indexes", create=True) as folder:
            _sweep(folder)
            return folder.path
    except (WarplensError, OSError):
        return None


def _sweep(folder: Folder) -> None:
    """Remove indexes that nobody looked at for a month: their reports were others', and may be gone."""
    for name in folder.names():
        status = folder.status(name) if name.endswith(INDEX_SUFFIX) else None
        if status is not None and time.time() - max(status.st_atime, status.st_mtime) > _KEPT_S:
            folder.remove(name)


@contextmanager
def handed_over(
    report: Report, ui: str | None, progress: Progress | None = None
) -> Iterator[dict[str, File | Path]]:
    """Yield the pages that give a report to the Perfetto UI at `ui` (None: Perfetto's own).

    Its trace lies in a file until then.
    """
    from warplens import catalog
    from warplens.viewer.page import perfetto

    origin = perfetto.address_of(ui or perfetto.UI)
    with tempfile.TemporaryDirectory(prefix="warplens-perfetto-") as folder:
        trace = Path(folder) / f"{report.name}.perfetto-trace"
        if progress is not None:
            progress("Writing the trace", 0.0)
        catalog.find("exporters.formats", "perfetto").load().write(report, trace)
        yield {**perfetto.pages(report.name, origin), perfetto.TRACE: trace}


def compare(sides: Sequence[Opened]) -> dict[str, Any]:
    """Return `Difference`: the tables of `warplens diff` of two reports, and the times of equal work."""
    import pyarrow as pa

    from warplens.flows.differing import diff
    from warplens.viewer.answers.tables import shown

    with sides[0].asking() as before, sides[1].asking() as after:
        difference = diff(before, after)
        anchors = [*_steps(before, after), *_ranges(before, after)]
    tables = []
    if difference.explained is not None:
        rows, note = _explained(difference.explained)
        tables.append(shown(_EXPLAINED, rows, note=note))
    for kind in dict.fromkeys(change.kind for change in difference.changes):
        rows = [
            {
                "name": change.name if not change.after_name else f"{change.name} → {change.after_name}",
                "status": change.status,
                "before (ns)": None if change.before is None else change.before.time,
                "after (ns)": None if change.after is None else change.after.time,
                "delta (ns)": change.delta,
                "change (%)": None if change.relative is None else 100 * change.relative,
                "more than noise": change.certain,
            }
            for change in difference.of(kind)
        ]
        tables.append(shown(kind, pa.Table.from_pylist(rows), note=f"Times of one {difference.per}."))
    if difference.findings:
        told = [
            {
                "status": one.status,
                "rule": one.rule,
                "finding": one.title,
                "before (ns)": one.before,
                "after (ns)": one.after,
            }
            for one in difference.findings
        ]
        tables.append(shown("findings", pa.Table.from_pylist(told)))
    changes = [table for table in tables if table["title"] != _EXPLAINED]
    if changes and difference.notes:
        changes[0]["note"] = " ".join(difference.notes)
    return {"tables": tables, "anchors": anchors[:_MOST_ANCHORS]}


def _explained(whole: Explanation) -> tuple[pa.Table, str]:
    """The parts of the difference as a table, and what they are parts of."""
    import pyarrow as pa

    rows = [
        {
            "cause": part.kind,
            "name": part.name,
            "most": part.detail,
            "before (ns)": part.before,
            "after (ns)": part.after,
            "delta (ns)": part.delta,
            "of it (%)": 100 * part.delta / whole.delta if whole.delta else None,
            "not recorded": part.lacks,
        }
        for part in whole.parts
    ]
    note = f"Of one {whole.per}; {whole.where}. The rows add up to the difference. {' '.join(whole.notes)}"
    return pa.Table.from_pylist(rows), note.strip()


def _steps(before: Report, after: Report) -> list[dict[str, Any]]:
    """Pairs of times at which the same step began in both."""
    from warplens.analysis.steps.steps import base_name, steps

    try:
        sides = [steps(report, Selection()).to_pylist() for report in (before, after)]
    except MissingData:
        return []
    first, second = ({(row["process"], row["index"]): row for row in side} for side in sides)
    return [
        {
            "label": f"{base_name(row['name'])} {index}",
            "a": row["start"] - before.origin,
            "b": second[process, index]["start"] - after.origin,
        }
        for (process, index), row in first.items()
        if (process, index) in second
    ]


def _ranges(before: Report, after: Report) -> list[dict[str, Any]]:
    """Pairs of times at which the first range of a name began in both, the longest names by time first."""
    text = """SELECT coalesce(domain || ': ', '') || coalesce(message, '') AS name, min("start") AS first, sum("end" - "start") AS total
        FROM nvtx_ranges GROUP BY 1 ORDER BY total DESC LIMIT 500"""
    sides = [{row["name"]: row for row in report.sql(text).to_pylist()} for report in (before, after)]
    return [
        {"label": name, "a": row["first"] - before.origin, "b": sides[1][name]["first"] - after.origin}
        for name, row in sides[0].items()
        if name in sides[1]
    ]


class RunFollower:
    """Opens the reports of a view again when they have changed on disk.

    `ask`: has the recording of a report write down what it has.
    """

    def __init__(
        self, view: View, news: News, ask: Callable[[Path], bool], every_s: float = _FOLLOW_S
    ) -> None:
        self._view, self._news, self._ask, self._every = view, news, ask, every_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="follow", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._over.set()

    def look(self) -> bool:
        """Look once; return whether there is anything left to wait for."""
        live = False
        for number, opened in enumerate(self._view.reports):
            if not opened.live:
                continue
            self._ask(opened.report.path)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fresh = Report.open(opened.report.path)
            if fresh.manifests != opened.report.manifests:
                newer = Opened(number, fresh, cache=index_cache(), generation=opened.generation + 1)
                newer.grown, newer.projector = opened.grown, opened.projector
                self._view.reports[number] = newer
                self._news.tell()
            live = live or self._view.reports[number].live
        return live

    def _run(self) -> None:
        failed, pause = 0, self._every
        while not self._over.wait(pause):
            begun = time.monotonic()
            try:
                if not self.look():
                    return
                failed = 0
            except (WarplensError, OSError):  # it is being replaced at this moment, or is gone
                failed += 1
                if failed > 30:
                    return
            # Each look has all that was recorded so far written again, which of a long recording takes a while.
            pause = min(max(self._every, _REST * (time.monotonic() - begun)), _LONGEST_S)
