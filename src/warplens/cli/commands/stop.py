"""Stop recording in a running session, and update its report."""

from __future__ import annotations

import sys
from typing import Any

import click

from warplens.cli.options.session_option import session_option
from warplens.cli.printing.messages import tell
from warplens.cli.printing.session_words import closed, report_path


@click.command(
    epilog="""\b
Examples:
  warplens stop                   close the window; the program continues
  warplens stop --keep 10         keep only the last 10 s
  warplens stop --no-wait         write the report later
"""
)
@session_option
@click.option(
    "--keep",
    type=float,
    metavar="SECONDS",
    help="Keep only the last SECONDS; a flight recorder then continues.",
)
@click.option(
    "--wait/--no-wait", default=True, show_default=True, help="Wait until the report is up to date."
)
def command(session: str | None, keep: float | None, wait: bool) -> None:
    """Stop recording in a running session, and update its report.

    The program continues, and `warplens start` opens the next window. The report is readable now;
    it is finished when the program ends, or with `warplens shutdown`.
    """
    from warplens.recording.session.client import ask

    answer = ask(session, {"do": "stop", "keep": keep, "wait": wait}, timeout=None if wait else 10.0)
    tell(f"warplens: {answer['session']}: {closed(answer)}.")
    if _print(answer) and wait:
        sys.stdout.flush()
        click.get_current_context().exit(1)


def _print(answer: dict[str, Any]) -> bool:
    """Print the answer of the session; return whether the report could not be written."""
    for line in answer.get("said") or []:
        tell(f"warplens: {line}")
    for line in answer.get("lines") or []:
        click.echo(line)
    click.echo(f"{'Report'.ljust(10)}{report_path(answer)}")
    return not answer.get("finished")
