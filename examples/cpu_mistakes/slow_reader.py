"""Reads each batch anew from a slow disk, in a loader thread: the training waits for it, epoch after epoch.

    warpline profile -o reader -t nvtx,osrt --sample=process-tree --python-sampling=true python examples/cpu_mistakes/slow_reader.py
    warpline stats -r osrt_sum,osrt_trace reader
    warpline timeline reader

The disk is a FIFO whose other end takes its time. `--fix` keeps what was read: only the first epoch waits.
"""

from __future__ import annotations

import argparse
import os
import queue
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import warpline.nvtx as nvtx

BATCH = 4096  # bytes
BATCHES = 10  # of an epoch
_SEEK = 0.02  # s


def disk(path: Path, reads: int) -> None:
    """Give out batch after batch, slowly."""
    with open(path, "wb", buffering=0) as fifo:
        for number in range(reads):
            time.sleep(_SEEK)
            fifo.write(bytes([number % BATCHES]) * BATCH)


def batches(path: Path, epochs: int, keep: bool) -> Iterator[bytes]:
    """Yield the batches of all epochs; `keep`: those of the first one again."""
    kept: list[bytes] = []
    with open(path, "rb", buffering=0) as file:
        for _ in range(epochs):
            if len(kept) == BATCHES:
                yield from kept
                continue
            for _ in range(BATCHES):
                with nvtx.annotate("load"):
                    batch = b""
                    while len(batch) < BATCH:
                        batch += os.read(file.fileno(), BATCH - len(batch))
                if keep:
                    kept.append(batch)
                yield batch


def main() -> None:
    """Train on batches that a loader thread puts into a queue."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--items", type=int, default=3, help="epochs (default: 3)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dataset"
        os.mkfifo(path)
        reads = BATCHES * (1 if options.fix else options.items)
        ready: queue.Queue[bytes | None] = queue.Queue(maxsize=2)

        def load() -> None:
            for batch in batches(path, options.items, options.fix):
                ready.put(batch)
            ready.put(None)

        threads = [threading.Thread(target=disk, args=(path, reads), name="disk"), threading.Thread(target=load, name="loader")]
        for thread in threads:
            thread.start()
        steps = 0
        while True:
            with nvtx.annotate("wait for batch"):
                batch = ready.get()
            if batch is None:
                break
            with nvtx.annotate("step"):
                sum(batch * 10)
            steps += 1
        for thread in threads:
            thread.join()
    print(f"{steps} steps")


if __name__ == "__main__":
    main()
