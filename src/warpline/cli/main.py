"""The entry point: all commands where click is installed, else recording alone."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line and exit with its code."""
    if importlib.util.find_spec("click") is None:
        # installed with `pip install --no-deps`: enough to record
        from warpline.cli.bare import run
    else:
        from warpline.cli.group import run
    sys.exit(run(arguments))


if __name__ == "__main__":
    main()
