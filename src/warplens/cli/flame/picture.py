"""Draws a tree of samples.

As a flame graph that hangs from its roots, or as an indented tree, with the hottest functions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from rich.cells import cell_len

from warplens.analysis.cpu.stacks import flat
from warplens.arrays import Int64Array
from warplens.cli.flame.difference import Changed
from warplens.cli.flame.load import Flame
from warplens.cli.flame.words import called, where
from warplens.cli.printing.tables import printable
from warplens.cli.timeline.axis import length
from warplens.cli.timeline.model import Bar
from warplens.cli.timeline.palette import color_of
from warplens.cli.timeline.render import Style, cut, lane, paint

_NARROW = 3  # columns: deeper levels without a wider bar say nothing
_SAME = 0.005  # of all samples: a smaller change is no change
_LARGE = 0.1  # has the strongest colour
_UNCHANGED, _GREW, _SHRANK = 0xC8C8C8, (0xF2C4C4, 0xDC5050), (0xC4D2F2, 0x5078DC)
_BOLD, _DIM = "\x1b[1m", "\x1b[2m"


def graph(flame: Flame, by: str, style: Style, depth: int) -> Iterator[str]:
    """Yield the lines of the flame graph: each level a line, each bar as wide as its share.

    `depth` levels.
    """
    tree = flame.tree
    left, right = _edges(flame, style.width)
    shown = right > left
    if flame.groups:
        ends = _group_edges(flame, style.width)
        yield lane(
            [
                _group(flame, number, ends, width=style.width)
                for number in range(len(flame.groups))
                if ends[number + 1] > ends[number]
            ],
            style,
        )
    levels = int(tree.level.max()) + 1 if len(tree) else 0
    for level in range(min(levels, depth)):
        nodes = np.flatnonzero((tree.level == level) & shown)
        if not len(nodes) or (level and int((right - left)[nodes].max()) < _NARROW):
            shown &= tree.level < level
            levels = level
            break
        nodes = nodes[np.argsort(left[nodes], kind="stable")]
        bars = [
            _bar(flame, by, int(node), first=int(left[node]), behind=int(right[node]))
            for node in nodes.tolist()
        ]
        yield lane(bars, style)
    notes = [f"{length(flame.weight)} in all, {length(flame.weight / style.width)} per column"]
    small = int((~shown & (tree.level < depth)).sum())
    if small:
        notes.append(f"{small:,} too small to be drawn")
    if levels > depth:
        notes.append(f"{levels - depth} deeper levels: --depth N")
    yield paint(cut((" · " if not style.ascii else "; ").join(notes), style.width, style.glyphs), _DIM, style)


def indented(flame: Flame, by: str, style: Style, depth: int, least: float) -> Iterator[str]:
    """Yield the lines of the tree: total share, own share, name and place of each node.

    Only nodes with at least a share `least`.
    """
    tree = flame.tree
    yield paint("  Total    Self" + ("  Change" if flame.change is not None else ""), _DIM, style)
    group = -1
    for node in tree.order(depth=depth, least=max(least * flame.weight, 1)).tolist():
        if flame.groups and tree.group[node] != group:
            group = int(tree.group[node])
            yield paint(cut(printable(flame.groups[group]), style.width, style.glyphs), _BOLD, style)
        frame = flame.frames.frame(int(tree.example[node]))
        change = "" if flame.change is None else f" {_signed(flame.change[node])}"
        shares = f"{_percent(tree.total[node] / flame.weight)} {_percent(tree.own[node] / flame.weight)}"
        head = f"{shares}{change}  {'  ' * int(tree.level[node])}"
        yield _placed(
            head,
            printable(called(frame, by)),
            printable(where(frame, by)) if by != "line" else "",
            style=style,
        )
    hidden = len(tree) - len(tree.order(depth=depth, least=max(least * flame.weight, 1)))
    if hidden:
        yield paint(f"{hidden:,} of {len(tree):,} not shown: --min PERCENT, --depth N", _DIM, style)


def hottest(flame: Flame, by: str, style: Style, number: int) -> Iterator[str]:
    """Yield the `number` nodes in which most samples ended."""
    found = flat(flame.tree)
    order = np.argsort(-found.own, kind="stable")[:number]
    yield paint("   Self   Total", _DIM, style)
    for node in [node for node in order.tolist() if found.own[node] > 0]:
        frame = flame.frames.frame(int(found.example[node]))
        head = f"{_percent(found.own[node] / flame.weight)} {_percent(found.total[node] / flame.weight)}  "
        yield _placed(
            head,
            printable(called(frame, by)),
            printable(where(frame, by)) if by != "line" else "",
            style=style,
        )


def changed(rows: Sequence[Changed], style: Style, number: int) -> Iterator[str]:
    """Yield the `number` functions whose own share changed most."""
    yield paint(" Change    Self  Before", _DIM, style)
    for row in [row for row in rows[:number] if abs(row.change) >= _SAME]:
        head = f"{_signed(row.change)} {_percent(row.own)} {_percent(row.before)}  "
        yield _placed(head, printable(row.name), printable(row.place), style=style)


def _placed(head: str, name: str, place: str, style: Style) -> str:
    """Put a name and where it is behind the head, the place dim and only where it has room."""
    name = cut(name, max(style.width - len(head), 1), style.glyphs)
    room = style.width - len(head) - cell_len(name) - 2
    return head + name + ("  " + paint(place, _DIM, style) if place and cell_len(place) <= room else "")


def _edges(flame: Flame, width: int) -> tuple[Int64Array, Int64Array]:
    """Return the first column of each node and the one behind its last.

    Children are side by side below their parent, the greatest first.
    """
    tree = flame.tree
    begin = np.zeros(len(tree), np.int64)  # ns from the left
    starts = _group_starts(flame)
    used = starts.copy()
    within = np.zeros(len(tree), np.int64)
    for node in tree.order().tolist():
        parent = int(tree.parent[node])
        if parent < 0:
            group = int(tree.group[node])
            begin[node], used[group] = used[group], used[group] + tree.total[node]
        else:
            begin[node], within[parent] = begin[parent] + within[parent], within[parent] + tree.total[node]
    scale = width / max(flame.weight, 1)
    return np.rint(begin * scale).astype(np.int64), np.rint((begin + tree.total) * scale).astype(np.int64)


def _group_starts(flame: Flame) -> Int64Array:
    # The group's number plus 1 as index leaves a 0 in front: group totals [5, 3] give [0, 5, 8],
    # where each group begins and the end.
    roots = flame.tree.parent < 0
    sums = np.zeros(max(len(flame.groups), 1) + 1, np.int64)
    np.add.at(sums, flame.tree.group[roots] + 1, flame.tree.total[roots])
    return np.asarray(np.cumsum(sums), np.int64)


def _group_edges(flame: Flame, width: int) -> Int64Array:
    return np.asarray(np.rint(_group_starts(flame) * (width / max(flame.weight, 1))), np.int64)


def _group(flame: Flame, number: int, ends: Int64Array, width: int) -> Bar:
    first, last = int(ends[number]), int(ends[number + 1]) - 1
    return Bar(
        first,
        last,
        flame.groups[number],
        domain="thread",
        color=0xC0C0C0,
        many=False,
        number=1,
        busy=(1.0,) * (last - first + 1),
    )


def _bar(flame: Flame, by: str, node: int, first: int, behind: int) -> Bar:
    frame = flame.frames.frame(int(flame.tree.example[node]))
    name, share = called(frame, by), f" {flame.tree.total[node] / flame.weight:.0%}"
    change = None if flame.change is None else float(flame.change[node])
    if change is not None and abs(change) >= _SAME:
        share += f" ({change * 100:+.1f})"
    if cell_len(printable(name)) + len(share) <= behind - first - 2:
        name += share
    module = frame.module or frame.file or frame.kind
    color = _color(frame.kind, module) if change is None else _color_of_change(change)
    return Bar(
        first,
        behind - 1,
        name,
        domain=module,
        color=color,
        many=False,
        number=1,
        busy=(1.0,) * (behind - first),
    )


def _color(kind: str, module: str) -> int:
    """One colour per file or library; the kernel is red."""
    return 0xE38686 if kind == "kernel" else color_of("", module, None)


def _color_of_change(change: float) -> int:
    """Red where the share grew, blue where it shrank, the stronger the more."""
    if abs(change) < _SAME:
        return _UNCHANGED
    weak, strong = _GREW if change > 0 else _SHRANK
    part = min(abs(change) / _LARGE, 1.0)
    mixed = 0
    for shift in (16, 8, 0):
        begin, end = weak >> shift & 0xFF, strong >> shift & 0xFF
        mixed |= round(begin + (end - begin) * part) << shift
    return mixed


def _signed(share: float) -> str:
    return f"{share * 100:+5.1f} %"


def _percent(share: float) -> str:
    return f"{share * 100:5.1f} %"
