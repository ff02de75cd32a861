"""Names options in messages as the caller knows them: command-line options or Python arguments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """The names of the output, of overwriting it, and of the spool directory."""

    output: str
    force: str
    spool_dir: str


COMMAND_LINE = Wording("-o", "-f", "--spool-dir")
PYTHON = Wording("output=", "force=True", "spool_dir=")
