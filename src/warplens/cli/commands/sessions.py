"""List the running sessions of this user on this machine."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any

import click

from warplens.cli.printing.messages import tell
from warplens.cli.printing.tables import printable, shorten
from warplens.errors import UsageError

if TYPE_CHECKING:
    from warplens.recording.session.directory import Entry


@click.command(
    epilog="""\b
Examples:
  warplens sessions
  warplens sessions list -f json
"""
)
@click.argument("action", default="list", metavar="[list]")
@click.option(
    "-f",
    "--format",
    "form",
    type=click.Choice(["plain", "json"]),
    default="plain",
    show_default=True,
    help="Output format.",
)
def command(action: str, form: str) -> None:
    """List the running sessions of this user on this machine."""
    from warplens.recording.session.directory import entries

    if action != "list":
        raise UsageError(f"sessions {action}: the only command here is `warplens sessions list`.")
    with entries() as found:
        rows = [_row(entry) for entry in found if entry.alive or entry.note.unfinished()]
    if form == "json":
        click.echo(json.dumps(rows, indent=2))
        return
    if not rows:
        tell("warplens: no session runs.")
        return
    width = max(len("SESSION"), *(len(row["session"]) for row in rows))
    click.echo(click.style(f"{'SESSION'.ljust(width)}  {'PROCESS':>8}  {'STATE':<14}  PROGRAM", bold=True))
    for row in rows:
        program = shorten(printable(shlex.join(row["command"])), 60)
        click.echo(
            f"{printable(row['session']).ljust(width)}  {row['pid'] or '?':>8}  {row['state']:<14}  {program}"
        )


def _row(entry: Entry) -> dict[str, Any]:
    from warplens.errors import CaptureError
    from warplens.recording.session.client import exchange, suspended

    note = entry.note
    row: dict[str, Any] = {
        "session": note.name,
        "pid": note.pid,
        "report": note.report,
        "command": list(note.command),
    }
    state = "killed"
    if entry.alive:
        try:
            state = (
                "suspended"
                if suspended(note)
                else exchange(entry, {"do": "status"}, 2.0).get("phase", "unknown")
            )
        except CaptureError:
            state = "no answer"
    return {**row, "state": state}
