"""Training steps: the stretches of host time that a program itself, or its profiler, called its steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens import native
from warplens.analysis.once import once
from warplens.analysis.steps.unnamed import unnamed_steps
from warplens.errors import MissingData

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

# What PyTorch's profiler calls its steps: one of them is enough.
_PROFILER = re.compile(r"ProfilerStep#\d+")
# What people call theirs, with a number or without.
_PEOPLE = re.compile(
    r"(?:\[pl\]\[profile\])?(?:run[ _-]?)?(?:(?:train|training|global|optimization|decode|engine|model)[ _.:-]?)?"
    r"(?:step|iteration|iter|minibatch|batch)(?:[ _#:/=.-]*\d+)?",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[ _#:/=.-]*\d+$")
_COLUMNS = ("process", "thread", "index", "name", "start", "end", "range")


def steps(report: Report, selection: Selection, name: str | None = None) -> pa.Table:
    """Return the training steps that overlap the selection, in order of process and start.

    They keep their whole length.

    They are ranges of one name, a number behind it aside, of one thread in each process; of those inside one another the outermost.
    The name is `ProfilerStep#N` if there is one, else what occurs at least twice in the process and is a word for steps (`step`,
    `train_step`, `iteration`, `batch`, …, any domain): of several the one with the greatest total. With `name`: ranges called so, or so
    with a number. A process that names none has those that PyTorch's data loader and optimizer bound.

    Columns: process, thread, index (from 0 in each process, whatever is selected), name (as in the range), start, end (ns, host), range
    (id in `nvtx_ranges`). MissingData if there are none.
    """
    rows = _all(report, name)
    window = selection.window(report)
    if window is not None:
        begin, end = window
        start, last = rows.column("start"), rows.column("end")
        rows = rows.filter(
            pc.and_(pc.less(start, end), pc.or_(pc.greater(last, begin), pc.greater_equal(start, begin)))
        )
    if not rows.num_rows:
        called = (
            f"called {name!r}"
            if name
            else "called ProfilerStep#N, step, train_step, iteration, batch or the like"
        )
        hint = "" if name else "; `:step=NAME` says which of its ranges are steps"
        raise MissingData(
            f"does not contain training steps{selection.place(report)}: no NVTX range is {called}{hint}."
        )
    return rows


@once
def _all(report: Report, name: str | None) -> pa.Table:
    """Return the steps of the whole report. Many rules ask for them: they are looked for once."""
    wanted = _names(report, name)
    named = (_of_process(report, process, names) for process, names in wanted.items())
    parts = [part for part in named if part is not None and part.num_rows]
    if name is None:
        parts += [_indexed(rows) for rows in unnamed_steps(report, wanted)]
    parts.sort(key=lambda part: int(part.column("process")[0].as_py()))
    return pa.concat_tables(parts or [_nothing()])


def base_name(message: str) -> str:
    """Return a step's name without the number behind it."""
    return _NUMBER.sub("", message) or message


def _names(report: Report, name: str | None) -> dict[int, list[str]]:
    """For each process the messages of its steps."""
    # There may be a million names: most go before they become Python's.
    alike = (
        "starts_with(message, $name)"
        if name
        else "regexp_full_match(message, $profiler) OR regexp_full_match(message, $people, 'i')"
    )
    rows = report.sql(
        f"""SELECT * FROM (SELECT process, message::VARCHAR AS message, count(*) AS number, sum("end" - "start")::BIGINT AS total
              FROM nvtx_ranges WHERE message IS NOT NULL GROUP BY ALL) WHERE {alike} ORDER BY ALL""",
        {"name": name} if name else {"profiler": _PROFILER.pattern, "people": _PEOPLE.pattern},
    )
    messages = rows.column("message").combine_chunks()
    texts = pc.unique(pc.cast(messages, pa.string())).to_pylist()
    known = {text: group for text in texts if (group := _group(text, name)) is not None}
    rows = rows.filter(pc.is_in(pc.cast(messages, pa.string()), value_set=pa.array(list(known), pa.string())))
    sums: dict[int, dict[str, list[int]]] = {}
    members: dict[tuple[int, str], list[str]] = {}
    for row in rows.to_pylist():
        group = known[row["message"]]
        figures = sums.setdefault(row["process"], {}).setdefault(group, [0, 0])
        figures[0] += row["number"]
        figures[1] += row["total"]
        members.setdefault((row["process"], group), []).append(row["message"])
    names = {}
    for process, groups in sums.items():
        enough = {
            group: total
            for group, (number, total) in groups.items()
            if number > 1 or name or group == _BY_PROFILER
        }
        if enough:
            best = (
                _BY_PROFILER
                if _BY_PROFILER in enough
                else max(enough, key=lambda group: (enough[group], group))
            )
            names[process] = members[process, best]
    return names


_BY_PROFILER = "ProfilerStep"


def _group(message: str, name: str | None) -> str | None:
    """Return what a range's steps are called together; None if it is no step."""
    if name is not None:
        return name if message == name or base_name(message) == name else None
    if _PROFILER.fullmatch(message):
        return _BY_PROFILER
    return base_name(message).lower() if _PEOPLE.fullmatch(message) else None


def _of_process(report: Report, process: int, names: list[str]) -> pa.Table | None:
    """Return the steps of one process: on the thread that has most of them by time, the outermost ones."""
    wanted = {"process": process, "names": names}
    where = "FROM nvtx_ranges WHERE process = $process AND message IN (SELECT unnest($names))"
    busiest = report.sql(
        f'SELECT thread {where} GROUP BY thread ORDER BY sum("end" - "start") DESC, thread LIMIT 1', wanted
    )
    if not busiest.num_rows:
        return None
    wanted["thread"] = busiest.column(0)[0].as_py()
    columns = 'process, thread, message::VARCHAR AS name, "start", "end", id AS range'
    # As nest() wants them: the longer first.
    rows = report.sql(
        f'SELECT {columns} {where} AND thread = $thread ORDER BY "start", "end" DESC, id', wanted
    )
    thread, start, end = (
        np.asarray(rows.column(column).to_numpy(), np.int64) for column in ("thread", "start", "end")
    )
    depth, _ = native.nest(thread, start, end)
    return _indexed(rows.filter(pa.array(depth == 0)) if depth.any() else rows)


def _indexed(kept: pa.Table) -> pa.Table:
    """Return the columns of steps, with their numbers in the process."""
    index = pa.array(np.arange(kept.num_rows, dtype=np.int64))
    return kept.append_column("index", index).select(list(_COLUMNS)).cast(_nothing().schema)


def _nothing() -> pa.Table:
    kinds = {name: pa.string() if name == "name" else pa.int64() for name in _COLUMNS}
    return pa.schema(list(kinds.items())).empty_table()
