"""Fetches and digests in four threads under one lock: they stand in a queue, one works.

    warplens profile -o convoy -t nvtx,osrt,gil --sample=process-tree --python-sampling=true python examples/cpu_mistakes/lock_convoy.py
    warplens stats -r osrt_sum,thread_state_sum convoy
    warplens timeline convoy

`--fix` fetches and digests outside the lock, and takes it to note the result alone.
"""

from __future__ import annotations

import argparse
import hashlib
import threading
import time

import warplens.nvtx as nvtx

_TRAVEL = 0.02  # s


class Ledger:
    """Digests that are noted one after the other."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.digests: list[str] = []

    def note(self, number: int) -> None:
        """Fetch, digest and note, all of it under the lock: nobody else can work meanwhile."""
        with self.lock:
            self.digests.append(digest(number))

    def note_fast(self, number: int) -> None:
        """Fetch and digest first; the lock is held for a moment."""
        found = digest(number)
        with self.lock:
            self.digests.append(found)


def digest(number: int) -> str:
    """Digest what a service sends that is some way off."""
    time.sleep(_TRAVEL)
    return hashlib.sha256(number.to_bytes(8, "little") * 512).hexdigest()


def main() -> None:
    """Start the threads and wait for them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--items", type=int, default=60, help="in all (default: 60)")
    options = parser.parse_args()
    ledger = Ledger()
    note = ledger.note_fast if options.fix else ledger.note

    def work(first: int) -> None:
        for number in range(first, options.items, 4):
            with nvtx.annotate("item", payload=number):
                note(number)

    threads = [threading.Thread(target=work, args=(first,), name=f"worker-{first}") for first in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(f"{len(ledger.digests)} digests")


if __name__ == "__main__":
    main()
