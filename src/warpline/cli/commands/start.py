"""Begin to record in a running session: opens a window."""

from __future__ import annotations

import click

from warpline.cli.session_option import session_option
from warpline.cli.session_words import phase
from warpline.cli.telling import tell


@click.command(
    epilog="""\b
Examples:
  warpline launch python serve.py     in one terminal
  warpline start                      in another
  warpline start --session serve
"""
)
@session_option
def command(session: str | None) -> None:
    """Begin to record in a running session: opens a window.

    The program was started with `warpline launch` or `warpline profile`. Each `start` opens one more window of the same report.
    """
    from warpline.capture.client import ask

    answer = ask(session, {"do": "start"})
    if answer["window"]:
        tell(f"warpline: {answer['session']}: recording begins (window {answer['window']}). End it with: warpline stop")
    else:
        tell(f"warpline: {answer['session']}: nothing to begin, it is {phase(answer)}.")
