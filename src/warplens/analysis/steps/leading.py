"""Finds the thread of each process that the others wait for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from warplens.analysis.once import once
from warplens.analysis.steps.steps import steps
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection


@once
def leading(report: Report, selection: Selection) -> dict[int, int]:
    """Return the thread of each process that the others wait for.

    That of its steps, else the first that launches, else the first.

    Of threads that launch those with a tenth of the calls count: PyTorch's thread for backward often launches more than the main thread.
    """
    first = "SELECT process, t.thread FROM threads t JOIN processes p USING (process) ORDER BY process, t.tid = p.pid, t.thread DESC"
    leader = {row["process"]: row["thread"] for row in report.sql(first).to_pylist()}
    launching = """SELECT process, thread FROM (SELECT process, thread, count(*) AS calls FROM cuda_api GROUP BY ALL)
                   QUALIFY calls * 10 >= sum(calls) OVER (PARTITION BY process) ORDER BY process, thread DESC"""
    for row in report.sql(launching).to_pylist() if report.tables["cuda_api"] else ():
        leader[row["process"]] = row["thread"]
    try:
        known = steps(report, selection)
    except MissingData:
        return leader
    for row in known.group_by(["process", "thread"]).aggregate([]).to_pylist():  # one thread of each process
        leader[row["process"]] = row["thread"]
    return leader
