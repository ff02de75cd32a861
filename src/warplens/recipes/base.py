"""The contract of a recipe: one file in `questions`, whose parts are computed rank by rank.

A recipe is `recipes/questions/<name>.py` with

    def part(report: Report, *, opts...) -> Summary
    def answer(summary: Summary, *, some of them...) -> Answer

`part` runs once for each report, in any process, on any machine, and returns small tables. The engine
puts them below one another, in the order of the reports, each row with the number of its report in the
column `report`. `answer` reads them all. A recipe whose parts would grow too large also has

    def merged(summary: Summary, other: Summary) -> Summary

which is associative, and whose result does not depend on the order of its arguments.

Of a recipe with `FILES = True`, `part` gets the path of the file instead of an open report.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

FAMILY = "recipes.questions"
REPORT = "report"  # the column with the number of a row's report

Summary = dict[str, "pa.Table"]


@dataclass(frozen=True)
class BrokenPart:
    """A report that could not be read, and is not in the answer. `error` is one line."""

    path: Path
    error: str


@dataclass(frozen=True)
class Answer:
    """The answer of a recipe.

    `lines`: the verdict, for reading. `tables`: by name, in the order in which they are read.
    `details`: tables that are too long to read; they are written to files and to JSON only.
    `facts`: figures that are no table, by name, as JSON takes them.
    """

    lines: Sequence[str] = ()
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    details: Mapping[str, pa.Table] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
