"""The option that names a running session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def session_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--session NAME`."""
    return click.option(
        "--session",
        metavar="NAME",
        help="Name of the session; required if several run.",
        shell_complete=_complete,
    )(command)


def _complete(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[Any]:
    from click.shell_completion import CompletionItem

    from warplens.recording.session.directory import entries

    with entries() as found:
        return [
            CompletionItem(entry.note.name)
            for entry in found
            if entry.alive and entry.note.name.startswith(incomplete)
        ]
