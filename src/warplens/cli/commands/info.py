"""Show the content of a report: its parts, processes, tables, time span and diagnostics."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warplens.cli.opening import opened as open_report
from warplens.cli.options.report_path import ReportPath
from warplens.cli.printing import gpu_list, process_tree, windows
from warplens.cli.printing.tables import printable, shorten, terminal_width
from warplens.cli.printing.words import counted, duration

if TYPE_CHECKING:
    from warplens.report import Report

_MANY = 20
_FEW = 3  # diagnostics that are alike stand in full
_MOST_DIAGNOSTICS = 40


@click.command(
    epilog="""\b
Examples:
  warplens info run.warplens
  warplens info run.warplens -f json | jq .tables
  warplens info run.warplens --sql > views.sql    then: duckdb -init views.sql
"""
)
@click.argument("report", type=ReportPath())
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Output format.",
)
@click.option(
    "--sql", is_flag=True, help="Print CREATE VIEW statements, to open the tables in DuckDB without warplens."
)
@click.option(
    "--trust",
    is_flag=True,
    help="Finish your own recordings from another machine.",
)
def command(report: Path, form: str, sql: bool, trust: bool) -> None:
    """Show the content of a report: its parts, processes, tables, time span and diagnostics."""
    with open_report(report, say=False, trust=trust) as opened:  # they are among the facts
        if sql:
            click.echo("\n".join(opened.views()))
            return
        facts = _facts(opened)
    if form == "json":
        click.echo(json.dumps(facts, indent=2))
    else:
        _print(facts)


def _facts(report: Report) -> dict[str, Any]:
    parts = []
    for manifest in report.manifests:
        part = asdict(manifest)
        del part["tables"]
        parts.append(part)
    return {
        "path": str(report.path),
        "origin": report.origin,
        "end": report.end,
        "parts": parts,
        "waiting": list(report.waiting),
        "snapshots": list(report.snapshots),
        "processes": report.table("processes").to_pylist(),
        "targets": report.table("targets").to_pylist(),
        "devices": report.table("devices").to_pylist(),
        "windows": report.table("capture_windows").to_pylist(),
        "tables": report.tables,
        "diagnostics": report.table("diagnostics").to_pylist(),
    }


def _print(facts: dict[str, Any]) -> None:
    _head(f"{printable(facts['path'])}: {duration(facts['end'] - facts['origin'])}")
    for text in facts["waiting"]:
        click.echo(click.style("missing     ", fg="yellow") + printable(text))
    for text in facts["snapshots"]:
        click.echo(click.style("snapshot    ", fg="yellow") + printable(text))
    _print_diagnostics(facts["diagnostics"])

    _head("Parts")
    for part in facts["parts"][:_MANY]:
        status = "unknown" if part["exit_status"] is None else str(part["exit_status"])
        job = f", job {printable(part['job'])}" if part["job"] else ""
        click.echo(f"  {printable(part['id'])}: {shorten(printable(shlex.join(part['command'])), 100)}")
        sources = ", ".join(name for name, source in part["sources"].items() if source.get("on")) or "nothing"
        length = duration(part["end"] - part["origin"])
        click.echo(
            f"    {length}, exit status {status}{job}, clock {printable(part['clock'])}, recorded {printable(sources)}"
        )
    _rest(facts["parts"])

    _head("Hosts")
    for target in {
        (target["host"], target["boot_id"]): target for target in facts["targets"]
    }.values():  # each part brings its own
        cpus = (
            f"{target['cpus']} x {target['cpu']}"
            if target["cpu"] != "unknown"
            else counted(target["cpus"], "CPU")
        )
        memory = (
            f", {target['memory'] / (1 << 30):.0f} GiB" if target["memory"] else ""
        )  # files of other tools may not say
        about = f"{cpus}{memory}, {target['os']}, {target['kernel']} {target['machine']}"
        click.echo(f"  {printable(target['host'])}: {printable(about)}")

    if facts["devices"]:
        _head("GPUs")
        for line in gpu_list.lines(
            facts["devices"], {row["process"]: row["pid"] for row in facts["processes"]}
        ):
            click.echo(f"  {line}")

    _head(process_tree.heading(facts["processes"]))
    for line in process_tree.lines(facts["processes"], terminal_width()):
        click.echo(line)

    _print_windows(facts)

    _head("Tables")
    for name, rows in facts["tables"].items():
        if rows:
            click.echo(f"  {name:<20} {counted(rows, 'row')}")
    if empty := [name for name, rows in facts["tables"].items() if not rows]:
        click.echo(f"  empty: {', '.join(empty)}")


def _print_diagnostics(rows: list[dict[str, Any]]) -> None:
    """Print a line for each.

    Those that say the same of many processes stand together, their counts added up.
    """
    alike: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        alike.setdefault(
            (row["severity"], row["code"], row["source"], re.sub("[0-9]+", "", row["message"])), []
        ).append(row)
    lines = [
        same if len(same) > _FEW else [row]
        for same in alike.values()
        for row in (same[:1] if len(same) > _FEW else same)
    ]
    for same in lines[:_MOST_DIAGNOSTICS]:
        row, counts = same[0], [one["count"] for one in same if one["count"] is not None]
        color = {"error": "red", "warning": "yellow"}.get(row["severity"])
        count = f" ({sum(counts):,})" if counts else ""
        more = f" … and {len(same) - 1:,} more like it" if len(same) > 1 else ""
        text = f"{printable(row['code'])}{count}: {printable(row['message'])}{more}"
        click.echo(click.style(row["severity"].ljust(12), fg=color) + text)
    if len(lines) > _MOST_DIAGNOSTICS:
        click.echo(f"            … and {len(lines) - _MOST_DIAGNOSTICS:,} more; -f json lists all")


def _print_windows(facts: dict[str, Any]) -> None:
    names = {part["part"]: printable(part["id"]) for part in facts["parts"]}
    told = False
    for number in sorted({row["part"] for row in facts["windows"]}):
        rows = [row for row in facts["windows"] if row["part"] == number]
        if not windows.worth_telling(rows):
            continue
        if not told:
            _head("Windows of the capture (--window N)")
        told = True
        if len(names) > 1:
            click.echo(f"  of {names.get(number, number)}")
        for line in windows.lines(rows, facts["origin"], _MANY):
            click.echo(f"  {line}")


def _head(text: str) -> None:
    click.echo(click.style(text, bold=True))


def _rest(items: list[Any]) -> None:
    if len(items) > _MANY:
        click.echo(f"  … and {len(items) - _MANY} more; -f json lists all")
