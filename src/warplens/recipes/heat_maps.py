"""Heat maps of an answer, as a table and as lines for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from warplens.arrays import Float64Array, Int64Array
from warplens.model.words import counted
from warplens.recipes.base import HeatMap
from warplens.viewer.answers.plain import cut

_SHADES = " ░▒▓█"
_MOST = 32  # rows that are drawn
_LONGEST = 24  # characters of a row's name


def as_table(heat_map: HeatMap) -> pa.Table:
    """Return one row for each value."""
    rows, columns = len(heat_map.rows), len(heat_map.columns)
    return pa.table(
        {
            heat_map.down: pa.array([name for name in heat_map.rows for _ in range(columns)], pa.string()),
            heat_map.across: pa.array(np.tile(np.asarray(heat_map.columns, np.int64), rows)),
            heat_map.value: heat_map.values.ravel(),
        }
    )


def drawn(heat_map: HeatMap) -> Iterator[str]:
    """Yield a line for each row: its name, a shade for each value, and the text behind it."""
    shown = [cut(name, _LONGEST) for name in heat_map.rows[:_MOST]]
    width = max(map(len, shown), default=0)
    ends = heat_map.ends or [""] * len(heat_map.rows)
    for name, shades, end in zip(shown, steps(heat_map, len(_SHADES)), ends, strict=False):
        picture = "".join(_SHADES[step] for step in shades.tolist())
        yield f"{name:>{width}} │{picture}│ {end:>5}".rstrip()
    if len(heat_map.rows) > _MOST:
        yield f"… and {counted(len(heat_map.rows) - _MOST, 'more row')}; -f html -o NAME draws all."


def steps(heat_map: HeatMap, count: int) -> Int64Array:
    """Return the shade of each value, from 0 to `count` - 1. Only the lightest value has shade 0."""
    low, high = heat_map.scale
    share: Float64Array = (np.nan_to_num(heat_map.values, nan=low) - low) / ((high - low) or 1.0)
    shade: Int64Array = np.clip(np.ceil(share * (count - 1) - 1e-9), 0, count - 1).astype(np.int64)
    return shade
