"""Durations inside kernels as arrays for a comparison: each launch, and its regions by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

import warplens.report.arrow_compute as pc
from warplens.analysis.comparison.comparable import ComparableRows, Steps, Taking
from warplens.analysis.dictionaries import codes
from warplens.analysis.distinct import distinct
from warplens.analysis.intrakernel.launches import IntrakernelLaunches, launches, located
from warplens.errors import MissingData
from warplens.report.row_groups import RowGroup, RowGroupReader, each, row_groups

if TYPE_CHECKING:
    from warplens.arrays import Int64Array
    from warplens.report.report import Report
    from warplens.report.selection import Selection

KIND = "inside"


def inside(report: Report, selection: Selection, steps: Steps) -> Iterator[ComparableRows]:
    """Yield the rows of this kind, if there are any.

    Launches by their names, regions as `name: region`. Marks take no time.
    """
    try:
        of = launches(report, selection)
    except MissingData:
        return
    labels = list(dict.fromkeys(name for _, _, name in of.groups))
    label = np.array([labels.index(name) for _, _, name in of.groups], np.int64)[of.group]
    step = steps.at(
        np.array([process for process, _, _ in of.groups], np.int64)[of.group], _asked(report, of)
    )
    taking = Taking(KIND)
    taking.add(taking.numbers(labels)[label], of.end - of.start, step)
    reader = RowGroupReader("intrakernel_events")

    def read_group(group: RowGroup) -> None:
        rows = reader.read(group, ["launch", "start", "end", "tag", "kind"])
        rows = rows.filter(pc.not_equal(pc.cast(rows.column("kind"), "string"), "mark"))
        launch, start, end = (
            np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("launch", "start", "end")
        )
        place = of.place(launch)
        tag, texts = codes(rows.column("tag").combine_chunks())
        some = place >= 0
        place, number = place[some], len(texts)
        if len(place):
            used, which = distinct(label[place] * number + tag[some], len(labels) * number)
            names = [f"{labels[key // number]}: {texts[key % number]}" for key in used.tolist()]
            taking.add(taking.numbers(names)[which], (end - start)[some], step[place])

    groups = row_groups(report, "intrakernel_events", of.window)
    if groups:
        each(groups, read_group)
    yield taking.rows()


def _asked(report: Report, of: IntrakernelLaunches) -> Int64Array:
    """Return the begins of the launch calls."""
    rows = report.sql("SELECT id, coalesce(launched, start) AS asked FROM intrakernel_launches ORDER BY id")
    known, asked = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("id", "asked"))
    return asked[located(known, of.id)]
