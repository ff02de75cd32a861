"""Ask a report in SQL."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from warplens.cli.opening import opened as open_report
from warplens.cli.opening import window_option
from warplens.cli.options.report_path import ReportPath
from warplens.cli.options.unit_help import help_tables
from warplens.cli.printing import tables
from warplens.errors import QueryError


@click.command(
    epilog="""\b
Examples:
  warplens query run.warplens "SELECT pid, command FROM processes" -f csv
  warplens query run "SELECT message, count(*) FROM nvtx_ranges GROUP BY 1"
  warplens query run.warplens "DESCRIBE nvtx_ranges"
  warplens query run.warplens - < question.sql
"""
)
@click.argument("report", type=ReportPath())
@click.argument("sql")
@click.option(
    "-f",
    "--format",
    "form",
    default="table",
    metavar="FORMAT",
    help="table (default), csv, spreadsheet (csv without formulas), tsv, json or markdown.",
)
@window_option
@click.option(
    "--any",
    "anything",
    is_flag=True,
    help="Allow any DuckDB statement; by default, a single SELECT, DESCRIBE, SHOW or SUMMARIZE.",
)
@help_tables("--help-tables")
def command(report: Path, sql: str, form: str, window: int | None, anything: bool) -> None:
    """Query a report in SQL (DuckDB's dialect); the tables are views.

    SQL `-` reads the statement from standard input.

    Times are ns of CLOCK_MONOTONIC. `warplens info REPORT` lists the tables with their rows. DuckDB
    gets half of the memory of the machine or the container, at most 8 GiB; its temporary files go
    into TMPDIR.
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
