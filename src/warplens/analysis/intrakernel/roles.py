"""Roles of warps in a kernel, and regions that wait.

Warps with the same regions have one role, as producers and consumers of a warp-specialised kernel.

A tag with a slash names the role itself: `producer/load`. Else warps that record the same tags have the same role, which is called after
their numbers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

import numpy as np

from warplens.analysis.intrakernel.sums import region_sums

if TYPE_CHECKING:
    from warplens.analysis.intrakernel.launches import IntrakernelLaunches, Units
    from warplens.arrays import Int64Array
    from warplens.report.report import Report

WAITS = (
    "wait",
    "waits",
    "waiting",
    "barrier",
    "mbarrier",
    "mbar",
    "bar",
    "sync",
    "syncthreads",
    "syncwarp",
    "acquire",
    "stall",
    "spin",
    "idle",
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def words(tag: str) -> set[str]:
    """Return the words of a tag, in small letters: `tma_load`, `TMALoad` and `tma-load` have two."""
    return {word.lower() for word in _WORD.findall(tag)}


def is_wait(tag: str, waits: Collection[str] = WAITS) -> bool:
    """True if warps wait for other warps in a region of this name.

    A word of the name, behind the last slash, decides.
    """
    return not words(tag.rpartition("/")[2]).isdisjoint(waits)


class Roles:
    """`of`: for each unit the place of its role in `names` (group of launches, name).

    -1: it recorded no region.
    """

    def __init__(self, names: list[tuple[int, str]], of: Int64Array, tags: list[dict[str, int]]) -> None:
        self.names, self.of, self.tags = names, of, tags

    def within(self, group: int) -> list[int]:
        """Return the roles of one group of launches."""
        return [number for number, (of, _) in enumerate(self.names) if of == group]


def roles(report: Report, launches: IntrakernelLaunches, units: Units) -> Roles:
    """Return the roles of the warps of launches; `tags` of each: ns in regions of this tag."""
    if not len(units.id):
        return Roles([], np.zeros(0, np.int64), [])
    most = int(units.warp.max()) + 1
    keys, place = np.unique(launches.group[units.launch] * most + units.warp, return_inverse=True)
    place = place.reshape(-1)
    spent: dict[int, dict[str, int]] = defaultdict(dict)
    for row in region_sums(report, launches, place, units=units).to_pylist():
        if row["kind"] != "mark":
            known = spent[row["part"]]
            known[row["tag"]] = known.get(row["tag"], 0) + row["total"]
    label = {}
    by_tags: dict[tuple[int, frozenset[str]], list[int]] = defaultdict(list)
    for key, tags in spent.items():
        group, warp = divmod(int(keys[key]), most)
        prefixes: dict[str, int] = defaultdict(int)
        for tag, total in tags.items():
            if "/" in tag:
                prefixes[tag.partition("/")[0]] += total
        if prefixes:
            label[key] = (group, max(sorted(prefixes), key=lambda name: prefixes[name]))
        else:
            by_tags[group, frozenset(tags)].append(warp)
    for (group, _), warps in by_tags.items():
        text = f"warp{'s' if len(warps) > 1 else ''} {ranges(sorted(warps))}"
        label |= {int(np.searchsorted(keys, group * most + warp)): (group, text) for warp in warps}
    names = sorted(set(label.values()))
    number = {name: at for at, name in enumerate(names)}
    tags_of: list[dict[str, int]] = [{} for _ in names]
    of = np.full(len(keys), -1, np.int64)
    for key, name in label.items():
        of[key] = number[name]
        for tag, total in spent[key].items():
            tags_of[number[name]][tag] = tags_of[number[name]].get(tag, 0) + total
    return Roles(names, of[place], tags_of)


def ranges(numbers: Iterable[int]) -> str:
    """Write numbers in order as `0-3,8`."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(str(low) if low == high else f"{low}-{high}" for low, high in parts)
