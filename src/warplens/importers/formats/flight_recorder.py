"""Dumps of PyTorch's Flight Recorder: the last collectives of each rank, as it writes them when a job hangs.

## Made by
`TORCH_FR_BUFFER_SIZE=2000` (before 2.9 `TORCH_NCCL_TRACE_BUFFER_SIZE`) and a timeout of NCCL (`TORCH_NCCL_DUMP_ON_TIMEOUT=1`): a file
for each rank, `nccl_trace_rank_0`, …; or `torch._C._distributed_c10d._dump_fr_trace()`, whose bytes the program writes into a file. The
number at the end of the name is the rank. A folder of such files, one for each rank, becomes one report.

## What maps to what
| there | here |
|---|---|
| an entry | `collectives`, with its process group, sequence number, sizes and type; an `nvtx_ranges` row of a thread for the group |
| `state` | unfinished ranges, where the backend notes what is completed |
| `pg_config` | the size of a group and its ranks |

`stats -r collective_missing` names the ranks that others wait for. The file is a pickle. The importer reads numbers, texts, lists and
dicts from it, and refuses a file with anything else. Backends that do not note completion, such as gloo, have ranges up to the next entry
of their group.

## What is dropped
Stacks of entries, timeouts, numbers of points of synchronisation.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from warplens.errors import ReportError
from warplens.importers.rows import whole_window
from warplens.importers.torch.collectives import RecordedCollectives, rank_in
from warplens.importers.torch.pickled import begins_with_keys, load
from warplens.storage.writer import THREADS_PER_PROCESS, Facts

if TYPE_CHECKING:
    from warplens.importers.base import Progress
    from warplens.storage.writer import PartWriter

SUFFIXES = (".fr",)
CONTENT = "dump of PyTorch's Flight Recorder"
DROPS: tuple[str, ...] = ("stacks of entries", "timeouts")
_HOST = "flight recorder"


def recognises(path: Path) -> bool:
    """Say whether the file, or each file of the folder, is a pickle that begins with groups or their entries."""
    if path.is_dir():
        files = parts(path)
        return bool(files) and all(recognises(file) for file in files)
    return begins_with_keys(path, b"pg_config", b"nccl_comm_state", b"pg_status")


def parts(source: Path) -> list[Path]:
    """Return the dumps in a folder, those of lower ranks first."""
    files = [file for file in source.iterdir() if file.is_file() and not file.name.startswith(".")]
    return sorted(files, key=lambda file: (rank_in(file.name), file.name))


def read(source: Path, part: PartWriter, progress: Progress) -> Facts:
    """Write the tables of `source` to the part.

    Raises ReportError for a file that is broken or has no entries.

    Args:
        source: the file.
        part: what is written to.
        progress: hears how far it is.
    """
    dump = load(source)
    progress("read", 0.3)
    try:
        recorded = RecordedCollectives.of(dump)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, IndexError) as error:
        raise ReportError(f"{source} is broken: {type(error).__name__}: {error}.") from error
    if not recorded.rows:
        raise ReportError(f"{source} has no entries: TORCH_FR_BUFFER_SIZE sets how many are kept.")
    recorded.write(part)
    _write_places(part, source, recorded.groups, end=recorded.end)
    progress("write", 1.0)
    return Facts(
        id=part.id,
        host=_HOST,
        boot_id=part.id,  # its clock is nobody else's but by `realtime_offset`
        end=recorded.end,
        realtime_offset=recorded.first,
        clock="flight recorder",
        sources={"collectives": {"on": True, "by": CONTENT}},
    )


def _write_places(part: PartWriter, source: Path, groups: list[str], end: int) -> None:
    process, rank = part.key(0), rank_in(source.name)
    texts: dict[str, Any] = {"host": _HOST, "executable": "", "command": "", "name": source.name}
    row = {"process": process, "pid": max(rank, 0), "parent_pid": 0, **texts, "start": 0, "end": end}
    own = None if rank < 0 else rank
    part.write("processes", [{**row, "rank": own, "primary": True, "exited": True, "recorded": True}])
    part.write(
        "threads",
        [
            {
                "thread": process * THREADS_PER_PROCESS + number,
                "process": process,
                "tid": number,
                "name": f"group {name}",
                "start": 0,
            }
            for number, name in enumerate(groups)
        ],
    )
    part.write("capture_windows", whole_window(part.part, _HOST, begin=0, end=end))
