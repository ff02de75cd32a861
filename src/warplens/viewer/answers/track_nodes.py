"""The rows of a report as the page has them.

`TrackNode`s, many of a kind below one row that can be opened.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from warplens.timeline.kinds import kind_of
from warplens.timeline.tree import Row, RowTree
from warplens.viewer.answers.plain import cut, number

if TYPE_CHECKING:
    from warplens.timeline.entities import Entities
    from warplens.timeline.lanes import Lane, Lanes
    from warplens.viewer.answers.counters import Counter

_THREADS_OPEN = 12  # of a process; the others are below one row that can be opened
_PROCESSES_OPEN = 8
_INSIDES_OPEN = 6  # of a stream
_SMS_OPEN = 8  # of a kernel
_NAME = 300


def track_nodes(
    report: int, origin: int, entities: Entities, lanes: Lanes, counters: Mapping[int, Counter]
) -> list[dict[str, Any]]:
    """Return the tree of a report, its hosts first.

    `report`: its number in the view; `origin`: what times are counted from (ns).
    """
    tree = RowTree(entities)
    for lane in lanes.all:
        tree.add(lane)
    for track, counter in counters.items():
        row = tree.count(counter.layer, counter.key, counter.name, counter.where)
        row.source, row.events = _counter(track, counter, origin), len(counter.times)
    for host in tree.root.children.values():
        processes = [child for child in host.sorted() if child.kind == "process"]
        for process in processes[_PROCESSES_OPEN:]:
            process.open = False
        for process in processes:
            _fold(process, "thread", "threads", most=_THREADS_OPEN)
        _fold_insides(host)
    return [_node(host, report, origin) for host in tree.root.sorted()]


def _node(row: Row, report: int, origin: int) -> dict[str, Any]:
    """Return a row as `TrackNode` of the page has it."""
    node: dict[str, Any] = {"id": row.id, "kind": row.kind, "name": cut(row.name, _NAME)}
    if row.detail:
        node["detail"] = cut(row.detail, _NAME)
    node["children"] = [_node(child, report, origin) for child in row.sorted()]
    if row.source is not None:
        track = row.source if isinstance(row.source, dict) else _slices(row.source, origin)
        node["track"] = {"report": report, **track}
    if node["children"]:
        node["open"] = row.open
    return {**node, **row.facts}


def _slices(lane: Lane, origin: int) -> dict[str, Any]:
    return {
        "track": lane.number,
        "kind": kind_of(lane.layer).drawn,
        "layer": lane.layer,
        "lanes": lane.lanes,
        "events": lane.events,
        "busy": lane.busy,
        "begin": lane.begin - origin,
        "end": lane.end - origin,
    }


def _counter(track: int, counter: Counter, origin: int) -> dict[str, Any]:
    first, last = (int(counter.times[0]), int(counter.times[-1])) if len(counter.times) else (origin, origin)
    return {
        "track": track,
        "kind": "counter",
        "layer": counter.layer,
        "lanes": 1,
        "events": len(counter.times),
        "busy": 0,
        "begin": first - origin,
        "end": last - origin,
        "unit": counter.unit,
        "low": number(counter.low),
        "high": number(counter.high),
    }


def _fold_insides(node: Row) -> None:
    """Bound what is below the rows of kernels that time themselves, and the number of these on a stream."""
    for child in list(node.children.values()):
        _fold_insides(child)
    _fold(node, "inside", "kernels", most=_INSIDES_OPEN)
    if node.kind == "inside":
        for sm in node.children.values():
            sm.open = len(node.children) <= _SMS_OPEN // 2
        _fold(node, "sm", "SMs", most=_SMS_OPEN)


def _fold(node: Row, kind: str, group: str, most: int) -> None:
    """Put the children of a kind that did least below one row, if there are many of them.

    The first stays where it is.
    """
    own = [child for child in node.sorted() if child.kind == kind]
    if len(own) <= most:
        return
    kept = {child.id for child in [own[0], *sorted(own[1:], key=lambda child: -child.total())[: most - 1]]}
    rest = {
        part: child for part, child in node.children.items() if child.kind == kind and child.id not in kept
    }
    below = Row(
        f"{node.id}/{group}",
        group,
        f"{len(rest):,} more {group}",
        order=(own[0].order[0], 1 << 62),
        children=rest,
        facts=node.facts,
    )
    below.open = False
    node.children = {part: child for part, child in node.children.items() if part not in rest}
    node.children[group] = below
