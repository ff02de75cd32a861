"""The program that `long_run` and `finish_during` record, a small server: `SECONDS EVENTS THREADS`.

Prints how many ranges it made, and when it ended (s, the monotonic clock). Ends with exit code 7.

Each thread makes its share of EVENTS ranges a second in bursts of 10 ms, nested as requests are, with a lock, a file, a payload and some
garbage among them, so that all sources of the CPU side have something to record. Its own memory does not grow.
"""

from __future__ import annotations

import sys
import threading
import time

from warplens import nvtx

BURST_S = 0.01
STEPS = 8  # ranges in a request, itself included


def work(end: float, rate: float, counts: list[int], lock: threading.Lock) -> None:
    """Make `rate` ranges a second until `end` (s of the monotonic clock), and add their number to `counts`."""
    made, begun = 0, time.monotonic()
    while (now := time.monotonic()) < end:
        while made < (now - begun) * rate:
            request(made)
            made += STEPS
        with lock, open("/dev/null", "wb") as file:
            file.write(b"x" * 100)
        time.sleep(BURST_S)
    counts.append(made)


def request(number: int) -> None:
    """One request: a range with a payload, and what it is made of."""
    with nvtx.annotate("request", payload=number, domain="server"):
        cycle: list[object] = []
        cycle.append(cycle)  # for the collector
        for step in range(STEPS - 1):
            with nvtx.annotate(_NAMES[step], domain="server"):
                sum(range(20))


_NAMES = [f"step {number}" for number in range(STEPS)]


def main() -> int:
    """Run the threads."""
    seconds, events, threads = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
    counts: list[int] = []
    lock = threading.Lock()
    end = time.monotonic() + seconds
    pool = [threading.Thread(target=work, args=(end, events / threads, counts, lock)) for _ in range(threads)]
    for thread in pool:
        thread.start()
    for thread in pool:
        thread.join()
    print(sum(counts), time.monotonic(), flush=True)
    return 7


if __name__ == "__main__":
    sys.exit(main())
