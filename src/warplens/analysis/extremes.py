"""The least or greatest value of many stretches of one array, each in a few steps however long it is."""

from __future__ import annotations

import numpy as np

from warplens.arrays import Int64Array

_BLOCK = 32


class Extremes:
    """Finds extremes of stretches of `values`: maxima if `greatest`, else minima.

    Blocks of 32 values keep the memory at about three times that of the values: stretches within a block are gone through, for
    others there are the extremes from each value to the edges of its block, and of 1, 2, 4, … whole blocks.
    """

    def __init__(
        self,
        values: Int64Array,
        better: np.ufunc,
        before: Int64Array,
        behind: Int64Array,
        levels: list[Int64Array],
    ) -> None:
        """`before`, `behind`: extremes from the begin of the block up to each value, and from it to the end of the block."""
        self._values, self._better = values, better
        self._before, self._behind, self._levels = before, behind, levels

    @classmethod
    def among(cls, values: Int64Array, *, greatest: bool) -> Extremes:
        """Return the extremes of an array."""
        better = np.maximum if greatest else np.minimum
        blocks = max(-(-len(values) // _BLOCK), 1)
        filled = np.full(blocks * _BLOCK, np.iinfo(np.int64).min if greatest else np.iinfo(np.int64).max)
        filled[: len(values)] = values
        grid = filled.reshape(blocks, _BLOCK)
        before = better.accumulate(grid, axis=1).ravel()
        behind = better.accumulate(grid[:, ::-1], axis=1)[:, ::-1].ravel()
        levels = [behind[::_BLOCK].copy()]
        # Level k has the extreme of 2^k blocks from each block on; two overlapping runs of a level cover any number of blocks between.
        while 2 << (len(levels) - 1) <= blocks:
            last, half = levels[-1], 1 << (len(levels) - 1)
            levels.append(better(last[:-half], last[half:]))
        return cls(values, better, before, behind=behind, levels=levels)

    def of(self, first: Int64Array, last: Int64Array) -> Int64Array:
        """Return the extreme of values[first:last] of each pair.

        Stretches must not be empty, nor reach over the ends.
        """
        result = self._values[first]
        low, high = first // _BLOCK, (last - 1) // _BLOCK
        inside = np.flatnonzero(low == high)
        for step in range(1, _BLOCK):
            inside = inside[first[inside] + step < last[inside]]
            if not len(inside):
                break
            result[inside] = self._better(result[inside], self._values[first[inside] + step])
        across = np.flatnonzero(low < high)
        result[across] = self._better(self._behind[first[across]], self._before[last[across] - 1])
        between = high - low - 1  # whole blocks
        for level, extremes in enumerate(self._levels):
            some = across[(between[across] >= 1 << level) & (between[across] < 2 << level)]
            edges = self._better(extremes[low[some] + 1], extremes[high[some] - (1 << level)])
            result[some] = self._better(result[some], edges)
        return result
