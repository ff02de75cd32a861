"""Say what a report holds: its parts, processes, tables, time span and diagnostics."""

from __future__ import annotations

import json
import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from warpline.cli.finishing import progress_bar
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
    from warpline.query import open as open_report

    with progress_bar() as progress, open_report(report, progress=progress) as opened:
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
    _head(f"{facts['path']}: {duration(facts['end'] - facts['origin'])}")
    for text in facts["waiting"]:
        click.echo(click.style("missing     ", fg="yellow") + text)
    for row in facts["diagnostics"]:
        color = {"error": "red", "warning": "yellow"}.get(row["severity"])
        count = f" ({row['count']:,})" if row["count"] is not None else ""
        click.echo(click.style(row["severity"].ljust(12), fg=color) + f"{row['code']}{count}: {printable(row['message'])}")

    _head("Parts")
    for part in facts["parts"][:_MANY]:
        status = "unknown" if part["exit_status"] is None else str(part["exit_status"])
        job = f", job {part['job']}" if part["job"] else ""
        click.echo(f"  {part['id']}: {shorten(printable(shlex.join(part['command'])), 100)}")
        sources = ", ".join(name for name, source in part["sources"].items() if source.get("on")) or "nothing"
        click.echo(f"    {duration(part['end'] - part['origin'])}, exit status {status}{job}, clock {part['clock']}, recorded {sources}")
    _rest(facts["parts"])

    _head("Hosts")
    for target in facts["targets"]:
        memory = f"{target['memory'] / (1 << 30):.0f} GiB"
        click.echo(
            f"  {target['host']}: {target['cpus']} x {target['cpu']}, {memory}, {target['os']}, {target['kernel']} {target['machine']}"
        )

    _head("Processes")
    for process in facts["processes"][:_MANY]:
        rank = f" rank {process['rank']}" if process["rank"] is not None else ""
        click.echo(f"  {process['pid']:>8}{rank} {shorten(printable(process['command']), 100)}")
    _rest(facts["processes"])

    _head("Tables")
    for name, rows in facts["tables"].items():
        click.echo(f"  {name:<16} {counted(rows, 'row')}")


def _head(text: str) -> None:
    click.echo(click.style(text, bold=True))


def _rest(items: list[Any]) -> None:
    if len(items) > _MANY:
        click.echo(f"  … and {len(items) - _MANY} more; -f json lists all")
