"""Findings as text for reading and as Markdown for a pull request."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING

from warplens.cli.printing.tables import printable, shorten
from warplens.cli.printing.words import counted, duration
from warplens.model.words import percent

if TYPE_CHECKING:
    from warplens.rules.base import Evidence, Finding
    from warplens.rules.judging import Judgement

_INDENT = "    "
_LABEL = 10
_TEXT_WIDTH = 100  # where the output is no terminal
_NAME = 60


def as_text(
    judgement: Judgement, rows: int, width: int, *, details: int | None = None, reasons: bool = True
) -> Iterator[str]:
    """Yield the lines of the report for reading.

    `rows` of evidence each, `width` columns (0: no terminal).

    `details`: of how many findings (None: all); `reasons`: say of each rule that could not judge why, else count them in a line.
    """
    columns = min(width or _TEXT_WIDTH, 120)
    if judgement.loop is not None:
        yield from _wrapped("Judged: ", f"{judgement.scope}; --filter-time judges another part.", columns)
        yield ""
    if len(judgement.distinct) > 1:
        yield from _table(judgement, columns)
    for number, finding in enumerate(judgement.distinct[:details], 1):
        yield from _wrapped(
            f"{number}. {(finding.severity or '').upper()}  ", printable(finding.title), columns
        )
        if finding.bound is not None:
            yield from _labelled("costs", _cost(finding, finding.within or judgement.span), columns)
        yield from _labelled("cause", finding.cause, columns)
        yield from _labelled("fix", finding.fix, columns)
        if finding.link:
            yield f"{_INDENT}{'see':<{_LABEL}}{finding.link}"
        yield from _labelled("limits", finding.wrong_when, columns)
        yield from _rows(finding, judgement.origin, rows, columns=columns)
        yield ""
    if details is not None and (more := len(judgement.distinct) - details) > 0:
        yield f"… and {more:,} more in the table; --details all explains them."
        yield ""
    yield from _rest(judgement, columns, reasons=reasons)


def _table(judgement: Judgement, columns: int) -> Iterator[str]:
    """All findings, a line each."""
    yield " #  expected   at most  finding"
    for number, finding in enumerate(judgement.distinct, 1):
        costs = ("" if cost is None else duration(cost) for cost in (finding.estimate, finding.bound))
        head = f"{number:>2}  {next(costs):>8}  {next(costs):>8}  "
        yield head + shorten(printable(finding.title), max(columns - len(head), 16))
    yield ""


def as_markdown(judgement: Judgement, rows: int, width: int) -> Iterator[str]:
    """Yield the lines of a Markdown page: a table of all findings, then each with its evidence."""
    if judgement.findings:
        yield from ("| | finding | at most | expected | confidence |", "|---|---|--:|--:|---|")
    for finding in judgement.findings:
        cells = ("" if cost is None else duration(cost) for cost in (finding.bound, finding.estimate))
        yield f"| {finding.severity} | {escaped(finding.title)} | {' | '.join(cells)} | {finding.confidence} |"
    for finding in judgement.findings:
        yield from (
            "",
            f"### {escaped(finding.title)}",
            "",
            f"`{finding.rule}`: {escaped(finding.cause)}",
            "",
        )
        yield f"**Fix:** {escaped(finding.fix)}{f' ([more]({finding.link}))' if finding.link else ''}"
        yield from ("", escaped(finding.wrong_when))
        if finding.evidence and rows:
            yield from ("", "| at | for | what |", "|--:|--:|---|")
            for row in finding.evidence[:rows]:
                yield f"| {duration(row.start - judgement.origin)} | {duration(row.end - row.start)} | {escaped(_what(row))} |"
    yield ""
    yield from _rest(judgement, 0)


def _rest(judgement: Judgement, columns: int, *, reasons: bool = True) -> Iterator[str]:
    """Which rules were silent, and which could not judge: silence is a result, lack of data is none."""
    asked = (
        len(judgement.silent)
        + len(judgement.not_judged)
        + len({finding.rule for finding in judgement.findings})
    )
    if not judgement.findings:
        yield f"Nothing found by {counted(asked - len(judgement.not_judged), 'rule')} in {duration(judgement.span)}."
    if again := [
        f"{finding.rule} ({finding.same_as})" for finding in judgement.findings if finding.same_as is not None
    ]:
        yield from _wrapped("Other rules about the same time: ", ", ".join(dict.fromkeys(again)), columns)
    if judgement.silent:
        yield from _wrapped("Checked without findings: ", ", ".join(judgement.silent), columns)
    lacking: dict[str, list[str]] = {}
    for rule, reason in judgement.not_judged.items():
        lacking.setdefault(reason, []).append(rule)
    if lacking and not reasons:
        kinds = sorted(lacking.items(), key=lambda item: -len(item[1]))
        data = ", ".join(
            f"{reason.removeprefix('does not contain ').partition(' (')[0].rstrip('.')}"
            for reason, _ in kinds[:2]
        )
        more = ", …" if len(kinds) > 2 else ""
        yield (
            shorten(
                f"Not judged: {counted(len(judgement.not_judged), 'rule')}, for lack of {data}{more}",
                (columns or 100) - 24,
            )
            + " (--why-not: each rule)"
        )
        return
    for reason, names in lacking.items():
        yield from _wrapped("Not judged: ", f"{', '.join(names)}: the report {reason}", columns)


def _cost(finding: Finding, span: int) -> str:
    assert finding.bound is not None
    share = f" ({percent(finding.bound / span, 1)} of {duration(span)})" if span > 0 else ""
    expected = (
        ""
        if finding.estimate in (None, finding.bound)
        else f"; expected saving: {duration(finding.estimate or 0)}"
    )
    how = " (critical path without it)" if finding.priced_by.startswith("what-if") else ""
    both = f"; findings above save {duration(finding.shared)} of it, too" if finding.shared else ""
    return f"at most {duration(finding.bound)}{share}{expected}{how if expected else ''}{both}; confidence: {finding.confidence}"


def _rows(finding: Finding, origin: int, rows: int, columns: int) -> Iterator[str]:
    shown = finding.evidence[:rows]
    for index, row in enumerate(shown):
        label = f"{_INDENT}{'rows' if index == 0 else '':<{_LABEL}}"
        times = f"at {duration(row.start - origin):>8} for {duration(row.end - row.start):>8}"
        key = "" if row.id is None else f"  ({row.table} {row.id})"
        room = max(columns - len(label) - len(times) - len(key) - 2, 16) if columns else _NAME
        yield f"{label}{times}  {shorten(printable(_what(row)), room)}{key}"
    if rows and finding.occurrences > len(shown):
        yield f"{_INDENT}{'':<{_LABEL}}of {finding.occurrences:,} in all; --rows shows more, -f json all kept rows"


def _what(row: Evidence) -> str:
    values = ", ".join(f"{name} {value}" for name, value in row.values.items() if value is not None)
    return f"{row.text}: {values}" if values else row.text


def _labelled(label: str, text: str, columns: int) -> Iterator[str]:
    if text:
        yield from _wrapped(f"{_INDENT}{label:<{_LABEL}}", printable(" ".join(text.split())), columns)


def _wrapped(head: str, text: str, columns: int) -> Iterator[str]:
    if not columns:
        yield head + text
        return
    yield from textwrap.wrap(
        head + text,
        columns,
        subsequent_indent=" " * min(len(head), 14),
        break_long_words=False,
        break_on_hyphens=False,
    ) or [head]


def escaped(text: str) -> str:
    """Return `text` as one line of Markdown that shows it as it is."""
    plain = printable(" ".join(text.split()))
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#" else c for c in plain)
