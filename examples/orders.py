"""Answers orders one after the other, each after it asked for its stock and its price, while a task writes down what was sold.

warplens profile -f --python-sampling=true -o orders python orders.py, then warplens flame --kind tasks --wall orders
"""

from __future__ import annotations

import asyncio

ORDERS = 3


async def ask(seconds: float) -> float:
    """Wait for a service."""
    await asyncio.sleep(seconds)
    return seconds


async def order(sold: asyncio.Queue[int]) -> None:
    """Ask two services at once, then work out the bill."""
    async with asyncio.TaskGroup() as group:
        group.create_task(ask(0.3), name="stock")
        group.create_task(ask(0.2), name="price")
    await sold.put(sum(n * n for n in range(3_000_000)))


async def write(sold: asyncio.Queue[int]) -> None:
    """Write down what was sold."""
    while True:
        bill = await sold.get()
        sum(n % 7 for n in range(bill % 300_000))


async def main() -> None:
    """Take the orders."""
    sold: asyncio.Queue[int] = asyncio.Queue()
    writer = asyncio.create_task(write(sold), name="writer")
    for _ in range(ORDERS):
        await asyncio.create_task(order(sold), name="order")
    writer.cancel()


if __name__ == "__main__":
    asyncio.run(main())
