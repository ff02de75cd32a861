"""Divides the wall time of a program without Python: functions, waiting, waiting for a CPU.

The main thread of the process that used most CPU time is divided. The scheduler says when it ran, waited for a CPU, or was
blocked; native samples divide the time in which it ran.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import warplens.report.arrow_compute as pc
from warplens.analysis.cpu.frames import FrameTable
from warplens.analysis.cpu.pieces import MOSTLY, Piece
from warplens.analysis.cpu.thread_time import of_kind, read_samples

if TYPE_CHECKING:
    from collections.abc import Iterator

    from warplens.report.report import Report

_LEAST = 16  # samples below which shares of functions say nothing
_ALL = 1 << 62


def native_time(report: Report, low: int = 0, high: int = _ALL) -> tuple[int, int, list[Piece]] | None:
    """Return pid, wall time (ns) and its pieces, of the processes with keys from `low` to `high`.

    None if the process that used most CPU time has no states of its main thread or too few samples, and where others
    together used more than it: then no thread stands for the run.
    """
    processes = report.table(
        "processes", ["process", "pid", "start", "end", "name", "user_time", "system_time"]
    )
    rows = [
        row
        for row in processes.to_pylist()
        if low <= row["process"] <= high and row["user_time"] is not None and row["end"] is not None
    ]
    used = {row["process"]: row["user_time"] + row["system_time"] for row in rows}
    if not rows or not report.tables["thread_states"] or report.tables["samples"] < _LEAST:
        return None
    main = max(rows, key=lambda row: used[row["process"]])
    if used[main["process"]] < MOSTLY * sum(used.values()):
        return None
    key = main["process"]
    threads = report.sql(f"SELECT thread FROM threads WHERE process = {key} AND tid = {main['pid']}")
    if not threads.num_rows:
        return None
    thread = threads["thread"][0].as_py()
    spent, begin = _states(report, thread)
    samples = of_kind(read_samples(report, key, key), "native")
    samples = samples.filter(pc.and_(pc.equal(samples["thread"], thread), samples["on_cpu"]))
    if samples.num_rows < _LEAST:
        return None
    pieces = [
        Piece(max(begin - main["start"], 0), "startup", "before sampling began"),
        *_functions(report, samples["stack"], main["name"] or "", ran=spent.get("running", 0)),
        Piece(spent.get("runnable", 0), "cpu", "waits for a CPU"),
        Piece(spent.get("blocked", 0), "waiting", "waits: sleep, file, lock, another thread or process"),
    ]
    return main["pid"], main["end"] - main["start"], pieces


def _states(report: Report, thread: int) -> tuple[dict[str, int], int]:
    """Return the time of a thread in each state, ns, and when the first of them began."""
    rows = report.sql(
        'SELECT state::VARCHAR AS state, sum("end" - "start")::BIGINT AS ns, min("start") AS first FROM thread_states '
        f"WHERE thread = {thread} GROUP BY ALL"
    ).to_pylist()
    return {row["state"]: row["ns"] for row in rows}, min((row["first"] for row in rows), default=0)


def _functions(report: Report, stacks: pc.ChunkedArray, program: str, ran: int) -> Iterator[Piece]:
    """Yield the time in which the thread ran, by the innermost function of the program itself.

    What it called of a library is the place of its piece. Stacks without any function of the program count for the library.
    """
    frames = FrameTable.of(report)
    counts: Counter[tuple[str, str]] = Counter()
    inside: dict[tuple[str, str], Counter[str]] = {}
    for position, count in Counter(frames.positions(stacks).tolist()).items():
        path = [frame for frame in reversed(frames.path(position)) if frame.kind == "native"]
        if not path:
            continue
        own = next((frame for frame in path if frame.module == program), path[0])
        key = own.function, own.module or ""
        counts[key] += count
        inside.setdefault(key, Counter())[path[0].module or ""] += count
    whole = counts.total()
    for (function, module), count in counts.most_common():
        where, most = inside[function, module].most_common(1)[0]
        called = where if where != module and most >= MOSTLY * count else ""
        place = f"in {called}" if called else "" if module == program else f"in {module}"
        yield Piece(
            round(ran * count / whole), "function" if module == program else "package", function, place=place
        )
