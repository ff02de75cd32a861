"""Begin to record in a running session: opens a window."""

from __future__ import annotations

import click

from warplens.cli.session_option import session_option
from warplens.cli.session_words import phase
from warplens.cli.telling import tell


@click.command(
    epilog="""\b
Examples:
  warplens launch python serve.py     in one terminal
  warplens start                      in another
  warplens start --session serve
"""
)
@session_option
def command(session: str | None) -> None:
    """Begin to record in a running session: opens a window.

    The program was started with `warplens launch` or `warplens profile`. Each `start` opens one more window of the same report.
    """
    from warplens.capture.client import ask

    answer = ask(session, {"do": "start"})
    if answer["window"]:
        tell(f"warplens: {answer['session']}: recording begins (window {answer['window']}). End it with: warplens stop")
    else:
        tell(f"warplens: {answer['session']}: nothing to begin, it is {phase(answer)}.")
