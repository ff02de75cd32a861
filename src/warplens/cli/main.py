"""The entry point: all commands where click is installed, else recording alone."""

from __future__ import annotations

import os
import sys

from warplens.cli import prepared_child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    at_once: type[int] | None = None
    # Before anything is loaded. What a recording has loaded is not taken down again: 15 ms of a short run.
    records = arguments is None and prepared_child.begin(sys.argv[1:])
    import importlib.util

    from warplens.cli.printing.unshowable import write_escapes

    if importlib.util.find_spec("click") is None:
        # installed with `pip install --no-deps`: enough to record
        from warplens.cli.bare import run
    else:
        from warplens.cli.group import AtOnce, run

        at_once = AtOnce
    write_escapes()
    try:
        code = run(arguments)
    finally:
        _settle()
    if records or (at_once is not None and isinstance(code, at_once)):
        os._exit(code)
    sys.exit(code)


def _settle() -> None:
    """Flush, and discard unwritable output.

    Otherwise the interpreter's last flush would change the exit code to 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (AttributeError, ValueError):  # closed by the parent process
            continue
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


if __name__ == "__main__":
    main()
