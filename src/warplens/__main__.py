"""`python -m warplens` is the command line."""

from __future__ import annotations

from warplens.cli.main import main

if __name__ == "__main__":
    main()
