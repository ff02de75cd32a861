"""The durations of a report as arrays, one kind after the other.

By name, with the step that they belong to.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

import warplens.report.arrow_compute as pc
from warplens.analysis.dictionaries import codes
from warplens.analysis.distinct import distinct
from warplens.analysis.gpu.api_calls import ApiCalls
from warplens.analysis.gpu.ops import MIGRATIONS
from warplens.analysis.steps.leading import leading
from warplens.arrays import Int32Array, Int64Array
from warplens.report.row_groups import RowGroup, RowGroupReader, each, row_groups, stream

if TYPE_CHECKING:
    from warplens.report.report import Report
    from warplens.report.selection import Selection

LONGEST = 2000  # launches of a step whose order is kept
_COUNTERS = re.compile(r", (seq|op_id) = [0-9]+")
_NUMBER = re.compile(r"[ _#:=-]*[0-9]+\Z")
_ANY_NUMBER = re.compile(r"[0-9]+")
_GPU = {
    "kernels": ("kernel", "demangled"),
    "memcpys": ("memory", "kind"),
    "memsets": ("memory", ""),
    "um_events": ("memory", "kind"),
    "graphs": ("graph", "graph"),
}
_OPERATIONS: dict[str, Callable[..., str]] = {
    "kernels": str,
    "memcpys": "[CUDA memcpy {}]".format,
    "memsets": lambda: "[CUDA memset]",
    "um_events": lambda kind: f"[CUDA memcpy Unified {MIGRATIONS.get(kind, kind)}]",
    "graphs": lambda graph: f"[CUDA graph {graph}]" if graph else "[CUDA graph]",
}
_WAITS = ["wait for events", "sleep", "lock", "process"]  # groups of OS calls
_HOST = {
    "nvtx_ranges": ("range", ("domain", "message")),
    "cuda_api": ("api", ("name",)),
    "osrt": ("os", ("name",)),
}


@dataclass
class ComparableRows:
    """All of a kind, in no order: `names` by code; `length` in ns.

    `step`: number of the step it was requested in, -1 for none.

    `launched`: of kernels, the codes of the first LONGEST that were requested in the step that was named, in that order.
    """

    kind: str
    names: list[str]
    code: Int32Array
    length: Int64Array
    step: Int32Array
    launched: Int32Array


class Steps:
    """Steps by process: which of them a time lies in. They do not overlap within a process."""

    def __init__(self, count: int, by_process: dict[int, tuple[Int64Array, Int64Array, Int32Array]]) -> None:
        """`by_process`: start, end and number of each step, in order of start."""
        self.count, self._by_process = count, by_process

    @classmethod
    def of(cls, table: pa.Table | None) -> Steps:
        """Return the steps of a table, which may be missing."""
        if table is None:
            return cls(0, {})
        process, start, end = (
            np.asarray(table.column(name).to_numpy(), np.int64) for name in ("process", "start", "end")
        )
        by_process = {}
        for key in np.unique(process).tolist():
            own = np.flatnonzero(process == key)
            own = own[np.argsort(start[own], kind="stable")]
            by_process[key] = start[own], end[own], own.astype(np.int32)
        return cls(table.num_rows, by_process)

    def at(self, process: Int64Array, time: Int64Array) -> Int32Array:
        """Return the step of each time in its process; -1 for none."""
        step = np.full(len(time), -1, np.int32)
        if not self.count or not len(time):
            return step
        single = bool((process == process[0]).all())
        for key in [int(process[0])] if single else np.unique(process).tolist():
            if key in self._by_process:
                start, end, number = self._by_process[key]
                mine: slice | Int64Array = slice(None) if single else np.flatnonzero(process == key)
                place = np.searchsorted(start, time[mine], "right") - 1
                step[mine] = np.where((place >= 0) & (time[mine] < end[place]), number[place], -1)
        return step


def kinds(report: Report, selection: Selection, steps: Steps, typical: int) -> Iterator[ComparableRows]:
    """Yield each kind that there is something of, one in memory at a time.

    `typical`: the step whose launches are kept; -1: of all.
    """
    for kind in ("kernel", "memory", "graph"):
        taking = Taking(kind)
        for table in (table for table, facts in _GPU.items() if facts[0] == kind and report.tables[table]):
            _gpu(report, selection, table, steps=steps, typical=typical, taking=taking)
        if taking.codes:
            yield taking.rows()
    for table, (kind, names) in _HOST.items():
        if report.tables[table]:
            taking = Taking(kind)
            _host(report, selection, table, names=names, steps=steps, taking=taking)
            if taking.codes:
                yield taking.rows()


class Taking:
    """Collects the pieces of one kind; `add` may run in several threads."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.codes: list[Int32Array] = []
        self._lengths: list[Int64Array] = []
        self._steps: list[Int32Array] = []
        self._asked: list[tuple[Int64Array, Int32Array]] = []
        self._known: dict[str, int] = {}
        self._lock = threading.Lock()

    def numbers(self, names: Sequence[str]) -> Int32Array:
        """Return the code of each name."""
        with self._lock:
            return np.array([self._known.setdefault(name, len(self._known)) for name in names], np.int32)

    def add(self, code: Int32Array, length: Int64Array, step: Int32Array) -> None:
        """Add rows."""
        with self._lock:
            self.codes.append(code)
            self._lengths.append(length)
            self._steps.append(step)

    def launch(self, asked: Int64Array, code: Int32Array) -> None:
        """Add launches whose order is to be kept."""
        self._asked.append((asked, code))
        if sum(len(own) for own, _ in self._asked) > 8 * LONGEST:
            self._asked = [self._first()]

    def _first(self) -> tuple[Int64Array, Int32Array]:
        if not self._asked:
            return np.empty(0, np.int64), np.empty(0, np.int32)
        asked, code = (np.concatenate(column) for column in zip(*self._asked, strict=True))
        order = np.argsort(asked, kind="stable")[:LONGEST]
        return asked[order], code[order]

    def rows(self) -> ComparableRows:
        """Return all, and let go of it."""
        code, length, step = (
            np.concatenate(self.codes),
            np.concatenate(self._lengths),
            np.concatenate(self._steps),
        )
        self.codes, self._lengths, self._steps = [], [], []
        return ComparableRows(
            self.kind, list(self._known), code, length=length, step=step, launched=self._first()[1]
        )


def _gpu(
    report: Report, selection: Selection, table: str, steps: Steps, typical: int, taking: Taking
) -> None:
    _, named = _GPU[table]
    calls, launched = ApiCalls(report), table != "um_events"
    columns = ["process", "start", "end", *([named] if named else []), *(["api"] if launched else [])]
    for rows in stream(report, table, columns, window=selection.window(report)):
        if table == "um_events":
            rows = rows.filter(
                pc.is_in(
                    pc.cast(rows.column("kind"), pa.string()),
                    value_set=pa.array(list(MIGRATIONS), pa.string()),
                )
            )
        if not rows.num_rows:
            continue
        process, start, end = (
            np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("process", "start", "end")
        )
        asked = _asked(calls, rows.column("api"), start) if launched else start
        if table == "graphs":
            rows = rows.set_column(
                rows.column_names.index(named), named, pc.cast(rows.column(named), pa.string())
            )
        code = _coded([rows.column(named)] if named else [], len(start), _OPERATIONS[table], taking=taking)
        step = steps.at(process, asked)
        taking.add(code, end - start, step)
        if taking.kind == "kernel":
            kept = step == typical if steps.count else slice(None)
            taking.launch(asked[kept], code[kept])


def _host(
    report: Report, selection: Selection, table: str, names: tuple[str, ...], steps: Steps, taking: Taking
) -> None:
    window = selection.window(report)
    reader, tell = RowGroupReader(table, window), {"nvtx_ranges": _range}.get(table, str)
    leaders = pa.array(leading(report, selection).values() if table == "osrt" else [], pa.int64())
    more = {"nvtx_ranges": ["unfinished"], "osrt": ["thread", "group"]}.get(table, [])

    def read_group(group: RowGroup) -> None:
        own = [column for column in more if column != "unfinished" or group.may_be_true(column)]
        rows = reader.read(group, ["process", "start", "end", *names, *own])
        if "unfinished" in own:
            rows = rows.filter(pc.invert(rows.column("unfinished")))
        if "group" in own:
            rows = rows.filter(pc.or_(pc.is_in(rows.column("thread"), value_set=leaders), _works(rows)))
        if rows.num_rows:
            process, start, end = (
                np.asarray(rows.column(name).to_numpy(), np.int64) for name in ("process", "start", "end")
            )
            code = _coded([rows.column(name) for name in names], len(start), tell, taking=taking)
            taking.add(code, end - start, steps.at(process, start))

    groups = row_groups(report, table, window)
    if groups:
        each(groups, read_group)


def _works(rows: pa.Table) -> pa.ChunkedArray:
    """Return which OS calls count.

    Threads of a pool wait for work, which says nothing of the run.
    """
    waits = pc.is_in(pc.cast(rows.column("group"), pa.string()), value_set=pa.array(_WAITS))
    accepts = pc.is_in(pc.cast(rows.column("name"), pa.string()), value_set=pa.array(["accept", "accept4"]))
    return pc.invert(pc.or_(waits, accepts))


def _asked(calls: ApiCalls, api: pa.ChunkedArray, start: Int64Array) -> Int64Array:
    """Return the launch times of GPU work: the begin of each call, if known."""
    ids = np.asarray(pc.fill_null(api, -1).to_numpy(), np.int64)
    # `calls.find` takes sorted ids; `asked[order]` below puts the answers back in the order of the rows.
    order = (
        np.argsort(ids, kind="stable")
        if len(ids) > 1 and bool((ids[1:] < ids[:-1]).any())
        else np.arange(len(ids))
    )
    call_rows = calls.find(ids[order])
    asked = start.copy()
    asked[order] = np.where(call_rows.known, call_rows.start, start[order])
    return asked


def _coded(
    columns: Sequence[pa.ChunkedArray], count: int, name: Callable[..., str], taking: Taking
) -> Int32Array:
    """Return the code of each row: `name` is called once for each combination of texts that occurs."""
    if not columns:
        return np.repeat(taking.numbers([name()]), count)
    known: list[list[str]] = []
    code = np.zeros(count, np.int64)
    for column in columns:
        own, texts = codes(column.combine_chunks())
        known.append(["", *(text or "" for text in texts.to_pylist())])
        code = code * len(known[-1]) + own + 1
    width = int(np.prod([len(texts) for texts in known]))
    used, which = distinct(code, width)
    parts = np.unravel_index(used, [len(texts) for texts in known])
    names = [
        name(*(texts[at] for texts, at in zip(known, where, strict=True)))
        for where in zip(*(part.tolist() for part in parts), strict=True)
    ]
    return taking.numbers(names)[which]


def _range(domain: str, message: str) -> str:
    """Return domain and message.

    Names that count, as PyTorch and people's loops make them, would never meet their like.
    """
    return f"{domain}:{unnumbered(message)}"


def unnumbered(name: str) -> str:
    """Return a name without the number at its end: `batch 7` and `batch 8` are `batch#`."""
    return _NUMBER.sub("#", _COUNTERS.sub("", name))


def without_numbers(name: str) -> str:
    """Return a name with `#` for every number in it: `block.#.norm` for `block.3.norm` and `block.12.norm`."""
    return _ANY_NUMBER.sub("#", _COUNTERS.sub("", name))
