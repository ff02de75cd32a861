"""The frame of a page: style for light and dark, headings, tables."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from warplens.flows.html.plots import COLORS
from warplens.flows.html.words import cell, safe, scale_of

_LONG = 40  # characters: such a cell may break anywhere
_LIGHT = (
    "#2f6fde",
    "#d9822b",
    "#2e9e5b",
    "#b0439c",
    "#8b6b3d",
    "#5b6b7b",
    "#c23b3b",
    "#0f9aa8",
    "#7a5bd0",
    "#9a9a2e",
)
_DARK = (
    "#6ea0ff",
    "#f0a860",
    "#5cc98a",
    "#dd7fcb",
    "#c2a06f",
    "#9fb0c0",
    "#f07f7f",
    "#4fd0dd",
    "#ac93f5",
    "#d0d060",
)
_STYLE = """
:root{color-scheme:light dark;--bg:#fff;--fg:#1c2330;--dim:#667085;--line:#d9dee6;--card:#f6f8fb;--bar:#2f6fde22;%s}
@media(prefers-color-scheme:dark){:root{--bg:#12161d;--fg:#e3e8ef;--dim:#98a3b3;--line:#2b3340;--card:#1a202a;--bar:#6ea0ff33;%s}}
*{box-sizing:border-box}body{margin:0 auto;max-width:1080px;padding:24px;background:var(--bg);color:var(--fg);
font:14px/1.5 system-ui,sans-serif}h1{font-size:22px;margin:0 0 4px}h2{font-size:17px;margin:32px 0 8px;padding-bottom:4px;
border-bottom:1px solid var(--line)}h3{font-size:14px;margin:18px 0 6px}p{margin:4px 0 8px}.dim{color:var(--dim)}
code{font:12px ui-monospace,monospace;overflow-wrap:anywhere}.scroll{overflow-x:auto}
table{border-collapse:collapse;font-size:12.5px;font-variant-numeric:tabular-nums}th,td{padding:3px 9px;text-align:left;
border-bottom:1px solid var(--line);vertical-align:top;max-width:560px}
td.w{min-width:320px;overflow-wrap:anywhere}th{color:var(--dim);font-weight:600;
white-space:nowrap;text-align:left}td.n,th.n{text-align:right;white-space:nowrap}
.tiles{display:flex;flex-wrap:wrap;gap:10px;margin:14px 0}.tile{background:var(--card);border:1px solid var(--line);border-radius:8px;
padding:8px 14px;min-width:110px}.tile b{display:block;font-size:19px}.tile span{color:var(--dim);font-size:12px}
.finding{background:var(--card);border:1px solid var(--line);border-left:5px solid var(--dim);border-radius:6px;padding:8px 14px;
margin:10px 0}
.high{border-left-color:#c23b3b}.medium{border-left-color:#d9822b}.low{border-left-color:#2f6fde}.finding h3{margin:2px 0}
summary{cursor:pointer;color:var(--dim)}svg{max-width:100%%;height:auto;display:block;margin:6px 0;overflow:visible}
svg text{font-size:11.5px;fill:var(--fg)}svg .l{text-anchor:end;fill:var(--dim)}svg .m{text-anchor:middle;fill:var(--dim)}
svg .g{stroke:var(--line)}.legend span{margin-right:14px;font-size:12px}.legend i{display:inline-block;width:10px;height:10px;
border-radius:2px;margin-right:5px}%s
"""


def page(title: str, *sections: str, style: str = "") -> str:
    """Return a whole page.

    It may load nothing and run nothing, whatever is in it. `style`: more of it.
    """
    light, dark = (
        ";".join(f"--c{index}:{color}" for index, color in enumerate(colors)) for colors in (_LIGHT, _DARK)
    )
    kinds = "".join(
        f".c{n}{{fill:var(--c{n})}}.b{n}{{background:var(--c{n})}}.a{n}{{fill:var(--c{n});fill-opacity:.55}}"
        f".s{n}{{fill:none;stroke:var(--c{n});stroke-width:1.5}}"
        for n in range(COLORS)
    )
    style = _STYLE % (light, dark, kinds) + style
    policy = "default-src 'none'; style-src 'unsafe-inline'"
    head = (
        f'<meta charset="utf-8"><meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width,initial-scale=1"><meta name="referrer" content="no-referrer">'
        f"<title>{safe(title)}</title><style>{style.strip()}</style>"
    )
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head>{head}</head>\n<body>\n'
        + "\n".join(filter(None, sections))
        + "\n</body></html>\n"
    )


def heading(text: str, about: str = "") -> str:
    """Return a heading, with a line about it."""
    return f"<h2>{safe(text)}</h2>" + (f'<p class="dim">{safe(about)}</p>' if about else "")


def tiles(facts: Sequence[tuple[str, str]]) -> str:
    """Return a row of numbers with what they are."""
    return (
        '<div class="tiles">'
        + "".join(
            f'<div class="tile"><b>{safe(value)}</b><span>{safe(name)}</span></div>' for name, value in facts
        )
        + "</div>"
    )


def table(rows: pa.Table, *, most: int = 0, more: str = "") -> str:
    """Return a table: columns of times are in a unit that suits them, shares have a bar behind.

    `most`: rows, 0: all; `more`: where to find the rest.
    """
    shown = rows.slice(0, most) if most else rows
    heads, columns, kinds = [], [], []
    for name, column in zip(shown.column_names, shown.columns, strict=True):
        number = (
            pa.types.is_integer(column.type)
            or pa.types.is_floating(column.type)
            or pa.types.is_decimal(column.type)
        )
        head, cells = _column(name, column, number)
        heads.append(f'<th class="n">{head}</th>' if number else f"<th>{head}</th>")
        columns.append(cells)
        kinds.append(number)
    body = ["<tr>" + "".join(row) + "</tr>" for row in zip(*columns, strict=True)]
    left = rows.num_rows - shown.num_rows
    rest = f'<p class="dim">… and {left:,} more{f": {safe(more)}" if more else ""}</p>' if left > 0 else ""
    return f'<div class="scroll"><table><thead><tr>{"".join(heads)}</tr></thead><tbody>{"".join(body)}</tbody></table></div>{rest}'


def _column(name: str, column: pa.ChunkedArray, number: bool) -> tuple[str, list[str]]:
    if not number:
        return safe(name), [_text(value) for value in column.to_pylist()]
    if name.endswith("(ns)"):
        scale, unit = scale_of(abs(float(pc.max(pc.abs(column.cast(pa.float64(), safe=False))).as_py() or 0)))
        places = 0 if unit == "ns" else 3
        values = [None if value is None else float(value) / scale for value in column.to_pylist()]
        return safe(name.replace("(ns)", f"({unit})")), [
            f'<td class="n">{cell(value, places)}</td>' for value in values
        ]
    if name.endswith("(%)"):
        return safe(name), [_share(None if value is None else float(value)) for value in column.to_pylist()]
    return safe(name), [f'<td class="n">{cell(value)}</td>' for value in column.to_pylist()]


def _text(value: object) -> str:
    shown = cell(value)
    return f'<td class="w">{shown}</td>' if len(shown) > _LONG else f"<td>{shown}</td>"


def _share(value: float | None) -> str:
    if value is None:
        return '<td class="n"></td>'
    width = min(max(value, 0), 100)
    return f'<td class="n" style="background:linear-gradient(to left,var(--bar) {width:.1f}%,transparent 0)">{value:,.1f}</td>'
