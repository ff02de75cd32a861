"""A worker process: reads parts from its standard input, writes their results to its standard output.

Its argument is the number of workers that share the machine's memory.
"""

from __future__ import annotations

import os
import pickle
import sys

from warplens.recipes.engine import compute
from warplens.storage import available


def main() -> None:
    """Serve until the input ends. What a library prints goes to stderr, because stdout has the results."""
    available.share(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    results = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    while True:
        try:
            part = pickle.load(sys.stdin.buffer)
        except EOFError:
            return
        pickle.dump(compute(part), results)
        results.flush()


if __name__ == "__main__":
    main()
