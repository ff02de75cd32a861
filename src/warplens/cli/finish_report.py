"""Finishes the report of a recording, and prints why if that fails. Keeps the program's exit code."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from warplens.cli.light import give_back_early
from warplens.cli.printing.messages import complain, tell
from warplens.cli.printing.unfinished import leave_for_later
from warplens.cli.printing.words import short_path
from warplens.errors import WarplensError
from warplens.handover import pending

if TYPE_CHECKING:
    from warplens.recording.finishing.converting import Converting


def finish_report(
    note: pending.Pending,
    then: Callable[[Path], None] = lambda report: None,
    converting: Converting | None = None,
    *,
    quiet: bool,
) -> bool:
    """Make the report; return whether there is one. `then` is called with it."""
    try:
        # the program is through: only now comes what takes time to load
        give_back_early()
        from warplens.cli.finishing import finish_and_summarise

        finish_and_summarise(note, converting, quiet=quiet)
    except ModuleNotFoundError as error:
        tell(leave_for_later(note, error))
    except WarplensError as error:
        complain(str(error))
    except Exception as error:
        path = short_path(note.report)
        complain(
            f"{path} is not finished: {type(error).__name__}: {error}\nNothing is lost: `warplens info {path}` tries again."
        )
    else:
        then(note.report)
        return True
    return False
