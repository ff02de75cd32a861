"""Calls a C function that works for long and keeps the GIL: every other thread of the program stands still.

    warplens profile -o hog -t nvtx,gil --sample=process-tree --python-sampling=true python examples/cpu_mistakes/gil_hog.py
    warplens stats -r gil_sum hog
    warplens timeline hog

The C function is `usleep`, called through `ctypes.PyDLL`, as an extension calls its own code that forgets `Py_BEGIN_ALLOW_THREADS`.
`--fix` calls it through `ctypes.CDLL`, which gives the GIL back for the call.
"""

from __future__ import annotations

import argparse
import ctypes
import threading
import time

import warplens.nvtx as nvtx


def main() -> None:
    """Serve requests while another thread calls into C."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--fix", action="store_true", help="without the mistake")
    parser.add_argument("--items", type=int, default=10, help="calls into C (default: 10)")
    parser.add_argument("--ms", type=int, default=50, help="that each takes (default: 50)")
    options = parser.parse_args()
    library = ctypes.CDLL(None) if options.fix else ctypes.PyDLL(None)
    done = threading.Event()

    def hog() -> None:
        for _ in range(options.items):
            with nvtx.annotate("simulate"):
                library.usleep(options.ms * 1000)
            time.sleep(0.01)
        done.set()

    thread = threading.Thread(target=hog, name="simulator")
    thread.start()
    served, longest = 0, 0.0
    while not done.is_set():
        before = time.perf_counter()
        with nvtx.annotate("request"):
            time.sleep(
                0.001
            )  # a request that waits for its database gives the GIL away, and then wants it back
            sum(range(20_000))
        longest = max(longest, time.perf_counter() - before)
        served += 1
    thread.join()
    print(f"{served} requests, the longest took {longest * 1000:.0f} ms")


if __name__ == "__main__":
    main()
