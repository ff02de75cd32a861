"""Start recording in a running session: opens a window."""

from __future__ import annotations

import click

from warplens.cli.options.session_option import session_option
from warplens.cli.printing.messages import tell
from warplens.cli.printing.session_words import phase


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
    """Start recording in a running session: opens a window.

    The program was started with `warplens launch` or `warplens profile`. Each `start` opens one
    more window of the same report.
    """
    from warplens.recording.session.client import ask

    answer = ask(session, {"do": "start"})
    if answer["window"]:
        tell(
            f"warplens: {answer['session']}: recording begins (window {answer['window']}). End it with: warplens stop"
        )
    else:
        tell(f"warplens: {answer['session']}: nothing to begin, it is {phase(answer)}.")
