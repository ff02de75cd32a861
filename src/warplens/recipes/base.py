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

from warplens.arrays import Float64Array

if TYPE_CHECKING:
    import pyarrow as pa

FAMILY = "recipes.questions"
REPORT = "report"  # the column with the number of a row's report

Summary = dict[str, "pa.Table"]
Place = Path | str
"""Where a report is: a path, or a URL of object storage."""


@dataclass(frozen=True)
class BrokenPart:
    """A report that could not be read, and is not in the answer. `error` is one line."""

    path: Place
    error: str


@dataclass(frozen=True)
class HeatMap:
    """Values by row and column, which are drawn as shades.

    `values`: rows × columns. `columns`: what a column begins at. `down`, `across`, `value`: names of
    the rows, the columns and the values, as columns of a table, e.g. `Rank`, `Begin (ns)`, `Busy (%)`.
    `ends`: a text behind each row, e.g. its mean.
    `scale`: the values with the lightest and the darkest shade. `reports`: number of each row's report.
    """

    rows: Sequence[str]
    columns: Sequence[int]
    values: Float64Array
    down: str
    across: str
    value: str
    scale: tuple[float, float] = (0.0, 100.0)
    ends: Sequence[str] = ()
    reports: Sequence[int] = ()


@dataclass(frozen=True)
class Answer:
    """The answer of a recipe.

    `lines`: the verdict, for reading. `maps`: heat maps by name, drawn below it.
    `tables`: by name, in the order in which they are read.
    `details`: tables that are too long to read; they are written to files and to JSON only.
    `facts`: figures that are no table, by name, as JSON takes them.
    """

    lines: Sequence[str] = ()
    maps: Mapping[str, HeatMap] = field(default_factory=dict)
    tables: Mapping[str, pa.Table] = field(default_factory=dict)
    details: Mapping[str, pa.Table] = field(default_factory=dict)
    facts: Mapping[str, Any] = field(default_factory=dict)
