"""Compares two trees of samples: the change of each node's share, and the most changed functions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import PurePath

import numpy as np

from warplens.analysis.cpu.stacks import flat
from warplens.cli.flame.load import Flame
from warplens.cli.flame.words import called, where
from warplens.model.words import duration

# Nodes are matched by name and file, not by line: lines move from one version of a program to the next.
_Key = tuple[str, str]
_ROOT = -1


@dataclass(frozen=True)
class Changed:
    """A function by the share of samples that end in it, 0 to 1.

    `own` now, `before` in the baseline (0: it was not there).
    """

    name: str
    place: str
    own: float
    before: float

    @property
    def change(self) -> float:
        """By how much the share grew."""
        return self.own - self.before


def against(flame: Flame, baseline: Flame, by: str) -> Flame:
    """Return `flame` with the change of each node's share.

    0.1 is ten percent of all samples more than in the baseline.
    """
    numbers: dict[tuple[int, _Key], int] = {}
    before: dict[int, float] = defaultdict(float)
    for _, number, share in _numbered(baseline, by, numbers):
        before[number] += share
    change = np.zeros(len(flame.tree))
    for node, number, share in _numbered(flame, by, numbers):
        change[node] = share - before.get(number, 0.0)
    title = f"{flame.title}\nagainst {baseline.title}; {duration(flame.weight)} of samples, {duration(baseline.weight)} in the baseline"
    return replace(flame, title=title, change=change)


def most_changed(flame: Flame, baseline: Flame, by: str) -> list[Changed]:
    """Return the functions of both, those whose own share changed most first."""
    now, before = _own_shares(flame, by), _own_shares(baseline, by)
    found = [
        Changed(
            key[0],
            (now.get(key) or before[key])[1],
            now.get(key, (0.0, ""))[0],
            before=before.get(key, (0.0, ""))[0],
        )
        for key in {**before, **now}
    ]
    return sorted(found, key=lambda row: (-abs(row.change), row.name))


def _key(flame: Flame, example: int, by: str) -> _Key:
    frame = flame.frames.frame(example)
    name = frame.function if by == "line" else called(frame, by)
    return name, PurePath(frame.file or frame.module or frame.kind).name


def _numbered(
    flame: Flame, by: str, numbers: dict[tuple[int, _Key], int]
) -> Iterator[tuple[int, int, float]]:
    """Yield each node, the number of its path (the same in all trees that share `numbers`), and its share."""
    tree = flame.tree
    path = np.full(len(tree), _ROOT, np.int64)
    for node in range(len(tree)):  # nodes are in order of level: parents come first
        above = int(path[tree.parent[node]]) if tree.parent[node] >= 0 else _ROOT
        key = above, _key(flame, int(tree.example[node]), by)
        path[node] = numbers.setdefault(key, len(numbers))
        yield node, int(path[node]), float(tree.total[node] / max(flame.weight, 1))


def _own_shares(flame: Flame, by: str) -> dict[_Key, tuple[float, str]]:
    tree = flat(flame.tree)
    found: dict[_Key, tuple[float, str]] = {}
    for node in np.flatnonzero(tree.own).tolist():
        key = _key(flame, int(tree.example[node]), by)
        share, place = found.get(key, (0.0, where(flame.frames.frame(int(tree.example[node])), by)))
        found[key] = share + float(tree.own[node] / max(flame.weight, 1)), place
    return found
