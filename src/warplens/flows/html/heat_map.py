"""A heat map as inline SVG: a rectangle for each run of equal shades, links from rows to places of the page."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from warplens.flows.html.words import safe
from warplens.viewer.answers.plain import cut

SHADES = 12
STYLE = "".join(f".h{n}{{fill:var(--c0);fill-opacity:{n / (SHADES - 1):.2f}}}" for n in range(SHADES)) + (
    "svg a rect.f{fill:transparent}svg a:hover rect.f{fill:var(--bar)}"
)
_WIDTH, _LEFT, _RIGHT = 960, 150, 70
_TALL, _FLAT = 15, 4  # pixels of a row
_NAMED = 128  # rows: more are flat, and have their names as a title only
_LABEL = 24


def heat_map(
    rows: Sequence[str],
    shades: Sequence[Sequence[int]],
    texts: Sequence[Sequence[str]],
    *,
    columns: Sequence[str],
    ends: Sequence[str],
    links: Sequence[str],
) -> str:
    """Draw one line of shades (0 to SHADES - 1) for each row.

    `texts`: value of each cell. `columns`: begin of each. `ends`: what stands behind each row.
    `links`: where a row leads, `#…`, empty for nowhere.
    """
    tall = _TALL if len(rows) <= _NAMED else _FLAT
    room = _WIDTH - _LEFT - _RIGHT
    width = room / max(len(columns), 1)
    parts = []
    for place, (name, own) in enumerate(zip(rows, shades, strict=True)):
        top, cells = place * tall, []
        if tall == _TALL:
            cells.append(f'<text class="l" x="{_LEFT - 8}" y="{top + 11}">{safe(cut(name, _LABEL))}</text>')
            cells.append(f'<text x="{_WIDTH - _RIGHT + 6}" y="{top + 11}">{safe(ends[place])}</text>')
        for shade, run in groupby(enumerate(own), key=lambda cell: cell[1]):
            first, *others = [column for column, _ in run]
            last = others[-1] if others else first
            if not shade:
                continue
            title = f"{name}, from {columns[first]}: {texts[place][first]}" + (
                f" … {texts[place][last]}" if others else ""
            )
            cells.append(
                f'<rect class="h{shade}" x="{_LEFT + first * width:.1f}" y="{top}" width="{(last + 1 - first) * width:.1f}" '
                f'height="{tall - 1}"><title>{safe(title)}</title></rect>'
            )
        link = links[place]
        if link:
            cells.insert(
                0,
                f'<rect class="f" x="0" y="{top}" width="{_WIDTH}" height="{tall}"><title>{safe(name)}</title></rect>',
            )
        parts.append(f'<a href="{safe(link)}">{"".join(cells)}</a>' if link else f"<g>{''.join(cells)}</g>")
    height = len(rows) * tall
    parts += [
        f'<text class="m" x="{_LEFT + column * width:.0f}" y="{height + 16}">{safe(columns[column])}</text>'
        for column in range(0, len(columns), max(len(columns) // 6, 1))
    ]
    return f'<svg viewBox="0 0 {_WIDTH} {height + 24}" width="{_WIDTH}" height="{height + 24}" role="img">{"".join(parts)}</svg>'
