"""Names the rank that comes last to collectives, what that costs, and why."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from warplens.model.words import counted, duration
from warplens.recipes.base import Answer
from warplens.recipes.collectives import reading, waits
from warplens.recipes.collectives.waits import RankWaits

_WORTH = 0.05  # share of the time in collectives: less waiting than this is not worth a word
_STANDS_OUT = 2.0  # times its equal share of the waiting
# What more of a cause means for the rank that came last.
_MEANING = {
    reading.WORK: "its kernels worked longer",
    reading.HOST: "it came later from its own work; no GPU work was recorded that would say why",
    "host-bound": "its GPU waited for its host, which made no CUDA call then",
    "launch-bound": "its GPU waited for launches",
    "sync-bound": "its host waited for the GPU and launched late",
    "copy-bound": "its GPU waited for copies",
    "dependency": "its streams waited for one another",
}


def answer(collectives: pa.Table) -> Answer:
    """Say who came last to the collectives, with a row for each rank."""
    result = waits.waits(collectives)
    reasons = [_reason(result, rank) for rank in range(len(result.names))]
    table = pa.table(
        {
            "Rank": list(result.names),
            "Last": pa.array(result.last, pa.int64()),
            "Others waited (ns)": result.cost.astype(np.int64),
            "Late (ns)": result.late.astype(np.int64),
            "Waited (ns)": result.waited.astype(np.int64),
            "In collectives (ns)": result.inside.astype(np.int64),
            "Clock (ns)": pa.array(np.nan_to_num(result.clocks.residual).astype(np.int64)),
            "Before them": [text for text, _ in reasons],
        }
    ).sort_by([("Others waited (ns)", "descending")])
    slow = _slowest(result)
    facts = {
        "straggler": None if slow is None else result.names[slow],
        "reason": None if slow is None else reasons[slow][0] or None,
        "collectives": result.collectives,
        "inconclusive": result.inconclusive,
        "matched_by": result.matched.how,
        "unmatched_rows": result.matched.unmatched,
        "waited_ns": int(result.waited.sum()),
        "in_collectives_ns": int(result.inside.sum()),
        "clock_residual_ns": {
            name: None if np.isnan(left) else int(left)
            for name, left in zip(result.names, result.clocks.residual.tolist(), strict=True)
        },
    }
    return Answer(list(_lines(result, slow, reasons)), tables={"by_rank": table}, facts=facts)


def _slowest(result: RankWaits) -> int | None:
    """Return the rank that made the others wait, where one stands out."""
    total = float(result.cost.sum())
    if not total or float(result.waited.sum()) < _WORTH * float(result.inside.sum()):
        return None
    slow = int(np.argmax(result.cost))
    return (
        slow if result.cost[slow] * len(result.names) > _STANDS_OUT * total or len(result.names) < 3 else None
    )


def _reason(result: RankWaits, rank: int) -> tuple[str, float]:
    """Return on what a rank spent most beyond the others before it came last, and how many ns."""
    if not result.last[rank] or not result.excess:
        return "", 0.0
    cause = max(result.excess, key=lambda name: result.excess[name][rank])
    more = float(result.excess[cause][rank])
    return (_MEANING.get(cause, f"its GPU was idle ({cause})"), more) if more > 0 else ("", 0.0)


def _lines(result: RankWaits, slow: int | None, reasons: list[tuple[str, float]]) -> Iterator[str]:
    waited, inside = float(result.waited.sum()), float(result.inside.sum())
    share = 100 * waited / inside if inside else 0.0
    yield (
        f"{counted(result.collectives, 'collective')} of {counted(len(result.names), 'rank')}: "
        f"{duration(waited)} of the "
        f"{duration(inside)} in them was waiting for other ranks ({share:.0f} %)."
    )
    if slow is None:
        yield "No single rank delays the others."
    else:
        yield (
            f"{result.names[slow][:1].upper()}{result.names[slow][1:]} came last to "
            f"{result.last[slow]:,} of them; the others waited "
            f"{duration(float(result.cost[slow]))} for it."
        )
        text, more = reasons[slow]
        if text:
            yield f"Before these, {text}: {duration(more)} more than on the other ranks."
    ways = ", ".join(f"{way} ({count:,})" for way, count in result.matched.how.items())
    known = result.clocks.uncertainty
    clock = (
        "nothing shows how well the clocks agree" if known is None else f"ends agree within {duration(known)}"
    )
    yield f"Matched by {ways or 'nothing'}; {clock}."
    if result.inconclusive:
        yield f"In {result.inconclusive:,} of them the ranks began too close together to identify the last one."
    if result.matched.unmatched:
        yield f"Without a counterpart on another rank: {counted(result.matched.unmatched, 'call')}."
