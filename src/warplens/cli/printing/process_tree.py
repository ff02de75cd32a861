"""The tree of processes as text: who started whom, how each ended, and why some were not recorded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple

import click

from warplens.cli.printing.tables import printable, shorten
from warplens.cli.printing.words import counted, duration, signal_name

MOST_LINES = 60
_ALIKE = 3  # number of similar processes that are listed in full
_DEEPEST = 12
_WIDTH = 100
_GAP = "  "

Row = Mapping[str, Any]


class _More(NamedTuple):
    """A line's processes: how many are alike, how many with all below them, and their durations. ns, in order."""

    alike: int
    below: int
    lengths: Sequence[int]


_Line = tuple[Row, int, _More | None]


def heading(rows: Sequence[Row]) -> str:
    """Return e.g. `Processes: 1,204, of which 3 recorded`."""
    recorded = sum(is_recorded(row) for row in rows)
    return (
        "Processes" if recorded == len(rows) else f"Processes: {len(rows):,}, of which {recorded:,} recorded"
    )


def is_recorded(row: Row) -> bool:
    """Say whether a process recorded something; in reports that do not tell, all did."""
    return row["recorded"] is not False


def lines(rows: Sequence[Row], width: int = 0) -> Iterator[str]:
    """Yield a line for each process of the table `processes`, those that are alike folded.

    At most `width` columns wide (0: 100).
    """
    shown = _most(rows, list(_walk(rows)))
    if _left_out(rows, shown) == 1:  # to say so would take a line, too
        shown = list(_walk(rows, all_of_them=True))
    hosts = len({row["host"] for row in rows}) > 1
    wide = max(width or _WIDTH, 40)
    ids = max((len(str(row["pid"])) for row, _, more in shown if not more), default=0)
    names = [_GAP * min(depth, _DEEPEST) + _name(row) for row, depth, _ in shown]
    states = [", ".join(filter(None, _state(row, hosts))) for row, _, _ in shown]
    real = [number for number, (_, _, more) in enumerate(shown) if not more]
    left = wide - ids - 6
    name_width = min(max((len(names[n]) for n in real), default=0), left // 2)
    state_width = min(max((len(states[n]) for n in real), default=0), left - name_width)
    for (row, depth, more), name, state in zip(shown, names, states, strict=True):
        if more:
            whole = "" if more.below == more.alike else f", {counted(more.below, 'process')} in all"
            yield f"  {'':>{ids}}  {_GAP * min(depth, _DEEPEST)}… {more.alike:,} more like it{_each(more.lengths)}{whole}"
            continue
        pid = str(row["pid"] or "?").rjust(ids)
        line = f"  {pid}  {shorten(name, name_width):<{name_width}}  {shorten(state, state_width):<{state_width}}  "
        room = wide - len(line)
        command = printable(row["command"])
        yield (
            line + (click.style(shorten(command, room), dim=True) if room >= 8 and command else "")
        ).rstrip()
    if hidden := _left_out(rows, shown):
        yield f"  … and {counted(hidden, 'other')}; -f json lists all"


def _each(lengths: Sequence[int]) -> str:
    """Return e.g. `, 0.9 ms each (0.8 to 12 ms)`: the median, the shortest and the longest."""
    if not lengths:
        return ""
    least, most = duration(lengths[0]), duration(lengths[-1])
    return f", {duration(lengths[len(lengths) // 2])} each" + (
        "" if least == most else f" ({least} to {most})"
    )


def _left_out(rows: Sequence[Row], shown: Sequence[_Line]) -> int:
    return len(rows) - sum(more.below if more else 1 for _, _, more in shown)


def _most(rows: Sequence[Row], shown: list[_Line]) -> list[_Line]:
    """Return `shown`, or its most telling lines if it is too long: recorded processes with their ancestors, then the first."""
    if len(shown) <= MOST_LINES:
        return shown
    by_key = {row["process"]: row for row in rows}
    telling: set[int] = set()
    for row in rows:
        at: Row | None = row if row["recorded"] else None
        while at is not None and at["process"] not in telling:
            telling.add(at["process"])
            at = by_key.get(at["parent"])
    order = sorted(range(len(shown)), key=lambda number: (shown[number][0]["process"] not in telling, number))
    return [shown[number] for number in sorted(order[:MOST_LINES])]


def _walk(rows: Sequence[Row], *, all_of_them: bool = False) -> Iterator[_Line]:
    """Yield rows with their depth, parents before children.

    For folded ones how many there are, alike and with all below them.

    What only became another program says nothing that the other does not, and is left out unless `all_of_them` are wanted.
    """
    children = _children(rows)
    looks, sizes = _looks(rows, children)
    stack = [*_folded(rows, children[-1], looks, sizes=sizes, depth=0)]
    while stack:
        number, depth, more = stack.pop()
        below = children.get(number, [])
        made_way = rows[number]["ended"] == "exec" and not is_recorded(rows[number]) and len(below) == 1
        passing = made_way and not more and not all_of_them
        if not passing:
            yield rows[number], depth, more
        if not more:
            stack += _folded(rows, below, looks, sizes=sizes, depth=depth + (not passing))


def _children(rows: Sequence[Row]) -> dict[int, list[int]]:
    """Return the positions of each row's children; -1: of those without a parent.

    What only has itself for an ancestor is one.
    """
    place = {row["process"]: number for number, row in enumerate(rows)}
    parents = [place.get(row["parent"], -1) for row in rows]
    safe = [parent < 0 for parent in parents]
    for number in range(len(rows)):
        path = set()
        at = number
        while not safe[at]:
            safe[at] = True
            path.add(at)
            at = parents[at]
        if at in path:  # a circle, in a report of strangers
            parents[at] = -1
    children: dict[int, list[int]] = {-1: []}
    for number in sorted(
        range(len(rows)), key=lambda number: (not rows[number]["primary"], rows[number]["start"], number)
    ):
        children.setdefault(parents[number], []).append(number)
    return children


def _looks(rows: Sequence[Row], children: Mapping[int, Sequence[int]]) -> tuple[list[int], list[int]]:
    """Return a number for each process, equal for those that look the same with all below them.

    And their counts.
    """
    order = list(children[-1])
    for number in order:
        order += children.get(number, [])
    known: dict[Any, int] = {}
    looks, sizes = [0] * len(rows), [1] * len(rows)
    for number in reversed(order):
        row, below = rows[number], children.get(number, [])
        sizes[number] += sum(sizes[child] for child in below)
        own = (
            _name(row),
            row["began"],
            row["ended"],
            row["exit_status"],
            row["recorded"],
            row["not_recorded"],
            row["rank"],
            row["host"],
        )
        looks[number] = known.setdefault(
            (own, frozenset(Counter(looks[child] for child in below).items())), len(known)
        )
    return looks, sizes


def _folded(
    rows: Sequence[Row], below: Sequence[int], looks: Sequence[int], sizes: Sequence[int], depth: int
) -> Iterator[tuple[int, int, _More | None]]:
    """Yield (position, depth, what it stands for), last first: what a stack takes."""
    count = Counter(looks[number] for number in below)
    seen: Counter[int] = Counter()
    lines: list[tuple[int, int, _More | None]] = []
    lengths: dict[int, list[int]] = {}
    for number in below:
        look = looks[number]
        if seen[look] and count[look] > _ALIKE:
            lengths.setdefault(look, []).append(rows[number]["end"] - rows[number]["start"])
        seen[look] += 1
        folds = count[look] > _ALIKE
        if not folds or seen[look] == 1:
            lines.append((number, depth, None))
        if folds and seen[look] == 2:
            lines.append(
                (number, depth, _More(count[look] - 1, sizes[number] * (count[look] - 1), lengths[look]))
            )
    for those in lengths.values():
        those.sort()
    return reversed(lines)


def _name(row: Row) -> str:
    return printable(row["name"] or PurePath(row["executable"]).name or "?")


def _state(row: Row, hosts: bool) -> Iterator[str]:
    if hosts:
        yield printable(row["host"])
    if row["rank"] is not None:
        yield f"rank {row['rank']}"
    status = row["exit_status"]
    if row["ended"] == "running":
        yield "still running"
    elif row["ended"] == "exec":
        yield "became another"
    elif status is None:
        yield (
            "end unknown"
            if row["ended"] is None and row["began"] is not None
            else "ended"
            if row["ended"]
            else ""
        )
    elif row["ended"] == "signal":
        yield f"killed by {signal_name(status - 128)}"
    else:
        yield f"exit {status}"
    if row["not_recorded"] and row["ended"] != "exec":
        why = printable(row["not_recorded"])
        yield why if why.startswith(("made no", "could not be started")) else f"not recorded: {why}"
