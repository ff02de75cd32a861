"""A service of asyncio that computes in its event loop while others wait; `--fix` hands the work to a process."""

import asyncio
import sys
from concurrent.futures import ProcessPoolExecutor


def compress(rounds: int) -> int:
    """Compute for a while."""
    value = 1
    for number in range(rounds):
        value = (value * 31 + number) % 1_000_003
    return value


async def answer(pool: ProcessPoolExecutor) -> int:
    """Answer a question."""
    if "--fix" in sys.argv:
        return await asyncio.get_running_loop().run_in_executor(pool, compress, 3_000_000)
    return compress(3_000_000)


async def beat(times: list[float]) -> None:
    """Note the time, ten times a second."""
    while True:
        times.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0.1)


async def main() -> None:
    """Answer eight questions."""
    times: list[float] = []
    beating = asyncio.create_task(beat(times))
    with ProcessPoolExecutor(1) as pool:
        for _ in range(8):
            await answer(pool)
            await asyncio.sleep(0.05)
    beating.cancel()
    print(len(times))


if __name__ == "__main__":
    asyncio.run(main())
