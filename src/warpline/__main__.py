"""`python -m warpline` is the command line."""

from __future__ import annotations

from warpline.cli.main import main

if __name__ == "__main__":
    main()
