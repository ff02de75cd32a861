"""A cache without a limit: memory grows by 1 MiB with each request; `--fix` keeps the last eight."""

import sys
import time
from collections import OrderedDict

cache: "OrderedDict[int, bytes]" = OrderedDict()


def request(number: int) -> int:
    """Answer, and keep the answer."""
    cache[number] = bytes([number % 251 + 1]) * (1 << 20)
    if "--fix" in sys.argv and len(cache) > 8:
        cache.popitem(last=False)
    return len(cache)


for number in range(250):
    request(number)
    time.sleep(0.01)
