"""Objects that stay are added all the time, so that each full collection takes longer; `--fix` collects less often."""

import gc
import sys


def parse(number: int) -> dict[str, list[int]]:
    """Return a record of several small objects."""
    return {"values": [number, number + 1], "more": [number]}


def main() -> None:
    """Keep 600,000 records."""
    if "--fix" in sys.argv:
        gc.freeze()
        gc.disable()
    kept = []
    for number in range(600_000):
        kept.append(parse(number))  # noqa: PERF401
    print(len(kept))


main()
