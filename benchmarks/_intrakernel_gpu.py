"""Shared code of the benchmarks of in-kernel regions: loops, slowdown of a kernel, rows, reference PTX."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from harness import Row

NS_BUDGET, SLOWER_BUDGET = 40.0, 1.02
BARE, REFERENCE = "nothing", "an event of the reference design"
REGION, FULL, RING = (
    "a region",
    "a region with payload and generation",
    "a region into a ring in shared memory",
)

# An event of the reference design, for front ends that take PTX: thread 0 of a block takes the next of all slots by an atomic, writes
# its begin, comes back for it, and writes length, tag and block: four 64-bit words. 65536 slots, over and over.
SLOT_BYTES = 8 * (4 * 65536 + 8)
# $0 u64 slot, 0 in all other threads; $1 u64 buffer.
BEGIN_PTX = (
    "{ .reg .pred p; .reg .u32 x; .reg .u64 e, t; mov.u32 x, %tid.x; setp.eq.u32 p, x, 0; mov.u64 e, 0;"
    " @p atom.global.add.u64 e, [$1], 1; and.b64 e, e, 0xFFFF; mad.lo.u64 e, e, 32, $1; mov.u64 t, %globaltimer;"
    " @p st.global.u64 [e+8], t; selp.b64 $0, e, 0, p; }"
)


def end_ptx(slot: str) -> str:
    """The end of such an event; `slot` is the operand that the begin returned."""
    return (
        "{ .reg .pred p; .reg .u32 x; .reg .u64 b, t;"
        f" setp.ne.u64 p, {slot}, 0; mov.u64 b, 0; @p ld.global.u64 b, [{slot}+8]; mov.u64 t, %globaltimer; sub.u64 t, t, b;"
        f" @p st.global.u64 [{slot}+16], t; mov.u64 t, 1; @p st.global.u64 [{slot}+24], t;"
        f" mov.u32 x, %ctaid.x; cvt.u64.u32 t, x; @p st.global.u64 [{slot}+32], t; }}"
    )


def per_pass(
    cases: Mapping[str, Callable[[int], object]],
    wait: Callable[[], object],
    count: int,
    *,
    rounds: int = 7,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> dict[str, float]:
    """Launch loops of `count` and of twice as many passes, in turn; ns of one pass, which is what is between the two.

    Args:
        cases: name to what launches its kernel with a number of passes. Whatever a launch costs is the same in both, and cancels out.
        wait: returns when the device is done.
        count: passes of the shorter loop.
        rounds: how often all are launched; of each loop the quickest counts. One more round warms up.
        clock: in ns.
    """
    least = {(name, passes): float("inf") for name in cases for passes in (count, 2 * count)}
    for number in range(rounds + 1):
        for name, passes in least:
            wait()
            began = clock()
            cases[name](passes)
            wait()
            if number:
                least[name, passes] = min(least[name, passes], clock() - began)
    return {name: (least[name, 2 * count] - least[name, count]) / count for name in cases}


def one_by_one(*parts: Callable[[], Iterable[Row]]) -> Iterator[Row]:
    """The rows of all parts as they come; a part that fails does not keep the later ones from running, and is raised at the end."""
    failed = []
    for part in parts:
        try:
            yield from part()
        except Exception as error:
            failed.append(error)
    if failed:
        told = "; ".join(f"{type(error).__name__}: {error}" for error in failed)
        raise RuntimeError(f"{len(failed)} of {len(parts)} parts failed: {told}") from failed[0]


def region_rows(language: str, found: Mapping[str, float], *, note: str = "") -> list[Row]:
    """What each case adds to a pass, beside the reference design in the same run; the plain region has a budget."""
    peer = found[REFERENCE] - found[BARE]
    return [
        Row(
            f"{language}: {name}",
            value - found[BARE],
            "ns",
            "the reference design",
            peer,
            NS_BUDGET if name == REGION else None,
            "value",
            note,
        )
        for name, value in found.items()
        if name not in (BARE, REFERENCE)
    ]


def slowdown(
    on: Callable[[], object],
    off: Callable[[], object],
    wait: Callable[[], object],
    *,
    rounds: int,
    each: int = 5,
    clock: Callable[[], int] = time.perf_counter_ns,
) -> tuple[float, float]:
    """Run a kernel with and without regions in turn, `each` launches at a time: its ms without, and the median of the ratios."""
    times: dict[Callable[[], object], list[float]] = {on: [], off: []}
    for number in range(rounds + 1):
        for launch in (on, off) if number % 2 else (off, on):
            wait()
            began = clock()
            for _ in range(each):
                launch()
            wait()
            if number:  # the first round warms up
                times[launch].append((clock() - began) / each / 1e6)
    return statistics.median(times[off]), statistics.median(
        one / other for one, other in zip(times[on], times[off], strict=True)
    )


def slowdown_row(what: str, found: tuple[float, float], note: str) -> Row:
    """A row of what `slowdown` found."""
    bare, slower = found
    return Row(what, bare * slower, "ms", "without", bare, SLOWER_BUDGET, note=note)
