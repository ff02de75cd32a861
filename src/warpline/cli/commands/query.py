"""Ask a report in SQL."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from warpline.cli import tables
from warpline.cli.opening import opened as open_report
from warpline.cli.opening import window_option
from warpline.cli.report_path import ReportPath
from warpline.errors import QueryError


@click.command(
    epilog="""\b
Examples:
  warpline query run.warpline "SELECT pid, command FROM processes" -f csv
  warpline query run "SELECT message, count(*) FROM nvtx_ranges GROUP BY 1"
  warpline query run.warpline "DESCRIBE nvtx_ranges" --any
  warpline query run.warpline - < question.sql
"""
)
@click.argument("report", type=ReportPath())
@click.argument("sql")
@click.option("-f", "--format", "form", default="table", metavar="FORMAT", help="table (default), csv, tsv, json or markdown.")
@window_option
@click.option("--any", "anything", is_flag=True, help="Any statement of DuckDB's dialect, not one SELECT alone.")
def command(report: Path, sql: str, form: str, window: int | None, anything: bool) -> None:
    """Ask a report in SQL (DuckDB's dialect); the tables are views. SQL `-` is read from standard input.

    Times are ns of CLOCK_MONOTONIC. `warpline info REPORT` lists the tables with their rows.
    """
    name = tables.format_name(form)
    text = sys.stdin.read() if sql == "-" else sql
    with open_report(report, window=window) as opened:
        try:
            result = opened.sql(text, untrusted=not anything)
        except QueryError as error:
            message = str(error)
            known = ", ".join(opened.tables)
            raise QueryError(message if known in message else f"{message}\nTables: {known}.") from error
    tables.show(tables.FORMATS[name](result, width=tables.terminal_width()))
