"""The findings of `analyze` over many ranks: which ranks have each finding, and its cost per rank.

## What it asks
The findings of `warplens analyze` for each report, combined: the number of ranks with each finding,
the mean, minimum and maximum time that a fix would save, and the rank with the maximum.

## How it is computed
Each report is judged separately, with all rules. Findings of one rule about the same subject are
combined. The time is the expected saving, or its bound if there is no estimate.

## Traps
Savings of ranks do not add up. If ranks wait for one another, a fix on the slowest one saves time
on all, and a fix on another rank saves nothing. `straggler` shows which rank the others wait for.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from warplens.model.words import counted, duration
from warplens.recipes import ranks
from warplens.recipes.base import REPORT, Answer, Summary
from warplens.report import Report, Selection
from warplens.rules.judging import judge

_LINES = 3  # findings with a line; the table has all


def part(report: Report) -> Summary:
    """Judge one report."""
    judgement = judge(report, Selection())
    rows = [
        {
            "rule": finding.rule,
            "subject": finding.subject,
            "severity": str(finding.severity),
            "title": finding.title,
            "saving": finding.estimate if finding.estimate is not None else finding.bound,
        }
        for finding in judgement.distinct
    ]
    schema = pa.schema(
        [
            *((name, pa.string()) for name in ("rule", "subject", "severity", "title")),
            ("saving", pa.int64()),
        ]
    )
    return {
        "findings": pa.Table.from_pylist(rows, schema=schema),
        "reports": ranks.named_report(report),
    }


def answer(summary: Summary) -> Answer:
    """Put the findings of all ranks together, the greatest mean saving first."""
    reports = summary["reports"].to_pylist()
    names = ranks.names_of_reports(summary["reports"])
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in summary["findings"].to_pylist():
        groups.setdefault((row["rule"], row["subject"]), []).append(row)
    rows = sorted(
        (_row(group, names) for group in groups.values()), key=lambda row: -row["Mean (ns)"] * row["Ranks"]
    )
    lines = [f"{counted(len(rows), 'finding')} on {counted(len(reports), 'report')}."]
    lines += [
        f"On {counted(row['Ranks'], 'rank')}: {row['Title']} (mean {duration(row['Mean (ns)'])}, most on {row['Max at']})"
        for row in rows[:_LINES]
    ]
    table = pa.Table.from_pylist(rows) if rows else pa.table({"Rule": pa.array([], pa.string())})
    return Answer(
        lines,
        tables={"findings": table},
        details={"by_rank": summary["findings"]},
        facts={"reports": len(reports), "findings": len(rows)},
    )


def _row(group: list[dict[str, Any]], names: dict[int, str]) -> dict[str, Any]:
    savings = [row["saving"] or 0 for row in group]
    worst = max(range(len(group)), key=lambda place: savings[place])
    return {
        "Rule": group[0]["rule"],
        "Ranks": len({row[REPORT] for row in group}),
        "Mean (ns)": sum(savings) / len(savings),
        "Min (ns)": min(savings),
        "Max (ns)": max(savings),
        "Max at": names[group[worst][REPORT]],
        "Title": group[worst]["title"],
    }
