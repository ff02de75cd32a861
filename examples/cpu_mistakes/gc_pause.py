"""Keeps millions of objects and lets the garbage collector walk over all of them in the middle of its requests.

    warplens profile -o pause -t nvtx,gc --sample=process-tree --python-sampling=true python examples/cpu_mistakes/gc_pause.py
    warplens stats -r gc_sum pause
    warplens timeline pause

`--fix` tells the collector with `gc.freeze()` that what was loaded stays.
"""

from __future__ import annotations

import argparse
import gc
import time

import warplens.nvtx as nvtx


def request(number: int) -> int:
    """Ask the database, and make some garbage with cycles in it."""
    time.sleep(0.005)
    nodes: list[list[object]] = [[number] for _ in range(500)]
    for node in nodes:
        node.append(node)
    return len(nodes)


def main() -> None:
    """Load, then serve; each tenth request collects, as programs do that are afraid of their memory."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--items", type=int, default=30, help="requests (default: 30)")
    parser.add_argument("--objects", type=int, default=4_000_000, help="that are kept (default: 4000000)")
    options = parser.parse_args()
    with nvtx.annotate("load"):
        gc.disable()  # nothing of this is garbage
        kept = [[number] for number in range(options.objects)]
        gc.enable()
    if options.fix:
        gc.freeze()
    served = 0
    for number in range(options.items):
        with nvtx.annotate("request", payload=number):
            served += request(number) > 0
            if number % 10 == 9:
                gc.collect()
    print(f"{served} requests beside {len(kept)} objects")


if __name__ == "__main__":
    main()
