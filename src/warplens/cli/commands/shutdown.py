"""End the recording of a running session, and finish its report."""

from __future__ import annotations

from typing import Any

import click

from warplens.cli.options.session_option import session_option
from warplens.cli.printing.messages import tell
from warplens.cli.printing.session_words import report_path


@click.command(
    epilog="""\b
Examples:
  warplens shutdown                    the program continues, unrecorded
  warplens shutdown --kill sigterm     and ends it
"""
)
@session_option
@click.option(
    "--kill",
    metavar="none|sigterm|sigkill|N",
    help="Signal for the program and all its processes.  [default: the launch option]",
)
def command(session: str | None, kill: str | None) -> None:
    """End the recording of a running session, and finish its report.

    The program continues unless --kill names a signal. Its launcher stays to return the program's
    exit code.
    """
    from warplens.cli.options.capture_arguments import signal_number
    from warplens.recording.session.client import ask

    request: dict[str, Any] = {"do": "shutdown", "kill": None if kill is None else signal_number(kill)}
    answer = ask(session, request, timeout=None)
    for line in answer.get("said") or []:
        tell(f"warplens: {answer['session']}: {line}")
    click.echo(f"{'Report'.ljust(10)}{report_path(answer)}")
    if not answer.get("finished"):
        click.get_current_context().exit(1)
