"""The selected part of a report: a window of time, or the time of one NVTX range."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warplens.errors import MissingData, UsageError
from warplens.report.quoting import quoted

if TYPE_CHECKING:
    from warplens.report.asked import AskedReport

_UNITS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000, "m": 60_000_000_000}
_LONGEST = 1 << 62  # ns: sums with a time of the report still fit into 64 bits
_STEP = re.compile(r"(\d+(?:\.\d*)?|\.\d+)\s*(ns|us|ms|s|m)?\s*")


@dataclass(frozen=True)
class Selection:
    """`time`: begin and end in ns from the report's origin.

    `nvtx`: range name, domain (None: the default one, `*`: any), index from 0.
    """

    time: tuple[int, int] | None = None
    nvtx: tuple[str, str | None, int | None] | None = None

    @classmethod
    def parse(cls, time: str | None = None, nvtx: str | None = None) -> Selection:
        """Read the texts of `--filter-time` and `--filter-nvtx`. Raises UsageError."""
        return cls(
            parse_time(time) if time is not None else None, parse_nvtx(nvtx) if nvtx is not None else None
        )

    def window(self, report: AskedReport) -> tuple[int, int] | None:
        """Return begin and end (ns, the report's clock) of what is selected.

        None when that is everything.

        Raises MissingData when no range has the name that was requested.
        """
        begin, end = report.origin, report.end
        if self.time is None and self.nvtx is None:
            return None
        if self.time is not None:
            begin, end = report.origin + self.time[0], report.origin + self.time[1]
        if self.nvtx is not None:
            first, last = _range_window(report, self.nvtx)
            begin, end = max(begin, first), min(end, last)
        return begin, max(begin, end)

    def place(self, report: AskedReport) -> str:
        """Return the words behind "there is no data": none, unless the selection is only a part of the report."""
        return " in the selected part" if self.time or self.nvtx or report.windowed else ""


def selected_ranges(report: AskedReport, selection: Selection) -> str:
    """Return the SQL relation (in parentheses) of the rows of `nvtx_ranges` that overlap the selection.

    Rows keep their whole length. A range without duration belongs to the window it lies in, its begin included.
    """
    window = selection.window(report)
    if window is None:
        return "(SELECT * FROM nvtx_ranges)"
    return f"(SELECT * FROM nvtx_ranges WHERE {overlap(*window)})"


def overlap(begin: int | str, end: int | str, of: str = "") -> str:
    """Return the SQL condition for a range that overlaps [begin, end), or is an instant in it."""
    return f'{of}"start" < {end} AND ({of}"end" > {begin} OR {of}"start" >= {begin})'


def parse_duration(text: str) -> int:
    """Return ns for a time such as `500ms`, `1s500ms`, `2.5` (seconds). Raises UsageError."""
    cleaned = text.strip()
    total = 0.0
    whole = 0
    position = 0
    steps = 0
    while position < len(cleaned):
        match = _STEP.match(cleaned, position)
        if match is None or (match[2] is None and (steps or match.end() != len(cleaned))):
            raise UsageError(
                f"{text!r} is not a time; write for example 500ms, 1.5s or 2s500ms (units: ns us ms s m)"
            )
        scale = _UNITS[match[2] or "s"]
        if match[1].isdigit():
            whole += int(match[1]) * scale
        else:
            total += float(match[1]) * scale
        position = match.end()
        steps += 1
    if not steps:
        raise UsageError(
            f"{text!r} is not a time; write for example 500ms, 1.5s or 2s500ms (units: ns us ms s m)"
        )
    if whole + total > _LONGEST:
        raise UsageError(f"{text!r} is longer than any report (146 years)")
    return whole + round(total)


def parse_time(text: str) -> tuple[int, int]:
    """Return begin and end in ns for `A/B`; either may be empty. Raises UsageError."""
    begin_text, slash, end_text = text.partition("/")
    if not slash:
        raise UsageError(f"{text!r} is not a window of time; write BEGIN/END, for example 1s/2s500ms")
    begin = parse_duration(begin_text) if begin_text.strip() else 0
    end = parse_duration(end_text) if end_text.strip() else _LONGEST
    if end < begin:
        raise UsageError(f"the window {text!r} ends before it begins")
    return begin, end


def parse_nvtx(text: str) -> tuple[str, str | None, int | None]:
    r"""Return name, domain and index for `RANGE[@DOMAIN][/INDEX]`.

    `\@` and `\/` stand for the characters. Raises UsageError.
    """
    match = re.fullmatch(r"((?:\\.|[^\\@])*?)(?:@((?:\\.|[^\\@])*?))?(?:/(\d+))?", text, re.DOTALL)
    if match is None or not match[1]:
        raise UsageError(f"{text!r} is not a range; write RANGE[@DOMAIN][/INDEX], for example step@train/3")
    name, domain, index = match.groups()
    return (
        _unescape(name),
        None if domain is None else _unescape(domain),
        None if index is None else int(index),
    )


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)


def named(nvtx: tuple[str, str | None, int | None]) -> str:
    """Return the SQL condition for the rows of `nvtx_ranges` with a selection's name and domain.

    Any index.
    """
    name, domain, _ = nvtx
    where = f'"message" = {quoted(name)}'
    if domain is None or domain == "default":
        return where + ' AND "domain" IS NULL'
    return where if domain == "*" else f'{where} AND "domain" = {quoted(domain)}'


def _range_window(report: AskedReport, nvtx: tuple[str, str | None, int | None]) -> tuple[int, int]:
    name, domain, index = nvtx
    text = f'SELECT "start", "end" FROM nvtx_ranges WHERE {named(nvtx)} ORDER BY "start", id LIMIT 1 OFFSET {index or 0}'
    rows = report.sql(text).to_pylist()
    if not rows:
        place = (
            "the default domain"
            if domain in (None, "default")
            else "any domain"
            if domain == "*"
            else f"domain {domain!r}"
        )
        which = f"no occurrence {index} of the range" if index else "no range"
        raise MissingData(
            f"{report.path} has {which} {name!r} in {place}; `warplens stats -r nvtx_sum` lists the names"
        )
    return int(rows[0]["start"]), int(rows[0]["end"])
