"""Messages beside the program's own output. Nobody has to read them: a closed stderr never stops a recording."""

from __future__ import annotations

import click


def tell(text: str) -> None:
    """Print one message on stderr, if there still is one."""
    try:
        click.echo(text, err=True)
    except OSError:
        pass
