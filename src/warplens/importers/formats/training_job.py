"""Operations of a pipeline-parallel training job, from all its ranks.

## Made by
ByteDance's tracer of Megatron jobs, as published with "Understanding Stragglers in Large Model
Training Using What-if Analysis" (OSDI 2025): one Parquet file with the columns `dp_rank`, `stage`,
`rank`, `step`, `optype`, `start_ts`, `duration` (seconds), `seq_id`, `mc`.

## What maps to what
| there | here |
|---|---|
| a rank | a process with that rank; its command names its stage and dp rank |
| an operation | `nvtx_ranges`: one of the domain `job`, of the thread `compute`, `pipeline` (sends and receives) or `collectives` |
| `seq_id` | the payload of the range |
| a step | a range `step` around the operations of each rank, of the thread `compute`, with the step's number as payload |

Times in the file restart with each step. In the report, one step follows the other.

## What is dropped
Microbatches and model chunks (`mb_id`, `mc`, `gmc`), and the time between steps, which the file
does not have.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from warplens import native
from warplens.arrays import Int64Array
from warplens.importers.jobs import operations
from warplens.importers.jobs.operations import TrainingOperations
from warplens.importers.rows import numbered, whole_window
from warplens.storage.writer import THREADS_PER_PROCESS, Facts

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import PartWriter

SUFFIXES = (".parquet",)
CONTENT = "operations of a training job"
DROPS: tuple[str, ...] = ("microbatches", "model chunks", "time between steps")
_HOST, _DOMAIN = "training job", "job"
_THREADS = ("compute", "pipeline", "collectives")
_GAP_NS = 1_000_000  # between two steps


def recognises(path: Path) -> bool:
    """Say whether this is a Parquet file with the columns of operations."""
    return operations.is_operations(path)


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part. Raises ReportError for a file that is broken.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    job = operations.read(source)
    progress("read", 0.3)
    start, end = _placed(job)
    ranks = np.unique(job.rank)
    keys = {int(rank): part.key(number) for number, rank in enumerate(ranks.tolist())}
    _write_ranges(job, part, start, end=end, keys=keys)
    progress("write", 0.8)
    finish = int(end.max())
    rows = [np.flatnonzero(job.rank == rank)[0] for rank in ranks.tolist()]
    part.write(
        "processes",
        [
            {
                "process": keys[int(job.rank[row])],
                "pid": number + 1,
                "parent_pid": 0,
                "host": _HOST,
                "rank": int(job.rank[row]),
                "executable": "rank",
                "command": f"stage {job.stage[row]}, dp rank {job.dp_rank[row]}",
                "start": 0,
                "end": finish,
                "primary": number == 0,
                "exited": True,
                "recorded": True,
            }
            for number, row in enumerate(rows)
        ],
    )
    part.write(
        "threads",
        [
            {
                "thread": key * THREADS_PER_PROCESS + place,
                "process": key,
                "tid": number * len(_THREADS) + place + 1,
                "name": name,
                "start": 0,
            }
            for number, key in enumerate(keys.values())
            for place, name in enumerate(_THREADS)
        ],
    )
    part.write("capture_windows", whole_window(part.part, _HOST, begin=0, end=finish))
    text = "the time between steps is not in the file: steps follow one another"
    part.write(
        "diagnostics",
        [{"severity": "info", "code": "not-imported", "source": "import", "message": text}],
    )
    progress("write", 1.0)
    return Facts(
        id=part.id,
        host=_HOST,
        boot_id=part.id,
        command=[source.name],
        end=finish,
        clock="job",
        sources={"nvtx": {"on": True, "by": CONTENT}},
    )


def _placed(job: TrainingOperations) -> tuple[Int64Array, Int64Array]:
    """Return begin and end of each operation in ns, one step behind the other."""
    start, end = (np.round(times * 1e9).astype(np.int64) for times in (job.start, job.end))
    behind = 0
    for step in np.unique(job.step).tolist():
        rows = job.of_step(step)
        shift = behind - int(start[rows].min())
        start[rows] += shift
        end[rows] += shift
        behind = int(end[rows].max()) + _GAP_NS
    return start, end


def _write_ranges(
    job: TrainingOperations, part: PartWriter, start: Int64Array, *, end: Int64Array, keys: dict[int, int]
) -> None:
    threads = np.array([_thread(kind) for kind in job.kinds])[job.kind]
    for rank, key in keys.items():
        own = np.flatnonzero(job.rank == rank)
        steps, first = np.unique(job.step[own], return_index=True)
        bounds = np.append(first, len(own))
        around = [own[begin:behind] for begin, behind in pairwise(bounds.tolist())]
        begins = np.append(start[own], [start[rows].min() for rows in around])
        ends = np.append(end[own], [end[rows].max() for rows in around])
        thread = np.append(threads[own], np.zeros(len(steps), np.int64))
        names = np.append(job.kind[own], np.full(len(steps), len(job.kinds)))
        payload = np.append(job.sequence[own], steps)
        order = np.lexsort((-ends, begins))
        part.write(
            "nvtx_ranges",
            _columns(
                order,
                begins,
                ends,
                thread=thread,
                names=names,
                payload=payload,
                key=key,
                texts=[*job.kinds, "step"],
            ),
        )


def _columns(
    order: Int64Array,
    start: Int64Array,
    end: Int64Array,
    *,
    thread: Int64Array,
    names: Int64Array,
    payload: Int64Array,
    key: int,
    texts: list[str],
) -> dict[str, Any]:
    """Return the columns of `nvtx_ranges` for one rank. Sends and receives overlap: they are start/end ranges."""
    start, end, thread = start[order], end[order], thread[order]
    ids = numbered(np.full(len(order), key, np.int64))
    loose = thread == _THREADS.index("pipeline")
    depth, parent = np.zeros(len(order), np.int32), np.full(len(order), -1, np.int64)
    pushed, free = np.flatnonzero(~loose), np.flatnonzero(loose)
    depth[pushed], above = native.nest(thread[pushed], start[pushed], end[pushed])
    parent[pushed] = np.where(above < 0, -1, ids[pushed][above])
    depth[free] = native.lanes(start[free], end[free])
    never = np.zeros(len(order), bool)
    return {
        "id": ids,
        "process": np.full(len(order), key, np.int64),
        "thread": key * THREADS_PER_PROCESS + thread,
        "start": start,
        "end": end,
        "domain": pa.DictionaryArray.from_arrays(pa.array(np.zeros(len(order), np.int32)), [_DOMAIN]),
        "message": pa.DictionaryArray.from_arrays(pa.array(names[order].astype(np.int32)), texts),
        "payload_int": payload[order],
        "style": pa.DictionaryArray.from_arrays(
            pa.array(loose.astype(np.int32), pa.int32()), ["PushPop", "StartEnd"]
        ),
        "depth": depth,
        "parent": pa.array(parent, pa.int64(), mask=parent < 0),
        "unfinished": never,
        "inherited": never,
        "clipped": never,
    }


def _thread(kind: str) -> int:
    if kind.endswith(("-send", "-recv")):
        return _THREADS.index("pipeline")
    return _THREADS.index("compute" if operations.is_compute(kind) else "collectives")
