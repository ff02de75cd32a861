"""Run a program that can be recorded, and record nothing until `warpline start`."""

from __future__ import annotations

import click

from warpline.cli.recording_command import recording_command

_HELP = """\b
Run PROGRAM so that it can be recorded, and record nothing before `start`.

It keeps this terminal, and its exit code is returned. `warpline start` in another terminal opens a window of recording,
`warpline stop` closes it and brings the report up to date; then `start` opens another. The report is finished when the
program ends, or with `warpline shutdown`. The options are those of `warpline profile`.
"""
_EXAMPLES = """\b
Examples:
  warpline launch -o run python serve.py &
  warpline start
  warpline stop
  warpline launch --session-new serve python serve.py
"""

command: click.Command = recording_command(
    "launch",
    help=_HELP,
    short_help="Run a program, and record it from `warpline start` on.",
    epilog=_EXAMPLES,
    without=frozenset(("--start-later", "--delay")),
)
