"""pandas applies a function of Python to each group; `--fix` asks pandas for the spread itself."""

import sys

import numpy as np
import pandas as pd


def spread(group: "pd.Series[float]") -> float:
    """Return the distance of the extremes."""
    return float(group.max() - group.min())


def main() -> None:
    """Sum up the groups of a table."""
    random = np.random.default_rng(1)
    frame = pd.DataFrame({"key": random.integers(0, 15_000, 300_000), "value": random.random(300_000)})
    groups = frame.groupby("key")["value"]
    result = groups.max() - groups.min() if "--fix" in sys.argv else groups.apply(spread)
    print(result.sum())


main()
