"""Reads one batch after the other from a slow disk, in a loader thread: the training waits for it at every step.

    warplens profile -o reader -t nvtx,osrt --sample=process-tree --python-sampling=true python examples/cpu_mistakes/slow_reader.py
    warplens stats -r osrt_sum,osrt_trace reader
    warplens timeline reader

The disk is a FIFO whose other end takes its time. Such disks answer many questions at once: `--fix` reads in eight threads.
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

import warplens.nvtx as nvtx

BATCH = 4096  # bytes
BATCHES = 10  # of an epoch
READERS = 8
_SEEK = 0.06  # s
_STEP = 0.02  # s


def disk(path: Path, reads: int) -> None:
    """Give out batch after batch, slowly."""
    with open(path, "wb", buffering=0) as fifo:
        for number in range(reads):
            time.sleep(_SEEK)
            fifo.write(bytes([number % BATCHES]) * BATCH)


def batches(path: Path, reads: int) -> Iterator[bytes]:
    """Yield what the disk gives out."""
    with open(path, "rb", buffering=0) as file:
        for _ in range(reads):
            with nvtx.annotate("load"):
                batch = b""
                while len(batch) < BATCH:
                    batch += os.read(file.fileno(), BATCH - len(batch))
            yield batch


def main() -> None:
    """Train on batches that loader threads put into a queue."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--items", type=int, default=3, help="epochs (default: 3)")
    options = parser.parse_args()
    steps, readers = options.items * BATCHES, READERS if options.fix else 1
    with tempfile.TemporaryDirectory() as folder:
        ready: queue.Queue[bytes] = queue.Queue(maxsize=2 * readers)

        def load(path: Path, reads: int) -> None:
            for batch in batches(path, reads):
                ready.put(batch)

        threads = []
        for number in range(readers):
            path = Path(folder) / f"{number}-dataset"
            os.mkfifo(path)
            reads = len(range(number, steps, readers))
            threads.append(threading.Thread(target=disk, args=(path, reads), name="disk"))
            threads.append(threading.Thread(target=load, args=(path, reads), name="loader"))
        for thread in threads:
            thread.start()
        for _ in range(steps):
            with nvtx.annotate("wait for batch"):
                batch = ready.get()
            with nvtx.annotate("step"):
                time.sleep(_STEP)  # the device works
                sum(batch)
        for thread in threads:
            thread.join()
    print(f"{steps} steps")


if __name__ == "__main__":
    main()
