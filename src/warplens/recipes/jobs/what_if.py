"""How long a training job's steps would take with other durations, by running its graph again.

The definitions are those of "Understanding Stragglers in Large Model Training Using What-if Analysis"
(OSDI 2025). An operation without a straggler takes the ideal duration of its kind: the mean over all
steps and ranks for computations, the median for communication. Communication counts from the moment
the last rank began it. The slowdown of a job is the length of its steps over that with ideal durations;
the slowdown by a kind, a stage or a dp rank is the length where all others are ideal, over the ideal one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from warplens.arrays import BoolArray, Float64Array, Int64Array
from warplens.importers.jobs.operations import TrainingOperations, is_compute
from warplens.recipes.jobs import job_graph
from warplens.recipes.jobs.job_graph import StepGraph

_ROOM = 1 << 23  # durations that are run at once, 8 bytes each
SLOWEST = 0.03  # share of the workers that counts as the slowest ones


@dataclass(frozen=True)
class AlikeSteps:
    """Steps that have one graph. `rows`: operations × steps, places in the job's operations."""

    graph: StepGraph
    rows: Int64Array
    durations: Float64Array


class Replay:
    """A training job whose steps can be run again.

    `steps`: their numbers; `traced`: seconds of each as traced. Raises ReportError as `build` does.
    """

    def __init__(
        self,
        operations: TrainingOperations,
        steps: Int64Array,
        traced: Float64Array,
        *,
        shapes: list[AlikeSteps],
        durations: Float64Array,
    ) -> None:
        self.operations, self.steps, self.traced = operations, steps, traced
        self._shapes, self.durations = shapes, durations
        self.ideal = _ideal(operations, durations)

    @classmethod
    def of(cls, operations: TrainingOperations) -> Replay:
        """Return the job of recorded operations."""
        steps = np.unique(operations.step)
        traced = [
            float(operations.end[rows].max() - operations.start[rows].min())
            for rows in (operations.of_step(step) for step in steps.tolist())
        ]
        shapes, durations = _shapes(operations, steps), np.zeros(len(operations))
        for shape in shapes:
            durations[shape.rows] = shape.durations
        return cls(operations, steps, np.array(traced), shapes=shapes, durations=durations)

    def seconds(self, real: Sequence[BoolArray]) -> Float64Array:
        """Return the mean length of a step for each run, in seconds.

        `real`: for each run, the operations that keep their durations; the others take the ideal ones.
        """
        total = np.zeros(len(real))
        for shape in self._shapes:
            operations, steps = shape.rows.shape
            at_once = max(1, _ROOM // (operations * steps))
            for first in range(0, len(real), at_once):
                runs = real[first : first + at_once]
                mixed = [np.where(kept[shape.rows], shape.durations, self.ideal[shape.rows]) for kept in runs]
                lengths = shape.graph.length(np.concatenate(mixed, axis=1))
                total[first : first + at_once] += lengths.reshape(len(runs), steps).sum(axis=1)
        mean: Float64Array = total / len(self.steps)
        return mean


@dataclass(frozen=True)
class Stragglers:
    """The cost of a job's stragglers. Times are mean seconds of a step; slowdowns are ratios, 1 is none.

    `by_worker`: rank to the lower of its dp rank's and its stage's slowdown, as the paper estimates it.
    `last_stage`, `slowest_workers`: the share of the loss that is won back when all operations of the
    last stage, or of the slowest workers, are ideal; above 1 where that makes up for others, too.
    """

    traced: float
    replayed: float
    ideal: float
    by_kind: dict[str, float]
    by_stage: dict[int, float]
    by_dp_rank: dict[int, float]
    by_worker: dict[int, float]
    place_of: dict[int, tuple[int, int]]
    slowest: tuple[int, ...]
    last_stage: float | None
    slowest_workers: float | None

    @property
    def slowdown(self) -> float:
        """Length of a step over its length without stragglers."""
        return self.replayed / self.ideal if self.ideal else 1.0


def stragglers(operations: TrainingOperations) -> Stragglers:
    """Run the job again without its stragglers, and with some of them only."""
    job = Replay.of(operations)
    parts = np.array([job_graph.part_of(kind) for kind in operations.kinds])
    names = sorted(set(parts.tolist()))
    part_codes = np.array([names.index(part) for part in parts.tolist()])[operations.kind]
    stages, dp_ranks = np.unique(operations.stage).tolist(), np.unique(operations.dp_rank).tolist()
    everything = np.ones(len(operations), bool)
    last = operations.stage == stages[-1]
    length = job.seconds(
        [
            everything,
            ~everything,
            ~last,
            *(part_codes == code for code in range(len(names))),
            *(operations.stage == stage for stage in stages),
            *(operations.dp_rank == dp_rank for dp_rank in dp_ranks),
        ]
    )
    replayed, ideal, without_last, *others = length.tolist()
    ratios = iter([one / ideal if ideal else 1.0 for one in others])
    by_kind = {name: next(ratios) for name in names}
    by_stage = {stage: next(ratios) for stage in stages}
    by_dp_rank = {dp_rank: next(ratios) for dp_rank in dp_ranks}
    _, first = np.unique(operations.rank, return_index=True)
    place_of = {
        int(operations.rank[row]): (int(operations.dp_rank[row]), int(operations.stage[row]))
        for row in first.tolist()
    }
    by_worker = {
        rank: min(by_dp_rank[dp_rank], by_stage[stage]) for rank, (dp_rank, stage) in place_of.items()
    }
    count = max(1, round(SLOWEST * len(by_worker)))
    slowest = tuple(
        sorted(by_worker, key=lambda rank: (-by_worker[rank], -by_stage[place_of[rank][1]], rank))[:count]
    )
    (without_slowest,) = job.seconds([~np.isin(operations.rank, slowest)]).tolist()
    lost = replayed - ideal
    share: Callable[[float], float | None] = lambda rest: (replayed - rest) / lost if lost > 0 else None  # noqa: E731
    return Stragglers(
        float(job.traced.mean()),
        replayed,
        ideal,
        by_kind=by_kind,
        by_stage=by_stage,
        by_dp_rank=by_dp_rank,
        by_worker=by_worker,
        place_of=place_of,
        slowest=slowest,
        last_stage=share(without_last),
        slowest_workers=share(without_slowest),
    )


def _shapes(operations: TrainingOperations, steps: Int64Array) -> list[AlikeSteps]:
    """Put steps of the same graph together: most jobs have one."""
    alike: dict[tuple[job_graph.Key, ...], list[slice]] = {}
    for step in steps.tolist():
        place = operations.of_step(step)
        alike.setdefault(tuple(job_graph.keys(operations, place)), []).append(place)
    shapes = []
    for known, places in alike.items():
        graph = job_graph.build(known)
        rows = np.stack([np.arange(place.start, place.stop) for place in places], axis=1)
        shapes.append(AlikeSteps(graph, rows, graph.transfers(operations.start[rows], operations.end[rows])))
    return shapes


def _ideal(operations: TrainingOperations, durations: Float64Array) -> Float64Array:
    """Return what each operation takes without a straggler."""
    of_kind = np.zeros(len(operations.kinds))
    for code, kind in enumerate(operations.kinds):
        own = durations[operations.kind == code]
        of_kind[code] = (np.mean if is_compute(kind) else np.median)(own)
    ideal: Float64Array = of_kind[operations.kind]
    return ideal
