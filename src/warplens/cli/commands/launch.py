"""Run a program that can be recorded, and record nothing until `warplens start`."""

from __future__ import annotations

import click

from warplens.cli.recording_command import recording_command

_HELP = """\b
Run PROGRAM ready for recording; record nothing before `start`.

The program keeps this terminal, and launch returns its exit code. `warplens start` in another
terminal opens a window of recording. `warplens stop` closes it and updates the report; another
`start` opens the next window. The report is finished when the program ends, or with `warplens
shutdown`. The options are those of `warplens profile`.
"""
_EXAMPLES = """\b
Examples:
  warplens launch -o run python serve.py &
  warplens start
  warplens stop
  warplens launch --session-new serve python serve.py
"""

command: click.Command = recording_command(
    "launch",
    help=_HELP,
    short_help="Run a program, and record it from `warplens start` on.",
    epilog=_EXAMPLES,
    without=frozenset(("--start-later", "--delay")),
)
