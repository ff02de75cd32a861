"""Annotates from many threads at once, without a GIL where there is none: `nvtx_at_once.py THREADS ROUNDS`. What it did can be counted."""

from __future__ import annotations

import sys
import threading
from typing import Any

import warplens.nvtx as nvtx

threads, rounds = (int(word) for word in sys.argv[1:])
begin = threading.Barrier(threads)
shared = nvtx.annotate("shared", domain="all", payload={"a": 1, "b": 2.0})


@nvtx.annotate("decorated", domain="all", category="calls")
def decorated(number: int) -> int:
    """Is a range."""
    return number + 1


def work(number: int) -> None:
    """One thread's part: known messages, new ones, domains, payloads and counters, each first used by all threads at once."""
    begin.wait()
    for i in range(rounds):
        domain = nvtx.get_domain(f"domain {i % 20}")
        counter: Any = domain.get_counter("count", int)
        counter.sample(i)
        with nvtx.annotate("constant", domain="all", color="green"):
            decorated(i)
        with nvtx.annotate(
            f"message {i}", domain=f"domain {i % 20}", category=f"category {i % 7}", payload=[number, i]
        ):
            pass
        with shared:
            pass
        nvtx.mark("mark", payload={f"key {i % 50}": i, "text": "x"})
        nvtx.end_range(nvtx.start_range("started", domain="all"))
        if number == 0:
            shared.attributes.message = f"shared {i % 5}"
            shared.attributes.color = ("red", "blue")[i % 2]


alive = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
for thread in alive:
    thread.start()
for thread in alive:
    thread.join()
print(getattr(sys, "_is_gil_enabled", lambda: True)())
