"""The answer of a recipe as one page of HTML, which loads nothing and runs nothing."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from warplens.catalog import Unit
from warplens.flows.html.heat_map import SHADES, STYLE, heat_map
from warplens.flows.html.page import heading, page, table
from warplens.flows.html.words import amount, safe
from warplens.model.words import counted
from warplens.recipes import heat_maps
from warplens.recipes.base import Answer, BrokenPart, HeatMap, Place

_ROWS = 200  # of a table


def recipe_page(unit: Unit, answer: Answer, paths: Sequence[Place], broken: Sequence[BrokenPart]) -> str:
    """Return the page: the verdict, heat maps, tables, and the reports with the command that opens each.

    A row of a heat map leads to its report.
    """
    more = f"warplens recipe {unit.id} -f csv -o NAME"
    left_out = {one.path: one.error for one in broken}
    sections = [f"<h1>{safe(unit.summary.rstrip('.'))}</h1>"]
    sections += [f"<p>{safe(line)}</p>" for line in answer.lines]
    sections += [heading(_title(name)) + _drawn(one) for name, one in answer.maps.items()]
    for name, rows in {**answer.tables, **answer.details}.items():
        sections.append(heading(_title(name)) + table(rows, most=_ROWS, more=more))
    sections.append(heading("Reports", f"{counted(len(paths), 'report')}, {len(broken):,} left out"))
    sections.append(_reports(answer, paths, left_out))
    return page(f"{unit.id} {counted(len(paths), 'report')}", *sections, style=STYLE)


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()


def _drawn(shown: HeatMap) -> str:
    in_ns = shown.across.endswith("(ns)")
    columns = [amount(begin, "ns") if in_ns else f"{begin:,}" for begin in shown.columns]
    unit = shown.value.partition("(")[2].rstrip(")")
    texts = [[amount(value, unit) for value in row] for row in shown.values.tolist()]
    drawing = heat_map(
        shown.rows,
        heat_maps.steps(shown, SHADES).tolist(),
        texts,
        columns=columns,
        ends=shown.ends or [""] * len(shown.rows),
        links=[f"#report-{number}" for number in shown.reports] or [""] * len(shown.rows),
    )
    low, high = (amount(value, unit) for value in shown.scale)
    about = f"{shown.value} by {shown.down.lower()}; from {low} (light) to {high} (dark)."
    if shown.reports:
        about += " A row leads to its report."
    return f'<p class="dim">{safe(about)}</p>{drawing}'


def _reports(answer: Answer, paths: Sequence[Place], left_out: dict[Place, str]) -> str:
    names: dict[int, list[str]] = {}
    for one in answer.maps.values():
        for name, number in zip(one.rows, one.reports, strict=False):
            names.setdefault(number, []).append(name)
    rows = []
    for number, path in enumerate(paths):
        text = left_out.get(path)
        last = f"left out: {text}" if text is not None else f"warplens view {shlex.quote(str(path))}"
        rows.append(
            f'<tr id="report-{number}"><td>{safe(", ".join(dict.fromkeys(names.get(number, []))))}</td>'
            f'<td class="w">{safe(path)}</td><td class="w"><code>{safe(last)}</code></td></tr>'
        )
    head = "<thead><tr><th>Rank</th><th>Report</th><th>Open it</th></tr></thead>"
    return f'<div class="scroll"><table>{head}<tbody>{"".join(rows)}</tbody></table></div>'
