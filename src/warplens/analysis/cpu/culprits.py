"""Splits the time of a thread among ranges, calls, pauses and waits.

Time counts once. The first of these that was there at a moment has it:

1. a collection of Python's garbage collector, 2. a wait for the GIL, 3. a call of the CUDA API, 4. an import, 5. a call of the C library
(of 3 to 5 the outermost one, as the program called it), 6. no free CPU, 7. the innermost NVTX range, operation of a framework or traced
function of Python that began or ended within the stretch, 8. the function that samples saw, 9. the innermost range around the whole
stretch: it says where that was, not what filled it. What remains is `unknown`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.frames import NO_STACK, Frame, FrameTable
from warplens.analysis.cpu.own_code import OwnCode, package_called
from warplens.analysis.dictionaries import codes
from warplens.analysis.distinct import distinct, labelled
from warplens.analysis.flatten import innermost, outermost
from warplens.analysis.intervals import Cover, union
from warplens.arrays import Int64Array
from warplens.model.framework_tables import OPERATORS
from warplens.storage.schema import schema

if TYPE_CHECKING:
    from warplens.report.report import Report

GC, GIL, API, IMPORT, OS, CPU = "GC pause", "GIL wait", "CUDA API call", "import", "OS call", "no free CPU"
RANGE, OP, FUNCTION, UNKNOWN = "NVTX range", "framework op", "Python function", "unknown"
NATIVE = "native function"
KINDS = (GC, GIL, API, IMPORT, OS, CPU, RANGE, OP, FUNCTION, NATIVE, UNKNOWN)
_NUMBERED = re.compile(r", (seq|op_id) = \d+.*$")  # what its emit_nvtx() puts behind their names
_METADATA = re.compile(r":?#\w+=.*#$")  # of XLA: `XlaCompileGpuAsm:#module=jit_step,program_id=12#`
_MOST = 1 << 62


@dataclass(frozen=True)
class Culprit:
    """Cause of a part of a stretch: `kind` is one of KINDS, `time` ns."""

    kind: str
    name: str
    time: int


@dataclass(frozen=True)
class _Layer:
    """Disjoint intervals, sorted, on the line on which all threads lie behind each other.

    `row`: of `kinds` and `names`, a label each.

    `edges`: begin and end of the whole of what each one is a piece of.
    """

    start: Int64Array
    end: Int64Array
    row: Int64Array
    label: Callable[[Int64Array], tuple[pa.Array, pa.Array]]
    edges: tuple[Int64Array, Int64Array] | None = None


@dataclass(frozen=True)
class _Line:
    """Puts the threads of stretches one after another on one line of time.

    It leaves out all time outside of the stretches.
    """

    threads: Int64Array
    origin: int
    length: int
    begin: Int64Array
    end: Int64Array

    def place(
        self, thread: Int64Array, start: Int64Array, end: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Return the relevant rows in order, and their times on the line.

        Of those that begin together the longer comes first.
        """
        code = np.minimum(np.searchsorted(self.threads, thread), len(self.threads) - 1)
        here = (
            (self.threads[code] == thread)
            & (end > start)
            & (start < self.origin + self.length)
            & (end > self.origin)
        )
        rows = np.flatnonzero(here)
        shift = code[rows] * self.length - self.origin
        top = (code[rows] + 1) * self.length - 1
        first = np.maximum(start[rows] + shift, code[rows] * self.length)
        last = np.minimum(end[rows] + shift, top)
        # Keep only rows that overlap a stretch. `near` is the first stretch that ends after the row
        # begins; the row overlaps it if that stretch begins before the row ends.
        near = np.searchsorted(self.end, first, side="right")
        met = near < len(self.end)
        met[met] = self.begin[near[met]] < last[met]
        rows, first, last = rows[met], first[met], last[met]
        steps = np.diff(first)
        if np.any(steps < 0) or np.any((steps == 0) & (np.diff(last) > 0)):
            order = np.lexsort((-last, first))
            rows, first, last = rows[order], first[order], last[order]
        return rows, first, last


def culprits(report: Report, thread: int, begin: int, end: int) -> list[Culprit]:
    """Return the causes that filled the time from `begin` to `end` of a thread, the longest first.

    In ns on the report's clock; together all of it.
    """
    causes = filled(report, pa.table({"thread": [thread], "start": [begin], "end": [end]}))
    rows = zip(*(causes.column(name).to_pylist() for name in ("kind", "name", "time")), strict=True)
    return sorted(
        (Culprit(*row) for row in rows),
        key=lambda culprit: (-culprit.time, KINDS.index(culprit.kind), culprit.name),
    )


def filled(report: Report, stretches: pa.Table) -> pa.Table:
    """Return what filled many stretches: stretch (position in `stretches`), kind, name, time (ns).

    The times of a stretch are its length.

    `stretches`: columns thread, start, end (ns, the report's clock).
    """
    cut = pieces(report, stretches)
    codes_of, texts = zip(
        *(codes(cut.column(name).combine_chunks()) for name in ("kind", "name")), strict=True
    )
    sizes = [max(len(values), 1) for values in texts]
    time = _numbers(cut.column("end")) - _numbers(cut.column("start"))
    # (stretch, kind, name) in one number; sorted by it, `reduceat` sums the time of each combination.
    key = (_numbers(cut.column("stretch")) * sizes[0] + codes_of[0]) * sizes[1] + codes_of[1]
    order = np.argsort(key, kind="stable")
    key = key[order]
    edges = np.flatnonzero(np.diff(key, prepend=-1))
    sums = np.add.reduceat(time[order], edges) if len(edges) else time
    key = key[edges]
    stretch = key // (sizes[0] * sizes[1])
    best = _descending(stretch, sums)
    of = [(key // sizes[1] % sizes[0])[best], (key % sizes[1])[best]]
    columns = {"stretch": pa.array(stretch[best], pa.int64())}
    for name, values, code in zip(("kind", "name"), texts, of, strict=True):
        columns[name] = pa.DictionaryArray.from_arrays(pa.array(code, pa.int32()), values)
    return pa.table({**columns, "time": pa.array(sums[best], pa.int64())})


def _descending(group: Int64Array, values: Int64Array) -> Int64Array:
    """Return the order by group, which they are in already, and within it the greatest first."""
    # Group and value in one number, as one sort of numbers is faster than `lexsort`. With width 10,
    # value 3 of group 2 sorts as 26 and value 7 as 22, so the greater value comes first. `lexsort`
    # serves if the product would overflow.
    width = int(values.max(initial=0)) + 1
    if len(group) and (int(group[-1]) + 1) < _MOST // width:
        return np.argsort(group * width + (width - 1 - values), kind="stable")
    return np.lexsort((-values, group))


def pieces(report: Report, stretches: pa.Table, *, starved: bool = True) -> pa.Table:
    """Return the pieces of time: stretch, kind, name (dictionaries), start, end (ns).

    In no order; they cover each stretch.

    `starved`: whether time without a free CPU is a cause; else it belongs to what the thread was doing.
    """
    thread, start, end = (_numbers(stretches.column(name)) for name in ("thread", "start", "end"))
    some = np.flatnonzero(end > start)
    empty = pa.table(
        {"stretch": [], "start": [], "end": []},
        pa.schema([(name, pa.int64()) for name in ("stretch", "start", "end")]),
    )
    if not len(some):
        texts = _same("", 0)
        return (
            empty.append_column("kind", texts)
            .append_column("name", texts)
            .select(["stretch", "kind", "name", "start", "end"])
        )
    parts = []
    threads = np.unique(thread[some])
    origin, length = int(start[some].min()), int(end[some].max() - start[some].min()) + 1
    at_once = max(_MOST // length, 1)
    for low in range(0, len(threads), at_once):
        own = threads[low : low + at_once]
        mine = some[(thread[some] >= own[0]) & (thread[some] <= own[-1])]
        parts.append(
            _pieces(
                report,
                own,
                origin,
                length=length,
                thread=thread[mine],
                start=start[mine],
                end=end[mine],
                number=mine,
                starved=starved,
            )
        )
    return pa.concat_tables(parts)


def _pieces(
    report: Report,
    threads: Int64Array,
    origin: int,
    length: int,
    thread: Int64Array,
    start: Int64Array,
    end: Int64Array,
    number: Int64Array,
    starved: bool,
) -> pa.Table:
    # All threads on one line: thread i occupies [i * length, (i + 1) * length). Then one pass of interval algebra serves all threads.
    shift = np.searchsorted(threads, thread) * length - origin
    begin, finish = start + shift, end + shift
    order = np.argsort(begin, kind="stable")
    line = _Line(threads, origin, length, *union(begin, finish))
    whole = begin, finish  # of each stretch
    owner, left = order, (begin[order], finish[order])
    layers_taken: list[tuple[Int64Array, Int64Array, Int64Array, pa.Array, pa.Array]] = []

    def take(layer: _Layer, *, around: bool = True) -> None:
        """Give a layer what nobody has yet.

        `around`: also to what reaches over both ends of the stretch.
        """
        nonlocal owner, left
        piece, met = _meetings(*left, layer.start, layer.end)
        if not around and layer.edges is not None:
            mine = owner[piece]
            within = (layer.edges[0][met] > whole[0][mine]) | (layer.edges[1][met] < whole[1][mine])
            piece, met = piece[within], met[within]
        first, last = np.maximum(left[0][piece], layer.start[met]), np.minimum(left[1][piece], layer.end[met])
        if len(met):
            layers_taken.append((owner[piece], first, last, *layer.label(layer.row[met])))
        keep, *left_over = _without(*left, piece, first, last)
        owner, left = owner[keep], (left_over[0], left_over[1])

    for leaf in (_gc, _gil, _api, _imports, _os, *([_states] if starved else [])):
        take(leaf(report, line))
    ranges = _ranges(report, line)
    take(ranges, around=False)
    for layer in _samples(report, line):
        take(layer)
    take(ranges)
    layers_taken.append((owner, *left, _same(UNKNOWN, len(owner)), _same("", len(owner))))
    back = [np.searchsorted(threads, thread[mine]) * length - origin for mine, *_ in layers_taken]
    return pa.table(
        {
            "stretch": pa.array(np.concatenate([number[mine] for mine, *_ in layers_taken]), pa.int64()),
            "kind": pa.chunked_array([kind for *_, kind, _ in layers_taken]).combine_chunks(),
            "name": pa.chunked_array([name for *_, name in layers_taken]).combine_chunks(),
            "start": pa.array(
                np.concatenate([cuts[1] - by for cuts, by in zip(layers_taken, back, strict=True)]),
                pa.int64(),
            ),
            "end": pa.array(
                np.concatenate([cuts[2] - by for cuts, by in zip(layers_taken, back, strict=True)]),
                pa.int64(),
            ),
        }
    )


def _meetings(
    start: Int64Array, end: Int64Array, first: Int64Array, last: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Return the positions of pieces and of the disjoint, sorted intervals that they overlap."""
    # A piece overlaps the intervals that end after its start and begin before its end. They are a
    # run, [low, low + count). For low = [0, 1] and counts = [2, 1] the pairs are (0, 0), (0, 1),
    # (1, 1).
    low = np.searchsorted(last, start, side="right")
    counts = np.maximum(np.searchsorted(first, end) - low, 0)
    left = np.repeat(np.arange(len(start)), counts)
    return left, np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(len(left))


def _without(
    start: Int64Array, end: Int64Array, piece: Int64Array, first: Int64Array, last: Int64Array
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Return what remains of pieces: position of the piece, start and end.

    `first`, `last`: what is gone of each, in order.
    """
    # A piece with n holes leaves n + 1 gaps. [0, 10) with holes [2, 3) and [5, 7) has
    #     begins  0  3  7    the start of the piece, then the end of each hole
    #     ends    2  5  10   the start of each hole, then the end of the piece
    # `places` is where a piece's first gap stands in these arrays, `holes` where the gap before
    # each hole stands. Empty gaps are dropped at the end.
    counts = np.bincount(piece, minlength=len(start)) if len(piece) else np.zeros(len(start), np.int64)
    places = (
        np.cumsum(counts) - counts + np.arange(len(start))
    )  # where each one's gaps begin, one more than it has holes
    holes = np.arange(len(piece)) + piece
    size = len(piece) + len(start)
    begins, ends = np.empty(size, np.int64), np.empty(size, np.int64)
    begins[places] = start
    begins[holes + 1] = last
    ends[places + counts] = end
    ends[holes] = first
    owners = np.repeat(np.arange(len(start)), counts + 1)
    some = begins < ends
    return owners[some], begins[some], ends[some]


def _read(report: Report, line: _Line, table: str, columns: list[str]) -> pa.Table:
    """Return columns of a table. For a small part of the run, only the rows near it."""
    begin, end = report.origin, report.end
    if line.length * 4 > end - begin:
        return report.table(table, columns).unify_dictionaries()
    wanted = schema(table)
    names = ", ".join(f'"{name}"' for name in columns)
    late = " + weight" if table == "samples" else ""  # the last tick stands for the time up to the next one
    where = f'"start" < {line.origin + line.length} AND "end"{late} >= {line.origin}'
    near = report.sql(f'SELECT {names} FROM {table} WHERE {where} ORDER BY "start"')
    kinds = pa.schema([(name, wanted.field(name).type) for name in columns])
    return pa.table([_as(near.column(item.name), item.type) for item in kinds], schema=kinds)


def _as(column: pa.ChunkedArray, kind: pa.DataType) -> pa.Array:
    plain = column.combine_chunks()
    return (
        pc.cast(plain, pa.string()).dictionary_encode().cast(kind)
        if pa.types.is_dictionary(kind)
        else pc.cast(plain, kind)
    )


def _gc(report: Report, line: _Line) -> _Layer:
    def label(rows: pa.Table) -> pa.Array:
        used, which = np.unique(_numbers(rows.column("generation")), return_inverse=True)
        return labelled(
            which.reshape(-1).astype(np.int32), [f"generation {number}" for number in used.tolist()]
        )

    return _flat(report, line, "gc", kind=GC, columns=["generation"], name=label)


def _gil(report: Report, line: _Line) -> _Layer:
    return _flat(
        report,
        line,
        "gil",
        kind=GIL,
        columns=["state"],
        name=lambda rows: _same("GIL", rows.num_rows),
        wanted=lambda rows: _is(rows, "state", "wait"),
    )


def _api(report: Report, line: _Line) -> _Layer:
    return _flat(report, line, "cuda_api", kind=API, columns=["name"], name=_name)


def _imports(report: Report, line: _Line) -> _Layer:
    return _flat(report, line, "imports", kind=IMPORT, columns=["name"], name=_name)


def _os(report: Report, line: _Line) -> _Layer:
    return _flat(report, line, "osrt", kind=OS, columns=["name"], name=_name)


def _states(report: Report, line: _Line) -> _Layer:
    return _flat(
        report,
        line,
        "thread_states",
        kind=CPU,
        columns=["state", "exact"],
        name=lambda rows: _same("runnable", rows.num_rows),
        wanted=lambda rows: (
            _is(rows, "state", "runnable") & np.asarray(pc.fill_null(rows.column("exact"), False))
        ),
    )


def _flat(
    report: Report,
    line: _Line,
    table: str,
    kind: str,
    columns: list[str],
    name: Callable[[pa.Table], pa.Array],
    wanted: Callable[[pa.Table], npt.NDArray[np.bool_]] | None = None,
) -> _Layer:
    """Return the rows of a table as a layer: of those that overlap, the outermost."""
    rows = _read(report, line, table, columns=["thread", "start", "end", *columns])
    if wanted is not None:
        rows = rows.filter(pa.array(wanted(rows)))
    place, first, last = line.place(*(_numbers(rows.column(column)) for column in ("thread", "start", "end")))
    chosen, first, last = outermost(first, last)

    def label(which: Int64Array) -> tuple[pa.Array, pa.Array]:
        return _same(kind, len(which)), name(rows.select(columns).take(pa.array(which)))

    return _Layer(first, last, place[chosen], label=label)


def _ranges(report: Report, line: _Line) -> _Layer:
    """Return push/pop ranges and traced functions as one layer: at each moment the innermost one."""
    ranges = _read(
        report, line, "nvtx_ranges", columns=["thread", "start", "end", "message", "domain", "style", "task"]
    )
    ranges = ranges.filter(
        pc.and_(pa.array(_is(ranges, "style", "PushPop")), pc.is_null(ranges.column("task")))
    )
    calls = _read(report, line, "python_calls", columns=["thread", "start", "end", "name", "file", "kind"])
    calls = calls.filter(pa.array(_is(calls, "kind", "function")))
    thread, start, end = (
        np.concatenate([_numbers(table.column(name)) for table in (ranges, calls)])
        for name in ("thread", "start", "end")
    )
    place, first, last = line.place(thread, start, end)
    chosen, begins, ends = innermost(first, last)

    texts = [codes(ranges.column(name).combine_chunks()) for name in ("domain", "message")]
    texts += [codes(calls.column(name).combine_chunks()) for name in ("name", "file")]

    def label(which: Int64Array) -> tuple[pa.Array, pa.Array]:
        called = which >= ranges.num_rows
        kinds, names = list[str](), list[str]()
        row = np.zeros(len(which), np.int32)
        for some, (outer, inner), tell in ((~called, texts[:2], _range), (called, texts[2:], _function)):
            at = which[some] - (ranges.num_rows if tell is _function else 0)
            width = len(inner[1]) + 1
            used, place = distinct(
                (outer[0][at] + 1).astype(np.int64) * width + inner[0][at] + 1, (len(outer[1]) + 1) * width
            )
            row[some] = place + len(names)
            named = [[*values.to_pylist(), None] for _, values in (outer, inner)]
            for first, second in zip((used // width - 1).tolist(), (used % width - 1).tolist(), strict=True):
                kind, text = tell(named[0][first], named[1][second])
                kinds.append(kind)
                names.append(text)
        return labelled(row, kinds), labelled(row, names)

    return _Layer(begins, ends, place[chosen], label=label, edges=(first[chosen], last[chosen]))


def _samples(report: Report, line: _Line) -> list[_Layer]:
    """Return what samples saw: by the clock, and then those of threads that ran."""
    rows = _read(
        report, line, "samples", columns=["thread", "start", "end", "kind", "count", "weight", "stack"]
    )
    if not rows.num_rows:
        return []
    rows = rows.filter(pc.is_valid(rows.column("stack")))
    every = _numbers(rows.column("weight")) // np.maximum(_numbers(rows.column("count")), 1)
    thread, start, end = (_numbers(rows.column(name)) for name in ("thread", "start", "end"))
    shown, python = FrameTable.of(report), FrameTable.of(report, only_python=True)
    own_code = OwnCode.of(python)
    layers = []
    for kind in ("python", "native"):
        own = np.flatnonzero(_is(rows, "kind", kind))
        place, first, last = line.place(thread[own], start[own], end[own] + every[own])
        chosen, first, last = outermost(first, last)

        def label(which: Int64Array) -> tuple[pa.Array, pa.Array]:
            stacks = rows.column("stack").take(pa.array(which))
            inner, leaf = python.positions(stacks), shown.positions(stacks)
            # A function of an installed package stands under the line of the program's own code that called it: that can be changed.
            places, code = np.unique(np.where(python.interpreted[inner], inner, leaf), return_inverse=True)
            frames = [shown.frame(int(position)) for position in places]
            texts = [
                _sampled(own_code, place, frame) for place, frame in zip(places.tolist(), frames, strict=True)
            ]
            kinds = [
                FUNCTION if frame.kind == "python" else UNKNOWN if frame.function == NO_STACK else NATIVE
                for frame in frames
            ]
            at = code.reshape(-1).astype(np.int32)
            return labelled(at, kinds), labelled(at, texts)

        layers.append(_Layer(first, last, own[place[chosen]], label=label))
    return layers


def sampled(report: Report, thread: int, name: str, begin: int, end: int) -> Cover:
    """Return when samples from `begin` to `end` saw a thread in a function, under its name in `pieces`."""
    whole = np.array([0]), np.array([end - begin])
    line = _Line(np.array([thread]), begin, end - begin + 1, begin=whole[0], end=whole[1])
    starts, ends = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for layer in _samples(report, line):
        code, names = codes(layer.label(layer.row)[1])
        mine = np.array([*(text == name for text in names.to_pylist()), False], bool)[code]
        starts.append(layer.start[mine] + begin)
        ends.append(layer.end[mine] + begin)
    return Cover(np.concatenate(starts), np.concatenate(ends))


def _sampled(code: OwnCode, place: int, frame: Frame) -> str:
    """Return `function (file)`, or its caller.

    The caller as `own function (file:line), in package`, else the outermost function of Python.
    """
    if frame.kind != "python" or not frame.file:
        return frame.function
    anchor = int(code.own[place])
    if anchor < 0:
        anchor = place
        while (above := int(code.frames.parent[anchor])) >= 0 and int(code.python[above]) >= 0:
            anchor = int(code.python[above])
    caller = code.frames.frame(anchor)
    if anchor == place or not caller.file:
        return f"{frame.function} ({_short(frame.file)})"
    line = "" if caller.line is None else f":{caller.line}"
    return f"{caller.function} ({_short(caller.file)}{line}), in {package_called(code, place, anchor)}"


def _range(domain: str | None, message: str | None) -> tuple[str, str]:
    """Return what a range is, and is called."""
    text = "[no name]" if message is None else message
    plain = _METADATA.sub("", _NUMBERED.sub("", text))
    if domain == OPERATORS or _NUMBERED.search(text):
        return OP, plain
    return RANGE, plain if domain is None else f"{domain}:{plain}"


def _function(name: str | None, file: str | None) -> tuple[str, str]:
    """Return that it is a function, and `name (file)`."""
    return FUNCTION, f"{name} ({_short(file)})" if file is not None else name or "[no name]"


def _short(file: str) -> str:
    return file.rsplit("/", 1)[-1]


def _name(rows: pa.Table) -> pa.Array:
    code, texts = codes(rows.column("name").combine_chunks())
    return (
        labelled(code, [*texts.to_pylist(), "[no name]"])
        if len(code) and (code < 0).any()
        else pa.DictionaryArray.from_arrays(code, texts)
    )


def _same(text: str, count: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(count, np.int32)), pa.array([text]))


def _is(rows: pa.Table, column: str, text: str | None) -> npt.NDArray[np.bool_]:
    """Return which rows have a text in a column of the type `dict`; None: no text."""
    codes_of_rows, texts = codes(rows.column(column).unify_dictionaries().combine_chunks())
    return np.array([*(value == text for value in texts.to_pylist()), text is None], bool)[codes_of_rows]


def _numbers(column: pa.ChunkedArray | pa.Array) -> Int64Array:
    return np.asarray(
        column.to_numpy() if isinstance(column, pa.ChunkedArray) else column.to_numpy(zero_copy_only=False),
        np.int64,
    )
