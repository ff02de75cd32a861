"""The graph of a training step: which operations wait for which, over all ranks.

Operations of one kind and number that several ranks do together are one node: a send with its receive,
an all-reduce of a group. A node begins when all that it waits for has ended on each of its ranks, and
each rank's part then takes its own duration. So waiting for peers is part of the graph, not of a duration.

The edges, as in a 1F1B pipeline:

- On each rank computations follow one another, and so do collectives, and so do batches of sends and
  receives. What begins at the same time on a rank is one batch.
- A computation waits for the receive of its microbatch, and the first one for the parameters.
- A send waits for its computation. A receive that is posted alone waits for the computation before it;
  one that is posted in a batch with a send does not, because its transfer needs no result of this rank.
- Collectives at the end of the step wait for the last computation; the optimizer waits for them.
"""

from __future__ import annotations

import graphlib
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from warplens.arrays import Float64Array, Int64Array
from warplens.errors import ReportError
from warplens.importers.jobs.operations import TrainingOperations, is_compute

PARAMETERS = "params-all-gather"
_COMPUTE = ("forward-compute", "backward-compute")
# Kind to the ranks that do it together: "data": those of one stage, "ends": first and last stage of one dp
# rank, "all": every rank. Other collectives are of ranks that the trace does not have (tensor parallel).
GROUPS = {
    PARAMETERS: "data",
    "grads-reduce-scatter": "data",
    "embedding-grads-all-reduce": "ends",
    "optimizer-clip-main-grad": "all",
}
# Sends and receives: direction, and the stage that sends.
_TRANSFERS = {
    "forward-send": ("forward", 0),
    "forward-recv": ("forward", -1),
    "backward-send": ("backward", 0),
    "backward-recv": ("backward", 1),
}

Key = tuple[object, ...]


def part_of(kind: str) -> str:
    """Return the kind as results name it: sends and receives of a direction are one."""
    return f"{_TRANSFERS[kind][0]}-pp-comm" if kind in _TRANSFERS else kind


@dataclass
class _Node:
    """One node of the graph while it is built. `waits`: positions of operations."""

    operations: list[int] = field(default_factory=list)
    waits: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class StepGraph:
    """The graph of one or more steps of the same shape.

    `order`: for each node, before all that wait for it, the operations that are its parts and the
    operations whose ends it waits for. Operations are numbered as in the step's rows.
    """

    order: tuple[tuple[Int64Array, Int64Array], ...]

    def ends(self, durations: Float64Array) -> Float64Array:
        """Return when each operation ends, in seconds from the start of the step.

        `durations`: operations × runs.
        """
        ends = np.zeros_like(durations)
        for operations, waits in self.order:
            begin = ends[waits].max(axis=0) if len(waits) else 0.0
            ends[operations] = durations[operations] + begin
        return ends

    def length(self, durations: Float64Array) -> Float64Array:
        """Return how long the step takes with these durations, for each run."""
        longest: Float64Array = self.ends(durations).max(axis=0)
        return longest

    def transfers(self, start: Float64Array, end: Float64Array) -> Float64Array:
        """Return durations without the wait for peers: from the last rank's begin to its own end.

        `start`, `end`: operations × steps, as traced.
        """
        durations = end - start
        for operations, _ in self.order:
            if len(operations) > 1:
                durations[operations] = end[operations] - start[operations].max(axis=0)
        return np.maximum(durations, 0.0)


def keys(operations: TrainingOperations, rows: slice) -> list[Key]:
    """Return for each operation of a step what it is: two steps with equal lists have the same graph."""
    kinds = operations.kinds
    return list(
        zip(
            (kinds[code] for code in operations.kind[rows].tolist()),
            operations.stage[rows].tolist(),
            operations.dp_rank[rows].tolist(),
            operations.sequence[rows].tolist(),
            _batches(operations, rows),
            strict=True,
        )
    )


def build(step_keys: Iterable[Key]) -> StepGraph:
    """Build the graph of a step from its `keys`.

    ReportError if operations wait for one another in a circle.
    """
    nodes: dict[Key, _Node] = {}
    known = list(step_keys)
    last_stage = max(int(str(key[1])) for key in known)
    ranks: dict[tuple[int, int], list[int]] = {}
    for place, (kind, stage, dp_rank, sequence, _) in enumerate(known):
        key = _together(str(kind), int(str(stage)), int(str(dp_rank)), sequence=sequence, last=last_stage)
        nodes.setdefault(key, _Node()).operations.append(place)
        ranks.setdefault((int(str(stage)), int(str(dp_rank))), []).append(place)
    of = {place: key for key, node in nodes.items() for place in node.operations}
    for places in ranks.values():
        for place, waits in _waits([(place, known[place]) for place in places]):
            nodes[of[place]].waits |= waits
    sorter = graphlib.TopologicalSorter(
        {key: {of[place] for place in node.waits} - {key} for key, node in nodes.items()}
    )
    try:
        order = list(sorter.static_order())
    except graphlib.CycleError as error:
        raise ReportError(
            f"operations wait for one another in a cycle: {' -> '.join(map(str, error.args[1]))}"
        ) from error
    return StepGraph(
        tuple(
            (
                np.array(nodes[key].operations, np.int64),
                np.array(sorted(nodes[key].waits - set(nodes[key].operations)), np.int64),
            )
            for key in order
        )
    )


def _batches(operations: TrainingOperations, rows: slice) -> list[int]:
    """Return a number that operations share which begin together on one rank."""
    rank, start = operations.rank[rows], operations.start[rows]
    # A new batch begins with each new rank or later start. Subtracting the number at the rank's
    # first row makes the numbers of each rank begin at 0: batch 3 of rank 1 meets batch 3 of rank
    # 0.
    begins = np.append(True, (np.diff(rank) != 0) | (np.diff(start) > 0))
    batch = np.cumsum(begins)
    _, first = np.unique(rank, return_index=True)
    numbers: list[int] = (batch - batch[first][np.searchsorted(rank[first], rank)]).tolist()
    return numbers


def _together(kind: str, stage: int, dp_rank: int, sequence: object, last: int) -> Key:
    """Return what the parts of one node have in common."""
    if kind in _TRANSFERS:
        direction, sender = _TRANSFERS[kind]
        return direction, stage + sender, dp_rank, sequence
    group = GROUPS.get(kind)
    if group == "all":
        return kind, sequence
    if group == "data":
        return kind, stage, sequence
    if group == "ends" and stage in (0, last):
        return kind, "ends", dp_rank, sequence
    return kind, stage, dp_rank, sequence


def _waits(own: list[tuple[int, Key]]) -> Iterable[tuple[int, set[int]]]:
    """Yield the operations of one rank, in order of start, and those of this rank that each waits for."""
    done: dict[tuple[str, object], int] = {}  # the last operation of a kind and number
    compute: int | None = None
    collective: int | None = None
    parameters: int | None = None
    batch: object = None
    before: list[int] = []  # the batch of transfers before this one
    members: list[int] = []
    sending = {key[4] for _, key in own if str(key[0]).endswith("-send")}
    for place, (kind, _, _, sequence, number) in own:
        name = str(kind)
        waits: set[int] = set()
        if name in _TRANSFERS:
            if number != batch:
                batch, before, members = number, members, []
            members.append(place)
            waits |= set(before)
            if name.endswith("-send"):
                waits |= {done[key] for key in [(name.replace("send", "compute"), sequence)] if key in done}
            elif number not in sending and compute is not None:
                waits.add(compute)
        elif is_compute(name):
            waits |= {one for one in (compute, parameters) if one is not None}
            received = (name.replace("compute", "recv"), sequence)
            if received in done and name in _COMPUTE:
                waits.add(done[received])
            if name == "optimizer" and collective is not None:
                waits.add(collective)
            compute = place
        else:
            waits |= {one for one in (collective, compute if name != PARAMETERS else None) if one is not None}
            collective = place
            if name == PARAMETERS:
                parameters = place
        done[name, sequence] = place
        yield place, waits
