"""Run a program, record it, and write the report.

The program keeps its terminal, input and output, gets every signal it would get without warplens, and its exit code is
returned.
"""

from __future__ import annotations

import click

from warplens.cli.recording_command import recording_command

_HELP = """\b
Run PROGRAM, record it, and write a report.

Options of warplens come before PROGRAM; everything after it belongs to the program. The options
of `nsys profile` are accepted. Those that warplens does not support are named once and ignored.
"""
_EXAMPLES = """\b
Examples:
  warplens profile python train.py
  warplens profile -o run -f --stats python train.py --epochs 3
  warplens profile -o rank%q{RANK} -e OMP_NUM_THREADS=4 ./a.out
  warplens profile -c nvtx -p step --capture-range-end repeat:3 ./a.out
  warplens profile --delay 60 --duration 10 --kill sigterm python serve.py
  srun warplens profile -o job python train.py       all ranks in one report
"""

command: click.Command = recording_command(
    "profile",
    help=_HELP,
    short_help="Run a program, record it, and write the report.",
    epilog=_EXAMPLES,
)
