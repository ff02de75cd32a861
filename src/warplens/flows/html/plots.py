"""Plots as inline SVG: bars, stacked bars, and areas and lines over time.

Colours are classes, so that they follow light and dark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from warplens.flows.html.words import amount, duration, safe
from warplens.viewer.answers.plain import cut

COLORS = 10
_WIDTH, _LEFT, _RIGHT = 960, 220, 90
_BAR, _STEP = 16, 22
_AXIS = 20
_LABEL = 34


@dataclass(frozen=True)
class Series:
    """Values over time; NaN where there is none."""

    name: str
    values: npt.NDArray[np.float64]


def bars(rows: Sequence[tuple[str, float]], unit: str) -> str:
    """Draw one bar for each row, its value beside it."""
    largest = max((value for _, value in rows), default=0) or 1
    room = _WIDTH - _LEFT - _RIGHT
    parts = []
    for index, (name, value) in enumerate(rows):
        top = index * _STEP
        width = max(value, 0) / largest * room
        parts.append(
            f'<text class="l" x="{_LEFT - 8}" y="{top + 13}">{safe(cut(name, _LABEL))}<title>{safe(name)}</title></text>'
            f'<rect class="c0" x="{_LEFT}" y="{top}" width="{width:.1f}" height="{_BAR}"><title>{safe(name)}: {safe(amount(value, unit))}'
            f'</title></rect><text x="{_LEFT + width + 6:.1f}" y="{top + 13}">{safe(amount(value, unit))}</text>'
        )
    return _svg(len(rows) * _STEP, "".join(parts))


def stacked(rows: Sequence[tuple[str, Mapping[str, float]]], unit: str) -> str:
    """Draw one bar for each row, cut into named parts of the whole."""
    names = list(dict.fromkeys(name for _, parts in rows for name in parts))
    room = _WIDTH - _LEFT - _RIGHT
    out = []
    for index, (label, parts) in enumerate(rows):
        top, left, whole = index * _STEP, float(_LEFT), sum(parts.values()) or 1
        out.append(
            f'<text class="l" x="{_LEFT - 8}" y="{top + 13}">{safe(cut(label, _LABEL))}<title>{safe(label)}</title></text>'
        )
        for name, value in parts.items():
            width = value / whole * room
            told = f"{name}: {amount(value, unit)} ({100 * value / whole:.1f} %)"
            color = names.index(name) % COLORS
            out.append(
                f'<rect class="c{color}" x="{left:.1f}" y="{top}" width="{width:.1f}" height="{_BAR}"><title>{safe(told)}</title></rect>'
            )
            left += width
        out.append(f'<text x="{_WIDTH - _RIGHT + 6}" y="{top + 13}">{safe(amount(whole, unit))}</text>')
    return _svg(len(rows) * _STEP, "".join(out)) + legend(names)


def over_time(
    series: Sequence[Series],
    span: int,
    unit: str,
    *,
    most: float | None = None,
    filled: bool = False,
    height: int = 120,
) -> str:
    """Draw values over a time of `span` ns that begins at 0: one line each, or (`filled`) an area.

    `most`: top of the scale.
    """
    if not series:
        return ""
    highest = (
        most
        if most is not None
        else max((float(np.nanmax(one.values, initial=0.0)) for one in series), default=0.0)
    )
    highest = highest or 1.0
    left, right = 70, 20
    room = _WIDTH - left - right
    parts = []
    for share in (0, 0.5, 1):
        y = 6 + height * (1 - share)
        parts.append(f'<line class="g" x1="{left}" x2="{_WIDTH - right}" y1="{y:.0f}" y2="{y:.0f}"/>')
        parts.append(
            f'<text class="l" x="{left - 6}" y="{y + 4:.0f}">{safe(amount(highest * share, unit))}</text>'
        )
    for tick in range(6):
        x = left + room * tick / 5
        parts.append(
            f'<text class="m" x="{x:.0f}" y="{height + 22}">{safe(duration(span * tick / 5))}</text>'
        )
    for index, one in enumerate(series):
        parts.append(_line(one, index, highest, left=left, room=room, height=height, filled=filled))
    return _svg(height + _AXIS + 8, "".join(parts)) + (
        legend([one.name for one in series]) if len(series) > 1 else ""
    )


def legend(names: Sequence[str]) -> str:
    """Name the colours."""
    items = "".join(
        f'<span><i class="b{index % COLORS}"></i>{safe(name)}</span>' for index, name in enumerate(names)
    )
    return f'<p class="legend">{items}</p>'


def _line(one: Series, index: int, highest: float, left: int, room: int, height: int, filled: bool) -> str:
    count = len(one.values)
    edges = left + room * np.arange(count + 1) / max(count, 1)
    tops = 6 + height * (1 - np.clip(one.values / highest, 0, 1))
    path: list[str] = []
    drawing = False
    for place in range(count):
        if np.isnan(tops[place]):
            if drawing and filled:
                path.append(f"V{6 + height}Z")
            drawing = False
            continue
        if not drawing:
            path.append(f"M{edges[place]:.1f} {6 + height if filled else tops[place]:.1f}")
        path.append(f"V{tops[place]:.1f}H{edges[place + 1]:.1f}")
        drawing = True
    if drawing and filled:
        path.append(f"V{6 + height}Z")
    kind = "a" if filled else "s"
    return f'<path class="{kind}{index % COLORS}" d="{"".join(path)}"><title>{safe(one.name)}</title></path>'


def _svg(height: int, inner: str) -> str:
    return f'<svg viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" role="img">{inner}</svg>'
