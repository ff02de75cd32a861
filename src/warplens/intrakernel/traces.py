"""Chrome JSON of regions, for ui.perfetto.dev: overlapping ones of a row are split into lanes.

Standard library only.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from warplens.disk.files import text_output
from warplens.disk.replacing import replacing
from warplens.intrakernel.tags import TagTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from warplens.spool.kernels.decoded import Decoded


@dataclass
class Slice:
    """A region of a row: `row` is any key, times are ns; `length` 0 and `mark` make an instant."""

    row: Any
    name: str
    start: int
    length: int
    arguments: dict[str, Any]
    mark: bool = False


def lanes_of(slices: Iterable[Slice]) -> Iterator[tuple[Slice, int]]:
    """Give every slice of one row the first lane where slices nest. Viewers need that."""
    open_ends: list[list[int]] = []  # of each lane, the ends of what is open, outermost first
    for region in sorted(slices, key=lambda region: (region.start, -region.length)):
        end = region.start + region.length
        for ends in open_ends:
            while ends and ends[-1] <= region.start:
                ends.pop()
        lane = next(
            (lane for lane, ends in enumerate(open_ends) if not ends or end <= ends[-1]), len(open_ends)
        )
        if lane == len(open_ends):
            open_ends.append([])
        if region.length:
            open_ends[lane].append(end)
        yield region, lane


def chrome_events(
    rows: dict[Any, list[Slice]], names: dict[Any, str], *, pid: int, process: str, first_tid: int = 0
) -> list[dict[str, Any]]:
    """Make Chrome's events of rows: microseconds from the first slice, a thread for each row and lane.

    `names` are of rows; rows come in its order, and their numbers are keys where those are integers.
    """
    zero = min((region.start for row in rows.values() for region in row), default=0)
    events: list[dict[str, Any]] = [
        {"name": "process_name", "ph": "M", "pid": pid, "args": {"name": process}}
    ]
    place = 0
    for row, title in names.items():
        seen: dict[int, int] = {}
        for region, lane in lanes_of(rows.get(row, ())):
            if lane not in seen:
                seen[lane] = tid = first_tid + place
                place += 1
                shown = title if lane == 0 else f"{title} ({lane + 1})"
                events.append(
                    {"name": "thread_name", "ph": "M", "pid": pid, "tid": tid, "args": {"name": shown}}
                )
                events.append(
                    {
                        "name": "thread_sort_index",
                        "ph": "M",
                        "pid": pid,
                        "tid": tid,
                        "args": {"sort_index": tid},
                    }
                )
            event: dict[str, Any] = {
                "name": region.name,
                "cat": "intrakernel",
                "pid": pid,
                "tid": seen[lane],
                "ts": (region.start - zero) / 1000,
            }
            event |= {"ph": "i", "s": "t"} if region.mark else {"ph": "X", "dur": region.length / 1000}
            events.append(event | {"args": region.arguments})
    return events


def write_json(
    events: list[dict[str, Any]], path: str | PathLike[str] | None, notes: Iterable[str] = ()
) -> dict[str, Any]:
    """Wrap Chrome's events up and write them, where a path is given; return what is written."""
    trace: dict[str, Any] = {"traceEvents": events, "displayTimeUnit": "ns"}
    losses = list(notes)
    if losses:
        trace["otherData"] = {"losses": "; ".join(losses)}
    if path is not None:
        with replacing(Path(path)) as partial, text_output(partial) as file:
            file.write(json.dumps(trace, separators=(",", ":")))
    return trace


def write_trace(
    decoded: Decoded,
    tags: TagTable | Iterable[str],
    path: str | PathLike[str] | None,
    *,
    name: str = "kernel",
) -> dict[str, Any]:
    """Write a decoded launch as Chrome JSON: a row for each warp, by CTA; return what is written.

    Args:
        decoded: the result of `Buffer.decode`.
        tags: names of the regions, `buffer.tags` or as `allocate` took them.
        path: of the file; None writes none.
        name: of the launch.
    """
    tags = tags if isinstance(tags, TagTable) else TagTable(tags)
    units = decoded.units
    order = sorted(range(len(units)), key=lambda row: (int(units["cta"][row]), int(units["warp"][row]), row))
    names = {
        row: f"CTA {units['cta'][row]} warp {units['warp'][row]} (SM {units['sm_begin'][row]})"
        for row in order
    }
    rows: dict[Any, list[Slice]] = {row: [] for row in order}
    labels = {tag: tags.label(tag) for tag in set(decoded.events["tag"].tolist())}
    columns = (
        decoded.events[column].tolist() for column in ("unit", "tag", "flags", "start", "end", "payload")
    )
    for unit, tag, flags, start, end, payload in zip(*columns, strict=True):
        arguments = {"start_ns": start, **({"payload": payload} if flags & 8 else {})}
        rows[unit].append(Slice(unit, labels[tag], start, end - start, arguments, mark=bool(flags & 1)))
    return write_json(chrome_events(rows, names, pid=0, process=name), path, decoded.losses())
