"""Messages beside the program's own output.

Nobody has to read them: a closed stderr never stops a recording.
"""

from __future__ import annotations

import os
import sys

from warplens.cli.printing.colors import styled, unstyled

INTERRUPTED = 130
BROKEN_PIPE = 141


def tell(text: str) -> None:
    """Print one message on stderr, if there still is one."""
    try:
        if "click" in sys.modules:
            sys.modules["click"].echo(text, err=True)  # leaves colours out where they cannot be shown
        elif sys.stderr is not None:
            print(text if sys.stderr.isatty() else unstyled(text), file=sys.stderr)
    except OSError:
        pass


def complain(text: str) -> None:
    """Print an error: its first line as the error, the advice below."""
    first, _, rest = text.strip().partition("\n")
    head = styled("warplens: ", bold=True) + styled("error: ", fg="red", bold=True)
    tell("\n  ".join([head + first, *rest.splitlines()]))


def drop_output() -> None:
    """Send what is still buffered nowhere: the interpreter's last flush must not fail again."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.close(null)
