"""The program that sampler benchmarks run: `py|np|truth|timed|threads SECONDS OUT [COUNT]`.

`py` and `np` write what each step took; with `toggle` as COUNT they switch the perf events that their thread began off and on every 200 ms.
The call graph of `truth` and `timed` is known: below `known` there is nothing but what `CALLS` says. `timed` does it in COUNT threads at
once, and writes how long each function of `step` took by the clock of its thread, ns, the number of steps, and
the seconds that all took.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

PERF_EVENTS_DISABLE, PERF_EVENTS_ENABLE = 31, 32  # of prctl
TOGGLE_NS = 200_000_000
CALLS = {
    "known": {"step", "timed_step"},
    "step": {"walk", "build", "fib", "loop", "words"},
    "timed_step": {"walk", "build", "fib", "loop", "words"},
    "walk": {"walk"},
    "fib": {"fib"},
    "build": {"build", "__init__"},
}


class Node:
    """A node of a binary tree."""

    __slots__ = ("left", "right", "value")

    def __init__(self, left: Node | None, right: Node | None, value: int) -> None:
        self.left, self.right, self.value = left, right, value


def build(depth: int, value: int = 1) -> Node:
    """Make a tree."""
    if depth == 0:
        return Node(None, None, value)
    return Node(build(depth - 1, 2 * value), build(depth - 1, 2 * value + 1), value)


def walk(node: Node | None) -> int:
    """Sum up a tree."""
    return 0 if node is None else node.value % 7 + walk(node.left) + walk(node.right)


def fib(n: int) -> int:
    """Call a lot."""
    return n if n < 2 else fib(n - 1) + fib(n - 2)


def loop(n: int) -> int:
    """Call nothing."""
    total = 0
    for i in range(n):
        total += i * i % 7
    return total


def words(n: int) -> int:
    """Make texts."""
    counts: dict[str, int] = {}
    for i in range(n):
        key = f"k{i % 997}"
        counts[key] = counts.get(key, 0) + 1
    return sum(sorted(counts.values()))


def step() -> int:
    """Do some milliseconds of everything."""
    return walk(build(9)) + fib(15) + loop(10000) + words(4000)


def numpy_step() -> Callable[[], object]:
    """Return a step of NumPy's: a product, some functions, and many small calls."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    import numpy as np

    random = np.random.default_rng(0)
    x, w = random.standard_normal((384, 384)), random.standard_normal((384, 384)) / 20

    def product() -> object:
        y = x @ w
        y = np.tanh(y) * 0.5 + np.maximum(y, 0)
        y = (y - y.mean(0)) / (y.std(0) + 1e-5)
        return sum(float(np.add(y[i % 384, 0], 1.0)) for i in range(400))

    return product


def main(work: Callable[[], object], seconds: float, out: str, *, toggle: bool = False) -> None:
    """Run steps, and write for each: its begin and end on CLOCK_MONOTONIC, its CPU time, how long it waited for a CPU, ns, and a state.

    That is 1 or 0 while events are on or off, -1 for the steps beside a change.
    """
    file = os.open(f"/proc/self/task/{threading.get_native_id()}/schedstat", os.O_RDONLY)

    def clocks() -> tuple[int, int, int]:
        return time.perf_counter_ns(), time.thread_time_ns(), int(os.pread(file, 64, 0).split()[1])

    steps = []
    end = time.perf_counter_ns() + int(seconds * 1e9)
    state, switched, after = 1, time.perf_counter_ns(), 0
    before = clocks()
    while before[0] < end:
        work()
        now = clocks()
        steps.append(
            struct.pack(
                "<5q", before[0], now[0], now[1] - before[1], now[2] - before[2], state if after > 2 else -1
            )
        )
        after += 1
        if toggle and now[0] - switched > TOGGLE_NS:
            state, switched, after = 1 - state, now[0], 0
            ctypes.CDLL(None).prctl(PERF_EVENTS_ENABLE if state else PERF_EVENTS_DISABLE, 0, 0, 0, 0)
            now = clocks()
        before = now
    with open(out, "wb") as written:
        written.write(b"".join(steps))


def known(seconds: float) -> None:
    """Run steps, and nothing else."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        step()


def timed(seconds: float, out: str, count: int) -> None:
    """Run the parts of steps in threads; write the CPU time of each part, ns, how many steps were done, and the s that all took."""
    totals = [dict.fromkeys(CALLS["step"], 0) for _ in range(count)]
    steps: list[int] = []
    began = time.perf_counter()

    def known(spent: dict[str, int]) -> None:
        done = 0
        end = time.perf_counter() + seconds
        while time.perf_counter() < end:
            timed_step(spent)
            done += 1
        steps.append(done)

    threads = [threading.Thread(target=known, args=(spent,)) for spent in totals]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parts = {name: sum(spent[name] for spent in totals) for name in totals[0]}
    wall = time.perf_counter() - began
    Path(out).write_text(json.dumps({"parts": parts, "steps": sum(steps), "wall": wall}))


def timed_step(spent: dict[str, int]) -> None:
    """A step that looks at the clock between its parts."""
    clock = time.thread_time_ns
    times = [clock()]
    tree = build(9)
    times.append(clock())
    walk(tree)
    times.append(clock())
    fib(15)
    times.append(clock())
    loop(10000)
    times.append(clock())
    words(4000)
    times.append(clock())
    for name, start, end in zip(("build", "walk", "fib", "loop", "words"), times, times[1:], strict=False):
        spent[name] += end - start


def blocked(count: int, seconds: float) -> None:
    """Have threads wait, 20 frames deep, beside one that works."""
    event = threading.Event()

    def deep(n: int) -> None:
        if n:
            deep(n - 1)
        else:
            event.wait()

    threads = [threading.Thread(target=deep, args=(20,)) for _ in range(count - 1)]
    for thread in threads:
        thread.start()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        loop(1000)
    event.set()


if __name__ == "__main__":
    kind, seconds, out = sys.argv[1], float(sys.argv[2]), sys.argv[3]
    if kind == "threads":
        blocked(int(sys.argv[4]), seconds)
    elif kind == "truth":
        known(seconds)
    elif kind == "timed":
        timed(seconds, out, int(sys.argv[4]))
    else:
        main(step if kind == "py" else numpy_step(), seconds, out, toggle=sys.argv[4:] == ["toggle"])
