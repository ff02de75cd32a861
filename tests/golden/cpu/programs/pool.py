"""A coordinator that waits for two workers, which compute: its wait is no loss."""

import multiprocessing


def work(number: int) -> int:
    """Compute for a while."""
    value = number
    for step in range(400_000):
        value = (value * 31 + step) % 1_000_003
    return value


if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(sum(pool.map(work, range(12))))
