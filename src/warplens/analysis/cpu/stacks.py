"""Stacks summed up: the tree of who called whom with the time in it, from above, from below, or flat.

    frames = Frames.of(report)
    rows = sampled(report, selection)            # analysis.cpu.samples: what each thread was seen in, summed by stack
    tree = top_down(frames, "function", Weights.of(frames, rows))
    for node in tree.order():                    # each one after its caller, the heaviest first
        print("  " * tree.level[node], frames.frame(tree.example[node]).function, tree.own[node], tree.total[node])
    for stack, weight, count in each_stack(frames, rows): ...

A function that calls itself is as many nodes as it is active at once, so each node counts a sample once; `flat` counts it once for
the function.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.analysis.cpu.frames import Frame, FrameTable
    from warplens.arrays import Int64Array


@dataclass(frozen=True)
class Weights:
    """Sums of samples.

    `group`: number of what they are grouped by (a thread, a range); `stack`: position of the
    frame.
    """

    group: Int64Array
    stack: Int64Array
    weight: Int64Array
    count: Int64Array

    @classmethod
    def of(cls, frames: FrameTable, rows: pa.Table, group: Int64Array | None = None) -> Weights:
        """Samples by group.

        `rows`: stack, weight (ns) and count (of samples) as `cpu.samples.sampled` returns them;
        `group`: of each row, from 0.
        """
        stack = frames.positions(rows.column("stack"))
        weight, count = (np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("weight", "count"))
        return cls(np.zeros(len(stack), np.int64) if group is None else group, stack, weight, count)


@dataclass(frozen=True)
class StackTree:
    """Nodes in order of level.

    `own`: ns of samples that end in the node, `total`: of those that pass through it; `samples`:
    how many do.

    `parent`: node that it is below, -1 for the roots; `label`: what the frames of the node have in common; `example`: position of one
    of them; `own_samples`: how many end in it. Roots of different groups are different nodes.
    """

    group: Int64Array
    parent: Int64Array
    level: Int64Array
    label: Int64Array
    example: Int64Array
    own: Int64Array
    total: Int64Array
    own_samples: Int64Array
    samples: Int64Array

    def __len__(self) -> int:
        return len(self.parent)

    def order(self, *, depth: int | None = None, least: float = 0) -> Int64Array:
        """Return the nodes as they are read: each below its parent, the greatest total first.

        `depth`: levels that are wanted; `least`: ns that a node must have. Both leave out whole branches.
        """
        enter, _ = self._walk()
        kept = (self.total >= least) if depth is None else (self.total >= least) & (self.level < depth)
        nodes = np.flatnonzero(kept)
        return np.asarray(nodes[np.argsort(enter[nodes], kind="stable")], np.int64)

    def outermost(self) -> Int64Array:
        """Return the nodes that are not below another one with their label and group.

        Their totals hold each sample once.
        """
        enter, leave = self._walk()
        order = np.lexsort((enter, self.label, self.group))
        change = (np.diff(self.label[order], prepend=-1) != 0) | (np.diff(self.group[order], prepend=-1) != 0)
        # A node is inside another when it is entered before the other is left. `enter` and `leave` lie below len(self) + 1, so adding a
        # multiple of that per label keeps the running maximum of one label from reaching into the next.
        lift = np.cumsum(change) * (len(self) + 1)  # keeps the labels apart in one running maximum
        reached = (
            np.maximum.accumulate(np.concatenate(([-1], (leave[order] + lift)[:-1]))) if len(self) else lift
        )
        return np.asarray(order[change | (reached <= enter[order] + lift)], np.int64)

    def _walk(self) -> tuple[Int64Array, Int64Array]:
        """When a walk through the tree enters each node, and leaves what is below it: numbers of nodes."""
        size = np.ones(len(self), np.int64)
        edges = (
            np.searchsorted(self.level, np.arange(self.level[-1] + 2)) if len(self) else np.zeros(1, np.int64)
        )
        levels = [
            np.arange(first, last)
            for first, last in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)
        ]
        # From the deepest level upwards: the size of a node is one plus the sizes of its children.
        for nodes in reversed(levels[1:]):
            np.add.at(size, self.parent[nodes], size[nodes])
        enter = np.zeros(len(self), np.int64)
        for number, nodes in enumerate(levels):
            above = self.parent[nodes]
            order = nodes[np.lexsort((self.label[nodes], -self.total[nodes], self.group[nodes], above))]
            # Depth-first numbers, a level at a time: a child enters right behind its parent plus the sizes of the siblings before it.
            before = np.cumsum(size[order]) - size[order]
            first = np.diff(self.parent[order], prepend=-2) != 0
            before -= np.maximum.accumulate(
                np.where(first, before, 0)
            )  # sizes never fall, so the last begin is the greatest
            enter[order] = before + (enter[self.parent[order]] + 1 if number else 0)
        return enter, enter + size


def top_down(frames: FrameTable, by: str, weights: Weights) -> StackTree:
    """Return the tree from the outermost frames inwards.

    Frames that are the same `function`, `line` or `module` share a node.

    A function that calls itself stays apart from itself; frames of a module that call one another are one. Raises UsageError for
    another word.
    """
    node, parent, level, label, example = _merged(*_shape(frames, by))
    span = len(parent)
    # Group and node in one number, so that one np.unique adds up both: key // span is the group, key % span the node.
    keys, own, own_samples = _sums(weights.group * span + node[weights.stack], weights.weight, weights.count)
    depth = level[keys % span] if len(keys) else keys
    levels: list[tuple[Int64Array, ...]] = []
    above = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.int64)
    for number in range(int(depth.max()) if len(depth) else -1, -1, -1):
        here = depth == number
        mine = keys[here], own[here], own_samples[here]
        all_keys, total, samples = _sums(*(np.concatenate(pair) for pair in zip(mine, above, strict=True)))
        place = np.searchsorted(all_keys, mine[0])
        ending, ended = np.zeros(len(all_keys), np.int64), np.zeros(len(all_keys), np.int64)
        ending[place], ended[place] = mine[1], mine[2]
        levels.append((all_keys, ending, total, ended, samples))
        # The totals of this level, moved to the parents within the same group; the level above adds them to its own.
        above = all_keys - all_keys % span + np.maximum(parent[all_keys % span], 0), total, samples
    levels.reverse()
    return _assembled(levels, span, parent, label=label, example=example)


def bottom_up(
    frames: FrameTable, by: str, weights: Weights, *, depth: int | None = None, least: float = 0
) -> StackTree:
    """Return the tree from the frames that samples ended in outwards: below each its callers.

    The total of a node is the root's own time when it was called this way; only roots have own time. `depth`: levels that are wanted;
    `least`: ns below which nobody asks who called a node (a tree of everything has as many nodes as all stacks have frames).
    """
    node, parent, _, label, example = _merged(*_shape(frames, by))
    rows = [*_sums(weights.group * len(parent) + node[weights.stack], weights.weight, weights.count)]
    at, group = rows[0] % len(parent), rows[0] // len(parent)
    weight, count = rows[1], rows[2]
    under = group  # what tells the nodes of a level apart, beside the label
    above = np.full(len(at), -1, np.int64)
    names = int(label.max()) + 1 if len(label) else 1
    parts: list[StackTree] = []
    first = level = 0
    while len(at) and (depth is None or level < depth):
        # Rows with the same node below (`under`) and the same label share a node: (under, label) in one number.
        _, example_at, code = np.unique(under * names + label[at], return_index=True, return_inverse=True)
        nodes = len(example_at)
        total, samples = _added(code, weight, nodes), _added(code, count, nodes)
        ends = parent[at] < 0
        own, own_samples = (
            (total, samples) if level == 0 else (np.zeros(nodes, np.int64), np.zeros(nodes, np.int64))
        )
        place = above[example_at]
        some = at[example_at]
        parts.append(
            StackTree(
                group[example_at],
                place,
                np.full(nodes, level),
                label=label[some],
                example=example[some],
                own=own,
                total=total,
                own_samples=own_samples,
                samples=samples,
            )
        )
        going = ~ends & (total[code] >= least)
        under, above = code[going].astype(np.int64), first + code[going]
        at, group, weight, count = parent[at[going]], group[going], weight[going], count[going]
        first += nodes
        level += 1
    return _joined(parts)


def flat(tree: StackTree) -> StackTree:
    """Return one node for each label and group of a top-down tree, the most own time first.

    Recursion counts once in `total`, `samples`.
    """
    wide = int(tree.label.max()) + 1 if len(tree) else 1
    keys, first, code = np.unique(tree.group * wide + tree.label, return_index=True, return_inverse=True)
    once = tree.outermost()
    own, own_samples = _added(code, tree.own, len(keys)), _added(code, tree.own_samples, len(keys))
    total, samples = (
        _added(code[once], tree.total[once], len(keys)),
        _added(code[once], tree.samples[once], len(keys)),
    )
    order = np.lexsort((keys, -total, -own))
    none = np.zeros(len(keys), np.int64)
    labelled = (
        keys // wide,
        none - 1,
        none,
        keys % wide,
        tree.example[first],
        own,
        total,
        own_samples,
        samples,
    )
    return StackTree(*(values[order] for values in labelled))


def each_stack(frames: FrameTable, rows: pa.Table) -> Iterator[tuple[tuple[Frame, ...], int, int]]:
    """Yield each row's stack (outermost frame first), weight (ns) and count.

    `rows`: as `analysis.cpu.samples.sampled` returns them.
    """
    weights = Weights.of(frames, rows)
    for stack, weight, count in zip(
        weights.stack.tolist(), weights.weight.tolist(), weights.count.tolist(), strict=True
    ):
        yield frames.path(stack), weight, count


def _shape(frames: FrameTable, by: str) -> tuple[Int64Array, Int64Array]:
    """Return the callers and labels of frames.

    Those of a module that call one another have the caller of the outermost one.
    """
    labels, parent = frames.labels(by), frames.parent
    if by != "module":
        return parent, labels
    outer = np.where((parent >= 0) & (labels[parent] == labels), parent, np.arange(len(parent)))
    for _ in range(64):  # each step doubles how far it looks
        further = outer[outer]
        if np.array_equal(further, outer):
            break
        outer = further
    caller = parent[outer]
    return np.where(caller >= 0, outer[caller], -1), labels


def _merged(
    parent: Int64Array, labels: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array, Int64Array, Int64Array]:
    """Make one node of frames that have the same label and callers.

    Returns the node of each frame, then of each node its parent (-1: none), level, label and one of its frames.
    """
    children = np.argsort(parent, kind="stable")
    first = np.searchsorted(parent[children], np.arange(len(parent) + 1))
    node = np.full(len(parent), -1, np.int64)
    names = int(labels.max()) + 1 if len(labels) else 1
    frames_of_level = children[: first[0]]
    parts: list[tuple[Int64Array, Int64Array, Int64Array]] = []
    number = 0
    while len(frames_of_level):
        above = node[parent[frames_of_level]] if parts else np.full(len(frames_of_level), -1, np.int64)
        # Frames with the same parent node and label become one node. The roots have parent -1, hence the + 1.
        keys, example, code = np.unique(
            (above + 1) * names + labels[frames_of_level], return_index=True, return_inverse=True
        )
        node[frames_of_level] = number + code
        parts.append((keys // names - 1, keys % names, frames_of_level[example]))
        number += len(keys)
        begin, counts = first[frames_of_level], first[frames_of_level + 1] - first[frames_of_level]
        # The children of all these frames: runs [begin, begin + count) of `children`, one after the other.
        # For begin = [4, 9] and counts = [2, 3] the index is [4, 5, 9, 10, 11].
        frames_of_level = children[
            np.repeat(begin - (np.cumsum(counts) - counts), counts) + np.arange(counts.sum())
        ]
    above, label, some = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    level = np.repeat(np.arange(len(parts)), [len(part[0]) for part in parts])
    return (
        np.where(node < 0, node[-1], node),
        above,
        level,
        label,
        some,
    )  # frames in a circle: in no report of ours; as no stack


def _sums(
    keys: Int64Array, weight: Int64Array, count: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return the keys that there are, sorted, and what belongs to each."""
    known, code = np.unique(keys, return_inverse=True)
    return known, _added(code, weight, len(known)), _added(code, count, len(known))


def _added(code: Int64Array, values: Int64Array, groups: int) -> Int64Array:
    # bincount would add floats: sums of ns over many ranks reach beyond 2^53
    result = np.zeros(groups, np.int64)
    np.add.at(result, code, values)
    return result


def _assembled(
    levels: list[tuple[Int64Array, ...]],
    span: int,
    parent: Int64Array,
    label: Int64Array,
    example: Int64Array,
) -> StackTree:
    """Put the levels of a top-down tree together; keys are group * span + node."""
    parts = []
    first = 0
    above = np.empty(0, np.int64)
    for number, (keys, own, total, own_samples, samples) in enumerate(levels):
        node = keys % span
        if number:
            place = first - len(above) + np.searchsorted(above, keys - node + parent[node])
        else:
            place = np.full(len(keys), -1, np.int64)
        level = np.full(len(keys), number)
        parts.append(
            StackTree(
                keys // span,
                place,
                level,
                label=label[node],
                example=example[node],
                own=own,
                total=total,
                own_samples=own_samples,
                samples=samples,
            )
        )
        above = keys
        first += len(keys)
    return _joined(parts)


def _joined(parts: list[StackTree]) -> StackTree:
    names = list(StackTree.__dataclass_fields__)
    none = [np.empty(0, np.int64)]
    return StackTree(
        *(np.concatenate(none + [getattr(part, name) for part in parts]).astype(np.int64) for name in names)
    )
