"""The child process that brings a report up to date while its program runs.

`warplens stop` prints the messages.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from warplens.errors import WarplensError
from warplens.handover import pending
from warplens.handover.priority import step_back

# Of the summary: what recording costs is measured at the end; where the report is depends on who reads it.
_LEFT_OUT, _LAST = "On ", "Report"


def main(request: Mapping[str, Any]) -> None:
    """Write a snapshot of the recording whose note `request` names, and print as JSON how it went."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())  # the launcher blocks all of them
    step_back(10, first_to_go=True)  # the program comes first, also where memory gets short
    said: list[str] = []
    lines: list[str] = []
    try:
        lines = _snapshot(Path(request["note"]))
    except WarplensError as error:
        said.append(" ".join(str(error).split()))
    except ModuleNotFoundError as error:
        said.append(
            f"{error.name} is not installed here, so the report can only be written elsewhere, when the recording is over."
        )
    except Exception as error:
        said.append(f"The snapshot was not written: {type(error).__name__}: {error}.")
    json.dump({"finished": not said, "said": said, "lines": lines}, sys.stdout)


def _snapshot(path: Path) -> list[str]:
    note = pending.read(path)
    if note is None:
        return []  # the report was finished in the meantime
    import click

    from warplens.cli.light import give_back_early, import_lightly

    import_lightly()
    give_back_early()
    from warplens.cli.printing.summary import summary
    from warplens.convert.finish import snapshot
    from warplens.report import open as open_report

    manifest = snapshot(note)
    lines = []
    with open_report(note.report) as report:
        for line in summary(report, manifest):
            text = click.unstyle(line)
            if text.startswith(_LAST):
                break
            if text and not text.startswith(_LEFT_OUT):
                lines.append(line)
    return lines
