"""Writes docs/performance.md and the pages below docs/performance/ from the result files."""

from __future__ import annotations

import importlib
import json
import textwrap
from pathlib import Path
from typing import Any

from _figures import FIGURES, PAGES, Figure

_HEAD = """# Performance

The figures that users care for, beside their peers. Each pair comes from one run of `make bench`,
which writes this page; both sides are measured in turn, so the ratio counts, not the machine. Each
line leads to its full table, with the machine, the versions and the budgets.
"""
_ABOUT = """Written by `make bench` from `benchmarks/results`. A budget is a promise: `make bench` fails
if one is missed. [The figures that users care for](../performance.md)."""
_FACTORS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
_TIMES = (("s", 1.0), ("ms", 1e-3), ("us", 1e-6), ("ns", 1e-9))


def figure(value: float | None) -> str:
    """Return a number with three significant digits, thousands separated."""
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def quantity(value: float, unit: str) -> str:
    """Return a value in the style of the documentation: 12.3 ms, 4.35 B, 7.25 %."""
    first, _, rest = unit.partition(" ")
    base, slash, per = first.partition("/")
    if base not in _FACTORS:
        return f"{figure(round(value, 12) + 0.0)} {unit}".strip()
    seconds = value * _FACTORS[base]
    name, factor = next(((name, factor) for name, factor in _TIMES if abs(seconds) >= factor), _TIMES[-1])
    return " ".join(filter(None, (figure(seconds / factor), f"{name}{slash}{per}", rest)))


def budget(row: dict[str, Any]) -> str:
    """Return the budget of a row, and whether it is kept."""
    if row["budget"] is None:
        return ""
    sign = "≥" if row["budget_on"] == "at least" else "≤"
    unit = " ×" if row["budget_on"] == "ratio" else ""
    return f"{sign} {figure(row['budget'])}{unit} {'✓' if row['ok'] else '✗ **missed**'}"


def table(rows: list[dict[str, Any]]) -> str:
    """Return rows as a Markdown table."""
    lines = ["| what | measured | against | ratio | budget | |", "|---|--:|---|--:|---|---|"]
    for row in rows:
        peer = f"{row['peer']} {figure(row['peer_value'])}".strip() if row["peer"] else ""
        cells = (
            row["what"],
            f"{figure(row['value'])} {row['unit']}",
            peer,
            figure(row["ratio"]),
            budget(row),
            row["note"],
        )
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def write_pages(folder: Path, page: Path, needs: dict[str, str]) -> None:
    """Write `page` and the pages beside it from `folder`/results.

    `needs` has the benchmarks that need something (a GPU), with its name.
    """
    results = {
        path.stem: json.loads(path.read_text(encoding="utf-8"))
        for path in sorted((folder / "results").glob("*.json"))
    }
    page.write_text(_headlines(results), encoding="utf-8")
    below = page.with_suffix("")
    below.mkdir(exist_ok=True)
    named = {name for _, names in PAGES.values() for name in names}
    absent = {name for name in needs if name not in results}
    for stem, (title, names) in PAGES.items():
        chosen = [name for name in names if name in results or name in absent]
        if stem == "other":
            chosen = sorted((results.keys() | absent) - named)
        if chosen:
            parts = [f"# Performance: {title}", _ABOUT]
            parts += [
                _details(name, results[name]) if name in results else _missing(name, needs) for name in chosen
            ]
            (below / f"{stem}.md").write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _headlines(results: dict[str, Any]) -> str:
    parts = [_HEAD]
    for title, figures in FIGURES.items():
        lines = [_line(one, results[one.benchmark]["rows"]) for one in figures if one.benchmark in results]
        if lines:
            head = ["| what | warplens | beside | ratio |", "|---|--:|---|--:|"]
            parts.append("\n".join([f"## {title}", "", *head, *lines, ""]))
    missed = [
        f"| [{name}](performance/{_page_of(name)}.md#{name}) | {row['what']} | {quantity(row['value'], row['unit'])}"
        f" | {budget(row).partition(' ✗')[0]} |"
        for name, result in results.items()
        for row in result["rows"]
        if row["ok"] is False
    ]
    if missed:
        head = ["| benchmark | what | measured | budget |", "|---|---|--:|---|"]
        parts.append("\n".join(["## Missed budgets", "", *head, *dict.fromkeys(missed), ""]))
    return "\n".join(parts)


def _line(one: Figure, rows: list[dict[str, Any]]) -> str:
    """Return one line of the page; ValueError if the benchmark has no such row any more."""
    row = _row(one, rows, one.row, one.peer if not one.peer_row else "")
    value, name, peer = row["value"], row["peer"], row["peer_value"]
    if one.peer_row:
        name, peer = one.peer, _row(one, rows, one.peer_row, "")["value"]
    unit = row["unit"].removesuffix(" CPU")
    beside = "" if peer is None else f"{_plain(name)} {quantity(peer, _unit(name) or unit)}"
    ratio = figure(value / peer) if peer else ""
    link = f"[{one.text}](performance/{_page_of(one.benchmark)}.md#{one.benchmark})"
    return f"| {link} | {quantity(value, unit)} | {beside} | {ratio} |"


def _row(one: Figure, rows: list[dict[str, Any]], what: str, peer: str) -> dict[str, Any]:
    for row in rows:
        if (row["what"] == what or row["what"].endswith(what)) and (not peer or row["peer"] == peer):
            return row
    raise ValueError(f"benchmark {one.benchmark} has no row {what!r}: mend benchmarks/_figures.py")


def _unit(peer: str) -> str:
    """Return the unit that the name of a peer ends with, as in `alone, us`."""
    last = peer.rpartition(", ")[2]
    return last if last in _FACTORS else ""


def _plain(peer: str) -> str:
    return peer.removesuffix(f", {_unit(peer)}") if _unit(peer) else peer


def _page_of(name: str) -> str:
    return next((stem for stem, (_, names) in PAGES.items() if name in names), "other")


def _details(name: str, result: dict[str, Any]) -> str:
    facts = result["machine"]
    mode = ", quick run" if result["quick"] else ""
    on = f"{facts['gpu']}; " if "gpu" in facts else ""
    rows = result["rows"]
    parts = [
        f"## {name}\n\n{_filled(_about(name))}",
        _filled(
            f"{on}{facts['cpu']}, {facts['cores']} cores, {facts['system']}, CPython {facts['python']}{mode}."
        ),
    ]
    own_page = getattr(importlib.import_module(name), "page", None)
    if own_page is not None:  # a benchmark may have a better form for some of its rows
        first, rows = own_page(rows)
        parts += [first] if first else []
    parts += [table(rows)] if rows else []
    return "\n\n".join(parts)


def _filled(text: str) -> str:
    return textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False)


def _missing(name: str, needs: dict[str, str]) -> str:
    return f"## {name}\n\n{_filled(_about(name))}\n\nNot yet run on a {needs[name].upper()}."


def _about(name: str) -> str:
    return (importlib.import_module(name).__doc__ or "").partition("\n")[0]
