"""The sign test: how likely chance alone explains that one side is ahead so often."""

from __future__ import annotations

import math


def at_least(successes: int, tries: int) -> float:
    """Return the chance of this many heads or more in `tries` throws of a coin."""
    if not tries:
        return 1.0
    logs = [
        math.lgamma(tries + 1) - math.lgamma(k + 1) - math.lgamma(tries - k + 1)
        for k in range(successes, tries + 1)
    ]
    return min(sum(math.exp(log - tries * math.log(2)) for log in logs), 1.0)
