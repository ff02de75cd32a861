"""Profiles as tables: samples by function, or as a tree of callers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from warplens.analysis.cpu.frames import NO_STACK, Frame, FrameTable
from warplens.analysis.cpu.samples import sampled
from warplens.analysis.cpu.stacks import StackTree, Weights, bottom_up, flat, top_down
from warplens.arrays import Int64Array
from warplens.errors import MissingData
from warplens.stats.places import of_threads, places

if TYPE_CHECKING:
    from warplens.report import Report, Selection

FRAMES = ("function", "line", "module")
_GROUPS = {"process": ("process",), "thread": ("process", "thread"), "range": ("range",)}
GROUPS = tuple(_GROUPS)
TREES = ("flat", "top-down", "bottom-up")


@dataclass(frozen=True)
class SampleProfile:
    """Samples in their frames.

    `groups`: what they are grouped by, a row each with its sums, the greatest weight first.
    """

    frames: FrameTable
    weights: Weights
    groups: pa.Table

    @classmethod
    def of(
        cls,
        report: Report,
        selection: Selection,
        by: str,
        *,
        kind: str,
        wall: bool = False,
        only_python: bool = False,
    ) -> SampleProfile:
        """Read the samples, by `process`, `thread` or `range`, or all together (other words).

        Raises MissingData if there are none.
        """
        keys = _GROUPS.get(by, ())
        rows = sampled(report, selection, kind=kind, wall=wall, per=keys)
        if not rows.num_rows:
            hint = "" if wall or kind != "python" else " of threads that ran; `:wall` has those that waited"
            raise MissingData(f"does not contain CPU sampling data{selection.place(report)}{hint}.")
        if keys:
            groups = rows.group_by(list(keys), use_threads=False).aggregate(
                [("weight", "sum"), ("count", "sum")]
            )
            groups = groups.sort_by([("weight_sum", "descending"), *((key, "ascending") for key in keys)])
            known = groups.column(keys[-1]).combine_chunks()  # a thread has one process
            group = np.asarray(pc.index_in(rows.column(keys[-1]), value_set=known).to_numpy(), np.int64)
        else:
            groups = pa.table(
                {
                    "weight_sum": [pc.sum(rows.column("weight")).as_py()],
                    "count_sum": [pc.sum(rows.column("count")).as_py()],
                }
            )
            group = np.zeros(rows.num_rows, np.int64)
        frames = FrameTable.of(report, only_python=only_python)
        return cls(frames, Weights.of(frames, rows, group), groups)

    @property
    def weight(self) -> int:
        """Ns of all samples."""
        return int(self.weights.weight.sum())


def by_group(report: Report, profile: SampleProfile, by: str, least: float) -> pa.Table:
    """Return a row for each thread, process or range with at least `least` ns."""
    groups = profile.groups.filter(pc.greater_equal(profile.groups.column("weight_sum"), least))
    return pa.table(
        {
            "Time (%)": _percent(groups.column("weight_sum").to_numpy(), profile.weight),
            "Total (ns)": groups.column("weight_sum"),
            "Samples": groups.column("count_sum"),
            **_where(report, groups, by),
        }
    )


def by_frame(profile: SampleProfile, by: str, least: float) -> pa.Table:
    """Return a row for each function, line or module with at least `least` ns in its total.

    The most own time first.
    """
    nodes = flat(top_down(profile.frames, by, profile.weights))
    rows = np.flatnonzero(nodes.total >= least)
    names, places = texts([profile.frames.frame(place) for place in nodes.example[rows].tolist()], by)
    return pa.table({**figures(nodes, rows, profile.weight), "Name": names, "Where": places})


def as_tree(
    report: Report, profile: SampleProfile, by: str, tree: str, *, depth: int, least: float
) -> pa.Table:
    """Return a row for each node, indented below its parent.

    Below a row for each thread, process or range where `by` names one.
    """
    frames, kind = profile.frames, by if by in FRAMES else "function"
    if tree == "bottom-up":
        nodes = bottom_up(frames, kind, profile.weights, depth=depth or None, least=least)
    else:
        nodes = top_down(frames, kind, profile.weights)
    rows = nodes.order(depth=depth or None, least=least)
    names, places = texts([frames.frame(place) for place in nodes.example[rows].tolist()], kind)
    grouped = by in GROUPS
    indented = [
        "  " * (level + grouped) + name for level, name in zip(nodes.level[rows].tolist(), names, strict=True)
    ]
    table = pa.table({**figures(nodes, rows, profile.weight), "Name": indented, "Where": places})
    return _below_groups(report, profile, by, table=table, group=nodes.group[rows]) if grouped else table


def figures(tree: StackTree, rows: Int64Array, all_of_it: int) -> dict[str, pa.Array]:
    """Return the columns of nodes that say how much."""
    own, total = tree.own[rows], tree.total[rows]
    return {
        "Self (%)": _percent(own, all_of_it),
        "Total (%)": _percent(total, all_of_it),
        "Self (ns)": pa.array(own),
        "Total (ns)": pa.array(total),
        "Samples": pa.array(tree.samples[rows]),
    }


def texts(frames: list[Frame], by: str) -> tuple[list[str], list[str]]:
    """Return the name of each frame as a `function`, `line` or `module`, and its place: a file, or a library."""
    if by == "module":
        return [_module(frame) for frame in frames], [frame.kind for frame in frames]
    return [frame.function for frame in frames], [_place(frame, by) for frame in frames]


def _module(frame: Frame) -> str:
    return frame.module or frame.file or (frame.function if frame.function == NO_STACK else f"[{frame.kind}]")


def _place(frame: Frame, by: str) -> str:
    if by == "line" and frame.file is not None:
        return f"{frame.file}:{frame.line}" if frame.line is not None else frame.file
    if frame.kind == "python" and frame.file is not None:
        return f"{frame.file}:{frame.first_line}" if frame.first_line is not None else frame.file
    return frame.module or frame.file or ("" if frame.kind == "native" else f"[{frame.kind}]")


def _where(report: Report, groups: pa.Table, by: str) -> dict[str, pa.Array]:
    if by == "range":
        return {"Range": pc.fill_null(groups.column("range"), "[no range]")}
    if by == "thread":
        return of_threads(report, groups.column("process"), groups.column("thread"))
    known = report.table("processes", ["process", "pid", "name", "executable"])
    row = pc.index_in(
        groups.column("process"), value_set=known.column("process").combine_chunks()
    ).combine_chunks()
    names = pc.coalesce(known.column("name"), known.column("executable")).combine_chunks()
    pid = {"PID": known.column("pid").combine_chunks().take(row)}
    return {**places(report, groups.column("process")), **pid, "Process": names.take(row)}


def _below_groups(
    report: Report, profile: SampleProfile, by: str, table: pa.Table, group: Int64Array
) -> pa.Table:
    where = _where(report, profile.groups, by)
    *before, last = (pc.cast(column, pa.string()).to_pylist() for column in where.values())
    about = [
        ", ".join(f"{name} {text}" for name, text in zip(where, row, strict=False) if text)
        for row in zip(*before, strict=True)
    ]
    named = (
        [f"{name or '[no name]'} ({more})" for name, more in zip(last, about, strict=True)]
        if before
        else last
    )
    total, count = (profile.groups.column(name).to_numpy() for name in ("weight_sum", "count_sum"))
    heads = pa.table(
        {
            "Self (%)": pa.array(np.zeros(len(total))),
            "Total (%)": _percent(total, profile.weight),
            "Self (ns)": pa.array(np.zeros(len(total), np.int64)),
            "Total (ns)": pa.array(total),
            "Samples": pa.array(count),
            "Name": named,
            "Where": [""] * len(total),
        }
    )
    order = np.argsort(np.concatenate((np.arange(len(total)), group)), kind="stable")
    rows = pa.concat_tables([heads, table]).take(pa.array(order))
    shown = set(group.tolist())
    return rows.filter(pa.array([place >= len(total) or place in shown for place in order.tolist()]))


def _percent(values: Int64Array, all_of_it: int) -> pa.Array:
    return pa.array(100.0 * np.asarray(values, np.float64) / (all_of_it or 1))
