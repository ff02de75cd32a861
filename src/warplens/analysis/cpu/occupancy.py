"""Aggregates the CPU side into the columns of a timeline.

States, the GIL, samples, OS calls, Python calls, tasks and so on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from warplens.analysis.occupancy import Window, cells_of
from warplens.report.quoting import listed
from warplens.report.selection import overlap

if TYPE_CHECKING:
    import pyarrow as pa

    from warplens.report.report import Report

_GREY = 0x9E9E9E  # off the CPU: that does not look like work

# As `cells_of` needs them. The tables of calls hold what ran within another call as well; of OS calls that is not shown.
_COLUMNS = "NULL::BIGINT AS task, NULL::VARCHAR AS domain, false AS unfinished, 'PushPop' AS style"
# A call is an outermost one if it ends later than everything that began before it on its thread.
_OUTERMOST = """QUALIFY coalesce("end" > max("end") OVER (PARTITION BY thread ORDER BY "start", "end" DESC
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), true)"""


@dataclass(frozen=True)
class BarKind:
    """A row of bars of a thread. `name`, `color`, `depth` and `where` are SQL over its table."""

    table: str
    name: str
    where: str = "true"
    depth: str = "0"
    color: str = "NULL::BIGINT"
    outermost: bool = False


_PYTHON = "CASE kind WHEN 'lock' THEN 'waits for ' || name WHEN 'pause' THEN 'pause: ' || name ELSE name END"
_TASK = "coalesce(task || ': ', '') || CASE state WHEN 'running' THEN coalesce(doing, '?') ELSE '(' || coalesce(doing, '?') || ')' END"
BARS = {
    "osrt": BarKind("osrt", "name", outermost=True),
    "gc": BarKind("gc", "'gen ' || generation", color=str(0xE38686)),
    "python": BarKind(
        "python_calls",
        _PYTHON,
        "kind IN ('function', 'task', 'lock', 'pause')",
        depth="depth",
        color="color::BIGINT",
    ),
    "tasks": BarKind(
        "task_samples", _TASK, depth="depth", color=f"CASE WHEN state <> 'running' THEN {_GREY} END::BIGINT"
    ),
    "imports": BarKind("imports", "name", depth="depth"),
}
# Name, table, what counts for how busy a thread is, and the columns that say which share of its time a row of a band stands for.
_BANDS = {
    "states": (
        "thread_states",
        "(state = 'running')::INTEGER AS solid, (state = 'runnable')::INTEGER AS shade, (state = 'blocked')::INTEGER AS dot",
    ),
    "gil": (
        "gil",
        """CASE state WHEN 'hold' THEN 1.0 WHEN 'brief' THEN held / greatest("end" - "start", 1) ELSE 0.0 END AS solid,
           CASE state WHEN 'wait' THEN 1.0 WHEN 'brief' THEN waited / greatest("end" - "start", 1) ELSE 0.0 END AS shade, 0 AS dot""",
    ),
}
_SAMPLES = "samples"
# Where both are there, those by the clock: they also see what threads wait for.
KINDS_OF_SAMPLES = ("python", "native")


@dataclass(frozen=True)
class ThreadActivity:
    """The rows of a thread in the window: levels of each (by its name), and busy time (ns)."""

    lanes: dict[str, int]
    busy: int


def cpu_threads(report: Report, window: Window) -> dict[tuple[int, int], ThreadActivity]:
    """Return the threads that anything of the CPU side is known of, by process and thread.

    Busy is the time on a CPU by the scheduler, else by samples, else the time in OS calls, collections and calls of Python.
    """
    inside = overlap(*window)
    counts = report.tables
    length = f'(least("end", {window[1]}) - greatest("start", {window[0]}))'
    selects = []
    for name, kind in BARS.items():
        if counts[kind.table]:
            lanes = f"max(CASE WHEN {kind.where} THEN {kind.depth} + 1 ELSE 0 END)"
            selects.append(_known(name, kind.table, inside, lanes=lanes, time=length, rank=2))
    for name, (table, _) in _BANDS.items():
        if counts[table]:
            time = f"CASE WHEN state = 'running' THEN {length} ELSE 0 END" if name == "states" else "0"
            selects.append(_known(name, table, inside, lanes="1", time=time, rank=0))
    if counts[_SAMPLES]:
        for kind_of in KINDS_OF_SAMPLES:
            where = f"{inside} AND kind = '{kind_of}'"
            selects.append(
                _known(
                    f"{_SAMPLES} {kind_of}",
                    _SAMPLES,
                    where,
                    lanes="1",
                    time="CASE WHEN on_cpu THEN weight ELSE 0 END",
                    rank=1,
                )
            )
    if not selects:
        return {}
    rows_of_thread: dict[tuple[int, int], dict[str, tuple[int, int, int]]] = {}
    for row in report.sql(" UNION ALL ".join(selects) + " ORDER BY ALL").to_pylist():
        rows_of_thread.setdefault((row["process"], row["thread"]), {})[row["name"]] = (
            row["lanes"],
            row["busy"],
            row["rank"],
        )
    return {key: _seen(rows) for key, rows in rows_of_thread.items()}


def bar_cells(
    report: Report, window: Window, columns: int, name: str, threads: Sequence[int], depth: int
) -> pa.Table:
    """Return a row per column of each thread's bars called `name`, as `occupancy.cells` does.

    `name` is one of BARS; `depth` levels of them.
    """
    kind = BARS[name]
    values = f"{kind.depth} AS depth, {kind.name} AS message, {kind.color} AS color, {_COLUMNS}"
    source = f"""(SELECT id, process, thread, "start", "end", {values} FROM {kind.table}
                  WHERE {overlap(*window)} AND {kind.where} AND thread IN ({listed(threads)}) {_OUTERMOST if kind.outermost else ""})"""
    return cells_of(report, source, window, columns=columns, only="", depth=depth)


def sample_cells(report: Report, window: Window, columns: int, kind: str, threads: Sequence[int]) -> pa.Table:
    """Return a row per column of each thread's samples of a kind, as `occupancy.cells` does.

    Each is named after its innermost function, in round brackets and grey where the thread was off the CPU.
    """
    name = "coalesce(f.function, '?')"
    values = f"""0 AS depth, CASE WHEN s.on_cpu THEN {name} ELSE '(' || {name} || ')' END AS message,
                 CASE WHEN NOT s.on_cpu THEN {_GREY} END::BIGINT AS color, {_COLUMNS}"""
    source = f"""(SELECT s.id, s.process, s.thread, s."start", greatest(s."end", s."start" + s.weight) AS "end", {values}
                  FROM samples s LEFT JOIN frames f ON f.frame = s.stack
                  WHERE {overlap(*window, "s.")} AND s.kind = '{kind}' AND s.thread IN ({listed(threads)}))"""
    return cells_of(report, source, window, columns=columns, only="")


def event_cells(report: Report, window: Window, columns: int, threads: Sequence[int]) -> pa.Table:
    """Return a row per column with exceptions or warnings of the threads.

    Columns: thread, col, number, message (the type of the first).
    """
    begin, end = window
    return report.sql(
        f"""SELECT thread, (("start" - {begin}) * {columns}) // {end - begin} AS col, count(*) AS number,
                   first(name ORDER BY "start") AS message FROM python_calls
            WHERE "start" >= {begin} AND "start" < {end} AND kind IN ('exception', 'warning') AND thread IN ({listed(threads)})
            GROUP BY ALL ORDER BY ALL"""
    )


def band_cells(report: Report, window: Window, columns: int, name: str, threads: Sequence[int]) -> pa.Table:
    """Return the shares of a band by process, thread and col.

    `solid`, `shade` and `dot`, 0 to 1, of `states` or `gil`.

    Of states these are running, runnable and blocked; of the GIL holding it and waiting for it.
    """
    table, shares = _BANDS[name]
    begin, end = window
    length = end - begin
    return report.sql(
        f"""WITH shown AS (
              SELECT process, thread, greatest("start", {begin}) - {begin} AS first,
                     greatest(least("end", {end}), greatest("start", {begin})) - {begin} AS last, {shares}
              FROM {table} WHERE {overlap(begin, end)} AND thread IN ({listed(threads)})
            ),
            spread AS (
              SELECT *, unnest(range(first * {columns} // {length}, greatest(last - 1, first) * {columns} // {length} + 1)) AS col
              FROM shown
            ),
            pieces AS (
              SELECT *, greatest(least(last * {columns}, (col + 1) * {length}) - greatest(first * {columns}, col * {length}), 0)
                        / {length}.0 AS time FROM spread
            )
            SELECT process, thread, col::INTEGER AS col, least(sum(time * solid), 1.0)::DOUBLE AS solid,
                   least(sum(time * shade), 1.0)::DOUBLE AS shade, least(sum(time * dot), 1.0)::DOUBLE AS dot
            FROM pieces GROUP BY ALL ORDER BY ALL"""
    )


def _known(name: str, table: str, where: str, lanes: str, time: str, rank: int) -> str:
    values = f"({lanes})::BIGINT AS lanes, coalesce(sum({time}), 0)::BIGINT AS busy, {rank} AS rank"
    return f"SELECT process, thread, '{name}' AS name, {values} FROM {table} WHERE {where} GROUP BY ALL"


def _seen(rows: dict[str, tuple[int, int, int]]) -> ThreadActivity:
    best = min((rank for _, busy, rank in rows.values() if busy), default=0)
    busiest = max((busy for _, busy, rank in rows.values() if rank == best), default=0)
    return ThreadActivity({name: lanes for name, (lanes, _, _) in rows.items()}, busiest)
