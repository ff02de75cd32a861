"""Say what a report holds: its parts, processes, tables, time span and diagnostics."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpline.cli.opening import opened as open_report
from warpline.cli.report_path import ReportPath
from warpline.cli.tables import printable, shorten
from warpline.cli.words import counted, duration

if TYPE_CHECKING:
    from warpline.query import Report

_MANY = 20


@click.command(
    epilog="""\b
Examples:
  warpline info run.warpline
  warpline info run.warpline -f json | jq .tables
"""
)
@click.argument("report", type=ReportPath())
@click.option("-f", "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="How to print it.")
def command(report: Path, form: str) -> None:
    """Say what a report holds: its parts, processes, tables, time span and diagnostics."""
    with open_report(report, say=False) as opened:  # they are among the facts
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
        "processes": report.table("processes").to_pylist(),
        "targets": report.table("targets").to_pylist(),
        "tables": report.tables,
        "diagnostics": report.table("diagnostics").to_pylist(),
    }


def _print(facts: dict[str, Any]) -> None:
    _head(f"{printable(facts['path'])}: {duration(facts['end'] - facts['origin'])}")
    for text in facts["waiting"]:
        click.echo(click.style("missing     ", fg="yellow") + printable(text))
    for row in facts["diagnostics"]:
        color = {"error": "red", "warning": "yellow"}.get(row["severity"])
        count = f" ({row['count']:,})" if row["count"] is not None else ""
        click.echo(click.style(row["severity"].ljust(12), fg=color) + f"{printable(row['code'])}{count}: {printable(row['message'])}")

    _head("Parts")
    for part in facts["parts"][:_MANY]:
        status = "unknown" if part["exit_status"] is None else str(part["exit_status"])
        job = f", job {printable(part['job'])}" if part["job"] else ""
        click.echo(f"  {printable(part['id'])}: {shorten(printable(shlex.join(part['command'])), 100)}")
        sources = ", ".join(name for name, source in part["sources"].items() if source.get("on")) or "nothing"
        length = duration(part["end"] - part["origin"])
        click.echo(f"    {length}, exit status {status}{job}, clock {printable(part['clock'])}, recorded {printable(sources)}")
    _rest(facts["parts"])

    _head("Hosts")
    for target in facts["targets"]:
        memory = f"{target['memory'] / (1 << 30):.0f} GiB"
        about = f"{target['cpus']} x {target['cpu']}, {memory}, {target['os']}, {target['kernel']} {target['machine']}"
        click.echo(f"  {printable(target['host'])}: {printable(about)}")

    _head("Processes")
    for process in facts["processes"][:_MANY]:
        rank = f" rank {process['rank']}" if process["rank"] is not None else ""
        click.echo(f"  {process['pid']:>8}{rank} {shorten(printable(process['command']), 100)}")
    _rest(facts["processes"])

    _head("Tables")
    for name, rows in facts["tables"].items():
        if rows:
            click.echo(f"  {name:<20} {counted(rows, 'row')}")
    if empty := [name for name, rows in facts["tables"].items() if not rows]:
        click.echo(f"  empty: {', '.join(empty)}")


def _head(text: str) -> None:
    click.echo(click.style(text, bold=True))


def _rest(items: list[Any]) -> None:
    if len(items) > _MANY:
        click.echo(f"  … and {len(items) - _MANY} more; -f json lists all")
